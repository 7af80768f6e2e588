"""Workers that are killed, stopped or cut off while they train: every other one gets an error in time.

    python -m tests.faults --times 100 [--only kill,stop,cut] [--type dist_sync] [--jobs 2] [--seed 0]

from the root of the repository, does so many times of each, at random moments; the tests do each a few times.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

if __package__:
    from .forked import python
else:  # as tests see it
    from forked import python

LIMIT = 2  # seconds of silence after which a worker counts as dead; with those of starting, noticing and leaving that must be enough
PATIENCE = 60  # seconds for an error to come, on a machine that is busy
PROGRAM = """
import ctypes, os, sys, warnings
warnings.simplefilter('ignore')
if sys.platform == 'linux':  # PR_SET_PDEATHSIG, SIGKILL: who ends or kills the tests leaves no worker behind, not even a stopped one
    ctypes.CDLL(None).prctl(1, 9)
import numpy as np
import mxnet as mx
kind = sys.argv[1]
kv = mx.kv.create(kind)
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(1100, activation='tanh', in_units=50), mx.gluon.nn.Dense(1000, in_units=1100))
net.initialize()
net.hybridize()
trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', optimizer_params={'learning_rate': 1e-3}, kvstore=kv)
x = mx.nd.ones((8, 50))
step = 0
try:
    while True:
        with mx.autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(8)
        step += 1
        if step == 1:
            os.write(1, b'running\\n')
except mx.MXNetError as error:
    os.write(1, f'error {error}\\n'.encode())
    sys.exit(3)
"""
_workers = set()  # those that run


class Cable:
    """A network namespace for one worker, and the cable between it and this machine. Needs root, and Linux's `ip`."""

    def __init__(self):
        number = f"{random.SystemRandom().randrange(1 << 32):08x}"
        self.namespace, self.here = f"remex{number}", f"rx{number}"
        net = ".".join(str(int(number[i:i + 2], 16)) for i in (0, 2))
        self.address, far = f"10.{net}.1", f"10.{net}.2"
        try:
            _ip("netns", "add", self.namespace)
            _ip("link", "add", self.here, "type", "veth", "peer", "name", self.here, "netns", self.namespace)
            _ip("addr", "add", f"{self.address}/30", "dev", self.here)
            _ip("-n", self.namespace, "addr", "add", f"{far}/30", "dev", self.here)
            _ip("link", "set", self.here, "up")
            _ip("-n", self.namespace, "link", "set", self.here, "up")
        except BaseException:
            self.close()
            raise

    def cut(self):
        """Nothing passes from now on, and nobody is told."""
        _ip("-n", self.namespace, "link", "set", self.here, "down")

    def close(self):
        """Take it away."""
        subprocess.run(["ip", "netns", "del", self.namespace], capture_output=True, check=False, timeout=120)


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=120)


def why_not(fault):
    """Why this can't be done here; '' if it can."""
    if fault == "cut":
        try:
            Cable().close()
        except (OSError, subprocess.CalledProcessError) as error:
            return f"network namespaces can't be made here: {(getattr(error, 'stderr', '') or str(error)).strip()}"
    return ""


def once(fault, kind="dist_sync", workers=3, pause=0.0):
    """Let one of the workers fail; returns what the others said, the seconds until they ended, and what was wrong ('' if nothing was).

    Parameters
    ----------
    fault : str
        ``kill`` (SIGKILL), ``stop`` (SIGSTOP) or ``cut``, for which the last worker runs behind a `Cable`; that one has to get an error, too.
    pause : float
        The seconds after the first step.
    """
    import torch.distributed as dist

    import mxnet
    store = dist.TCPStore("0.0.0.0", 0, is_master=True, wait_for_workers=False)
    cable = Cable() if fault == "cut" else None
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(pathlib.Path(mxnet.__file__).parent.parent), "DMLC_ROLE": "worker",
           "DMLC_PS_ROOT_URI": cable.address if cable else "127.0.0.1", "DMLC_PS_ROOT_PORT": str(store.port), "DMLC_NUM_WORKER": str(workers),
           "DMLC_NUM_SERVER": "0", "GLOO_SOCKET_IFNAME": cable.here if cable else "lo", "PS_HEARTBEAT_INTERVAL": "0.2",
           "PS_HEARTBEAT_TIMEOUT": str(LIMIT), "PYTHONFAULTHANDLER": "1"}
    running = []
    try:
        for i in range(workers):
            start = ["ip", "netns", "exec", cable.namespace, sys.executable] if cable and i == workers - 1 else python()
            running.append(subprocess.Popen([*start, "-c", PROGRAM, kind], text=True, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, env={**env, "DMLC_WORKER_ID": str(i)}))
            _workers.add(running[-1])
        for process in running:
            line = process.stdout.readline()
            if line != "running\n":
                return [line], 0, f"did not begin: {line!r} {process.stderr.read()[-2000:]}"
        time.sleep(pause)
        start = time.monotonic()
        if fault == "kill":
            running[-1].kill()
        elif fault == "stop":
            running[-1].send_signal(signal.SIGTSTP)  # becomes SIGSTOP
        else:
            cable.cut()
        said, wrong = [], ""
        for i, process in enumerate(running if fault == "cut" else running[:-1]):
            try:
                out, err = _end(process)
            except subprocess.TimeoutExpired:
                wrong = wrong or f"worker {i} still hangs after {PATIENCE} s"
                continue
            said.append(out.strip())
            if process.returncode != 3 or not out.startswith("error "):
                wrong = wrong or f"worker {i} ended with {process.returncode}: {out[-500:]} {err[-2000:]}"
        return said, time.monotonic() - start, wrong
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
            _workers.discard(process)
        if cable:
            cable.close()


def _end(process):
    """What a process says until it ends; TimeoutExpired after `PATIENCE` seconds, of which those do not count while this process is stopped."""
    for left in reversed(range(PATIENCE)):
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            if not left:
                raise


def _summarize(fault, found):
    """Print what `once` found; how many errors did not come."""
    wrong = [text for _, _, text in found if text]
    taken = sorted(seconds for _, seconds, text in found if not text) or [float("nan")]
    print(f"{fault}: {len(found)} times, {len(wrong)} without an error in time; it came after {taken[len(taken) // 2]:.1f} s (median), "
          f"{taken[-1]:.1f} s at most", flush=True)
    for text in wrong[:5]:
        print("   ", text, flush=True)
    return len(wrong)


def main(argv=None):
    """Do it many times; returns 1 if an error did not come."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--only", default="kill,stop,cut")
    parser.add_argument("--type", default="dist_sync", help="of the store")
    parser.add_argument("--jobs", type=int, default=1, help="at a time")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(argv)
    numbers, failed = random.Random(chosen.seed), 0
    for fault in chosen.only.split(","):
        if why_not(fault):
            print(f"{fault}: {why_not(fault)}", flush=True)
            continue
        pauses, found = [numbers.random() for _ in range(chosen.times)], []
        try:
            with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
                try:
                    for result in pool.map(lambda pause, fault=fault: once(fault, chosen.type, pause=pause), pauses):
                        found.append(result)
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    for process in list(_workers):
                        process.kill()
                    raise
        finally:  # of a run that is ended early, too
            failed += _summarize(fault, found)
    return bool(failed)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that namespaces are taken away
    sys.exit(main())
