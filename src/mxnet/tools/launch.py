"""Start the workers and servers of a distributed job, on this machine or on many.

``python -m mxnet.tools.launch -n 4 [-s 2] [-H hosts] --launcher local|ssh|mpi|slurm COMMAND`` takes the flags of MXNet's ``tools/launch.py``. On
each machine torchrun's agent starts and monitors the workers; this process hosts the rendezvous (`torch.distributed.TCPStore`) at a port chosen by
the system. If a worker fails, all are stopped, and the exit status is the worker's.
"""
from __future__ import annotations

import argparse
import contextlib
import logging
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Sequence

import torch.distributed as dist

from .command import command, parser
from .fork_server import ForkServer, split

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)  # torchrun sets handlers for these
_PATIENCE = 30  # seconds until servers and other machines must have ended by themselves
_log = logging.getLogger("mxnet.tools.launch")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("launch")
    p.add_argument("-n", "--num-workers", required=True, type=_count(1), help="how many workers there are")
    p.add_argument("-s", "--num-servers", type=_count(0), help="how many servers there are, for dist_async; by default as many as workers")
    p.add_argument("-H", "--hostfile", help="a file with the name of a machine on each line; ssh and mpi need it")
    p.add_argument("--sync-dst-dir", help="ssh: copy the current folder to this one on each machine, and run there")
    p.add_argument("--launcher", default="ssh", choices=["local", "ssh", "mpi", "slurm"], help="how processes on other machines are started")
    p.add_argument("--env-server", action="append", default=[], metavar="NAME:VALUE", help="a variable for the servers")
    p.add_argument("--env-worker", action="append", default=[], metavar="NAME:VALUE", help="a variable for the workers")
    p.add_argument("--env", action="append", default=[], metavar="NAME", help="hand this variable on to other machines")
    p.add_argument("--p3", action="store_true", help="synchronous stores send in slices, the most urgent first")
    p.add_argument("--max-restarts", type=_count(0), default=0, help="how often a job that failed starts again")
    p.add_argument("--preload", help="modules, separated by commas, that one process of each machine imports; the workers are forks of it. "
                   "By default torch if the job may start again; '' starts each worker anew")
    for hidden in ("--meet", "--job", "--layout", "--node"):  # internal: for this program on other machines
        p.add_argument(hidden, help=argparse.SUPPRESS)
    p.add_argument("command", nargs=argparse.REMAINDER, help="the program and its arguments")
    return p


def _count(least):
    def read(text):
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more, received {text}")
        return number
    read.__name__ = "number"
    return read


def _pairs(parser, flag, given):
    pairs = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not name or not colon:
            parser.error(f"{flag} takes NAME:VALUE, received {text!r}")
        pairs[name] = value
    return pairs


def hosts_of(path: str) -> list[str]:
    """Return the machines in a host file, one on each line. Text after a name and lines that begin with # are ignored."""
    lines = (line.split("#")[0].split() for line in pathlib.Path(path).read_text().splitlines())
    return [line[0] for line in lines if line]


def layout(workers: int, servers: int, hosts: int) -> list[tuple[int, int]]:
    """Return (workers, servers) of each machine, distributed round-robin, as MXNet does."""
    return [(len(range(i, workers, hosts)), len(range(i, servers, hosts))) for i in range(hosts)]


@contextlib.contextmanager
def _same_handlers():
    """Give the signals their handlers again after a block: torchrun's agent keeps its own."""
    handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@command
@_same_handlers()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    p = build_parser()
    args = p.parse_args(argv)
    args.command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not args.command:
        p.error("the command is missing: the program that all workers run, and its arguments")
    if args.num_servers is None:
        args.num_servers = args.num_workers
    args.preload = [name for name in ("torch" if args.max_restarts and args.preload is None else args.preload or "").split(",") if name]
    args.forks = None
    args.worker_env, args.server_env = _pairs(p, "--env-worker", args.env_worker), _pairs(p, "--env-server", args.env_server)
    if args.launcher in ("ssh", "mpi") and not args.hostfile and not args.meet:
        p.error(f"--launcher {args.launcher} needs -H, a file with the names of the machines; --launcher local uses this one only")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    variables = dict(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return _run_node(args) if args.meet else _run_job(args)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except FileNotFoundError as error:
        _log.error("%s: not found; --launcher %s needs it", error.filename, args.launcher)
        return 127
    except socket.gaierror as error:
        _log.error("a machine of %s has no address: %s", args.hostfile, error.strerror)
        return 1
    except (OSError, subprocess.CalledProcessError) as error:
        _log.error("%s", error)
        return 1
    finally:  # for callers of this function, which continue
        if args.forks:
            args.forks.close()
        os.environ.clear()
        os.environ.update(variables)


def _run_job(args):
    store = dist.TCPStore("0.0.0.0", 0, is_master=True, wait_for_workers=False)
    hosts = hosts_of(args.hostfile) if args.hostfile and args.launcher != "local" else [None]
    if args.launcher == "slurm" and hosts == [None]:
        hosts = [None] * int(os.environ.get("SLURM_JOB_NUM_NODES", 1))
    hosts = hosts[:max(args.num_workers, args.num_servers)]
    args.layout = layout(args.num_workers, args.num_servers, len(hosts))
    args.meet = f"{_own_address(hosts[0])}:{store.port}"
    job = uuid.uuid4().hex
    for attempt in range(args.max_restarts + 1):
        args.job, args.node = f"{job}.{attempt}", 0
        status = _run_node(args) if args.launcher == "local" else _run_remote(args, hosts)
        if not status or attempt == args.max_restarts:
            return status
        _log.warning("the job has failed with status %d and starts again (%d of %d)", status, attempt + 1, args.max_restarts)


def _own_address(host):
    """Return the address of this machine for another one (None: for itself)."""
    if host in (None, "localhost", "127.0.0.1") and "SLURM_JOB_NUM_NODES" not in os.environ:
        return "127.0.0.1"
    if host is None:
        return socket.gethostname()
    family, kind, _, _, target = socket.getaddrinfo(host, 22, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as asking:
        asking.connect(target)  # UDP: no packet is sent
        return asking.getsockname()[0]


# -- one machine ------------------------------------------------------------------------------------------------------------------


def _run_node(args):
    """Run the workers and servers of this machine; return the exit status."""
    if isinstance(args.layout, str):
        args.layout = [tuple(map(int, pair.split(":"))) for pair in args.layout.split(",")]
    if args.node == "auto":
        args.node = next((os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID") if name in os.environ), 0)
    node = int(args.node)
    workers, servers = args.layout[node]
    address, _, port = args.meet.rpartition(":")
    common = {"DMLC_PS_ROOT_URI": address, "DMLC_PS_ROOT_PORT": port, "DMLC_NUM_WORKER": str(args.num_workers),
              "DMLC_NUM_SERVER": str(args.num_servers), "TORCHELASTIC_RUN_ID": args.job}
    if args.p3:
        common["DMLC_PS_VAN_TYPE"] = "p3"
    if workers + servers > 1:  # a single process may use a thread for each core
        common["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // (workers + servers)))
    # As MXNet's launcher does, a command given as one argument is run by the shell.
    command = ["/bin/sh", "-c", args.command[0]] if len(args.command) == 1 and len(args.command[0].split()) > 1 else args.command
    missing = _not_runnable(command[0], {**os.environ, **args.worker_env}.get("PATH"))
    if missing:
        _log.error("%s", missing[1])
        return missing[0]
    first = sum(count for _, count in args.layout[:node])
    started = []
    exits = _ExitWatch()
    try:
        for i in range(servers):
            env = {**os.environ, **common, **args.server_env, "DMLC_ROLE": "server", "DMLC_SERVER_ID": str(first + i)}
            started.append(subprocess.Popen(command, env=env))
        exits.processes = {process.pid: f"server {first + i}" for i, process in enumerate(started)}
        worker_env = {**common, **args.worker_env, "DMLC_ROLE": "worker"}
        if workers:
            command = _forking(args, command, {**os.environ, **worker_env}, exits)
        exits.start()
        status = _run_workers(args, workers, command, worker_env, exits) if workers else 0
        for i, server in enumerate(started):
            if status:
                break
            # Without workers on this machine, the end of the servers is the end of the job.
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = server.wait(_PATIENCE if workers else None)
                if status:
                    _log.error("server %d ended with status %d", first + i, status)
        return status
    finally:
        exits.stop()
        _end(started)


def _not_runnable(program, path):
    """Return the shell's exit status and an error text for a program that cannot be started, else None."""
    if shutil.which(program, path=path):
        return None
    if os.path.dirname(program) and os.path.exists(program):
        return 126, f"the program {program!r} is not executable; start a Python script as `python {program}`"
    return 127, f"the program {program!r} was not found{'' if os.path.dirname(program) else ' on PATH'}; check its spelling"


def _forking(args, command, env, exits):
    """Return the command that runs the program in a fork of a process with the modules of ``--preload``; the command itself if that is impossible."""
    if not args.preload:
        return command
    program = split(command) if ForkServer.available() else None
    if program is None:
        _log.info("each worker imports %s for itself: forks need Linux, and a command such as `python FILE`, `python -m MODULE` or `python -c TEXT`",
                  ", ".join(args.preload))
        return command
    interpreter, words = program
    if args.forks is None:  # it stays when the job starts again
        try:
            args.forks = ForkServer(interpreter, args.preload, env)
        except OSError as error:
            _log.warning("each worker imports %s for itself: %s", ", ".join(args.preload), error)
            return command
    exits.helper = args.forks.process
    return args.forks.command(words)


class _ExitWatch(threading.Thread):
    """Records the order in which child processes fail; torch's agent polls ten times a second and then reports the lowest rank.

    Attributes
    ----------
    failed : list of (int, int)
        Process ids and statuses (a negative number for a signal), the first failure first.
    processes : dict of int to str
        Names of the processes that are not workers.
    helper : subprocess.Popen, optional
        A child whose end is of no interest.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.failed, self.processes, self.helper, self._ended = [], {}, None, threading.Event()

    def run(self):
        while not self._ended.wait(0.005):
            try:  # WNOWAIT leaves the process to the code that waits for it
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            except ChildProcessError:
                continue
            if info is not None and self.helper is not None and info.si_pid == self.helper.pid:
                self.helper.poll()  # else it would be in the place of the next one that ends
            elif info is not None and info.si_status and all(pid != info.si_pid for pid, _ in self.failed):
                self.failed.append((info.si_pid, info.si_status if info.si_code == os.CLD_EXITED else -info.si_status))

    def stop(self):
        """Stop the thread."""
        self._ended.set()


def _run_workers(args, count, command, env, exits):
    """Run workers under torchrun's agent; return the status of the first one that failed, or 0."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.update(env)
    nodes = sum(1 for workers, _ in args.layout if workers)
    config = LaunchConfig(min_nodes=nodes, max_nodes=nodes, nproc_per_node=count, run_id=args.job, role="worker", rdzv_endpoint=args.meet,
                          rdzv_backend="c10d", rdzv_configs={"is_host": "false", "timeout": 300}, max_restarts=0, monitor_interval=0.1)
    try:
        with _same_handlers():
            elastic_launch(config, command[0])(*command[1:])
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        name, code = f"worker {rank}", failure.exitcode
        workers = {failed.pid: f"worker {number}" for number, failed in error.failures.items()}
        for pid, status in exits.failed:
            if pid in workers or pid in exits.processes:
                name, code = workers.get(pid) or exits.processes[pid], status
                break
        _log.error("%s ended with %s; the others were stopped", name, f"status {code}" if code > 0 else signal.Signals(-code).name)
        return code if code > 0 else 128 - code
    except SignalException as error:
        raise SystemExit(128 + error.sigval) from None  # it ends the launcher: a status would let the job start again
    return 0


def _end(processes):
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# -- other machines ---------------------------------------------------------------------------------------------------------------


def _own_command(args, node):
    """Return the command line of this program for another machine, and the variables that are passed on."""
    flags = ["-n", str(args.num_workers), "-s", str(args.num_servers), "--launcher", args.launcher, "--meet", args.meet, "--job", args.job,
             "--node", str(node), "--layout", ",".join(f"{w}:{s}" for w, s in args.layout)]
    for flag, given in (("--env-worker", args.env_worker), ("--env-server", args.env_server)):
        flags += [part for text in given for part in (flag, text)]
    names = [*args.env, *(name for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "DMLC_INTERFACE") if name not in args.env)]
    variables = {name: os.environ[name] for name in names if name in os.environ}
    flags += ["--preload", ",".join(args.preload)] if args.preload else []
    return [sys.executable, "-m", "mxnet.tools.launch", *flags, *(["--p3"] if args.p3 else []), "--", *args.command], variables


def _run_remote(args, hosts):
    if args.launcher == "ssh":
        folder = args.sync_dst_dir or os.getcwd()
        if args.sync_dst_dir:
            for host in hosts:
                subprocess.run(["rsync", "-az", "-e", "ssh -o StrictHostKeyChecking=no", f"{os.getcwd()}/", f"{host}:{folder}"], check=True)
        started = []
        for i, host in enumerate(hosts):
            command, variables = _own_command(args, i)
            words = shlex.join(["env", *(f"{name}={value}" for name, value in variables.items()), *command])
            started.append(subprocess.Popen(["ssh", "-o", "StrictHostKeyChecking=no", host, f"cd {shlex.quote(folder)} && exec {words}"],
                                            stdin=subprocess.DEVNULL))
        return _wait_for_all(started)
    command, variables = _own_command(args, "auto")
    if args.launcher == "mpi":
        given = [part for name in variables for part in ("-x", name)]
        return _wait_for_all([subprocess.Popen(["mpirun", "-n", str(len(hosts)), "--map-by", "node", "--hostfile", args.hostfile, *given, *command])])
    where = ["-w", ",".join(hosts)] if hosts[0] else []
    count = str(len(hosts))
    flags = ["--nodes", count, "--ntasks", count, "--ntasks-per-node", "1", "--export", "ALL", *where]
    return _wait_for_all([subprocess.Popen(["srun", *flags, *command])])


def _wait_for_all(started):
    """Wait for all processes and return the first status that is not 0, else 0; a failure ends the others."""
    running, status = list(started), 0
    try:
        while running and not status:
            for process in list(running):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = status or process.wait(0.1)
                    running.remove(process)
    finally:
        _end(running)
    return status


if __name__ == "__main__":
    sys.exit(main())
