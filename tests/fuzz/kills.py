"""Killed writers: `python -m tests.fuzz --kills 1000 --seed S [--only nd.save] [--jobs 2]`.

For each writer of the project child processes save one version of a file after the other, and are killed at a moment drawn at random: most by
SIGKILL, some by SIGTERM or Ctrl-C. Then the file must be whole and one of the versions written last, and after the next save nothing but it
may be left in the folder.
"""
import contextlib
import faulthandler
import gc
import hashlib
import io
import json
import mmap
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
import weakref
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import cv2
import numpy as np

import mxnet as mx
from mxnet import gluon
from mxnet.contrib.text import embedding
from mxnet.gluon.model_zoo import model_store
from mxnet.optimizer import pickles
from mxnet.test_utils import data as test_data
from mxnet.tools import im2rec

from .supervise import circumstances, shared_memory

_SIGNALS = [signal.SIGKILL] * 8 + [signal.SIGTERM, signal.SIGINT]


class Writer(NamedTuple):
    """``save(version)`` writes it, ``load()`` gives the version that is there; `files` are all that may be in the folder."""

    save: Callable[[int], object]
    load: Callable[[], int]
    files: tuple[str, ...]


def _array(version):
    """An array that tells its version, of a size that changes."""
    return mx.nd.full((1000 + version % 7 * 3000,), version, dtype="int64")


def _version(array):
    values = array.asnumpy()
    if values.size not in range(1000, 20000, 3000) or (values != values[0]).any() or values.size != 1000 + values[0] % 7 * 3000:
        raise AssertionError(f"no version: {values.shape}, {np.unique(values)[:5]}")
    return int(values[0])


# -- the writers -----------------------------------------------------------------------------------------------------

def _nd_save(folder):
    path = f"{folder}/a.params"
    return Writer(lambda v: mx.nd.save(path, {"a": _array(v), "b": mx.nd.ones((3,))}), lambda: _version(mx.nd.load(path)["a"]), ("a.params",))


def _npx_save(folder):
    path = f"{folder}/a.npy"
    return Writer(lambda v: mx.npx.save(path, _array(v).as_np_ndarray()), lambda: _version(mx.npx.load(path)[0]), ("a.npy",))


def _symbol_save(folder):
    path = f"{folder}/a.json"

    def save(version):
        net = mx.sym.var("x")
        for _ in range(30):
            net = net + version
        net.save(path)

    def load():
        attributes = mx.sym.load(path).attr_dict().values()
        found = {a["scalar"] for a in attributes if "scalar" in a}
        assert len(found) == 1 and len(attributes) == 30
        return int(float(found.pop()))

    return Writer(save, load, ("a.json",))


def _net():
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(64, in_units=32, use_bias=False), gluon.nn.Dense(2, in_units=64))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 32)))
    return net


def _one(*arrays):
    """The number that fills all arrays."""
    found = {float(x) for a in arrays for x in np.unique(a.asnumpy())}
    assert len(found) == 1, found
    return int(found.pop())


def _filled(parameters, version):
    for parameter in parameters:
        parameter.data()[:] = version


def _save_parameters(folder):
    net, path = _net(), f"{folder}/a.params"
    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.save_parameters(path)), lambda: _one(*mx.nd.load(path).values()),
                  ("a.params",))


def _parameter_dict(folder):
    net, path = _net(), f"{folder}/a.params"
    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.collect_params().save(path)), lambda: _one(*mx.nd.load(path).values()),
                  ("a.params",))


def _export(folder):
    net, path = _net(), f"{folder}/a"

    def load():
        block = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
        return _one(*(p.data() for p in block.collect_params().values()))

    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.export(path)), load, ("a-0000.params", "a-symbol.json"))


def _block_save(folder):
    net = _net()

    def load():
        other = _net()
        other.load(f"{folder}/a")
        return _one(*(p.data() for p in other.collect_params().values()))

    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.save(f"{folder}/a")), load, ("a-model.json", "a-model.params"))


def _states(version):
    return {0: _array(version), 1: mx.nd.ones((2,))}


def _state_file(path):
    found = pickles.loads(pathlib.Path(path).read_bytes())
    return _version((found[0] if isinstance(found, tuple) else found)[0])


def _trainer(folder):
    net, path = _net(), f"{folder}/a.states"
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore=None)
    trainer._prepare()

    def save(version):
        trainer._updaters[0].states = _states(version)
        trainer.save_states(path)

    return Writer(save, lambda: _state_file(path), ("a.states",))


def _kvstore(folder):
    store, path = mx.kv.create("local"), f"{folder}/a.states"
    store.set_optimizer(mx.optimizer.SGD(momentum=0.9))

    def save(version):
        store._updater.states = _states(version)
        store.save_optimizer_states(path, dump_optimizer=True)

    return Writer(save, lambda: _state_file(path), ("a.states",))


def _module(folder):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=50, no_bias=True, name="f")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=mx.cpu())
    module.bind([("data", (1, 40))], [("softmax_label", (1,))])
    module.init_params()
    module.init_optimizer(kvstore=None)

    def save(version):
        module.set_params({"f_weight": mx.nd.full((50, 40), version)}, {})
        module._updater.states = _states(version)
        module.save_checkpoint(f"{folder}/a", 1, save_optimizer_states=True)

    def load():
        _, arguments, _ = mx.model.load_checkpoint(f"{folder}/a", 1)
        return _one(*arguments.values()), _state_file(f"{folder}/a-0001.states")

    return Writer(save, load, ("a-0001.params", "a-0001.states", "a-symbol.json"))


def _checkpoint(folder):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=50, name="f")

    def save(version):
        mx.model.save_checkpoint(f"{folder}/a", 3, net, {"f_weight": mx.nd.full((50, 40), version)}, {"f_mean": mx.nd.full((9,), version)})

    def load():
        _, arguments, states = mx.model.load_checkpoint(f"{folder}/a", 3)
        return _one(*arguments.values(), *states.values())

    return Writer(save, load, ("a-0003.params", "a-symbol.json"))


def _profiler(folder):
    path = f"{folder}/a.json"

    def save(version):
        mx.profiler.set_config(filename=path, profile_all=True)
        mx.profiler.set_state("run")
        for _ in range(200):
            mx.profiler.Marker("some", f"v{version}").mark()
        mx.profiler.set_state("stop")
        mx.profiler.dump()

    def load():
        names = [e["name"] for e in json.loads(pathlib.Path(path).read_text())["traceEvents"] if e.get("ph") == "i"]
        assert names and len(names) % 200 == 0
        return int(names[-1].removeprefix("v"))

    return Writer(save, load, ("a.json",))


def _payload(version, i):
    return b"%d %d " % (version, i) + bytes([version % 251]) * (version * 7 % 3000)


def _check(records):
    version = int(records[0].split(b" ")[0])
    assert records == [_payload(version, i) for i in range(100 + version % 5)], "records of several versions, or too few"
    return version


def _recordio(folder):
    path = f"{folder}/a.rec"

    def save(version):
        writer = mx.recordio.MXRecordIO(path, "w")
        for i in range(100 + version % 5):
            writer.write(_payload(version, i))
        if version % 3:
            writer.close()  # else the end of the object does it

    def load():
        with mx.recordio.MXRecordIO(path, "r") as reader:
            return _check(list(iter(reader.read, None)))

    return Writer(save, load, ("a.rec",))


def _indexed_recordio(folder):
    base = f"{folder}/a"

    def save(version):
        writer = mx.recordio.MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "w")
        for i in range(100 + version % 5):
            writer.write_idx(i, _payload(version, i))
        writer.close()

    def load():
        with mx.recordio.MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "r") as reader:
            return _check([reader.read_idx(i) for i in reader.keys])

    return Writer(save, load, ("a.idx", "a.rec"))


def _im2rec_list(folder):
    path = f"{folder}/a.lst"

    def load():
        found = {line.split("\t")[1] for line in pathlib.Path(path).read_text().splitlines()}
        assert len(found) == 1
        return int(float(found.pop()))

    def save(version):
        with contextlib.redirect_stderr(io.StringIO()):
            im2rec.write_list(path, [(i, f"{i}.png", version) for i in range(300)])

    return Writer(save, load, ("a.lst",))


def _im2rec_record(folder):
    import tqdm
    base = f"{folder}/a"
    tqdm.tqdm.set_lock(threading.RLock())  # its own is shared with child processes, and stays locked with those that are killed
    tqdm.tqdm.monitor_interval = 0
    picture = cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes()
    (folder / "a.png").write_bytes(picture)

    def save(version):
        (folder / "a.lst").write_text("".join(f"{i}\t{version}\ta.png\n" for i in range(20 + version % 3)))
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            code = im2rec.main([base, str(folder), "--pass-through"])
        if code:
            raise KeyboardInterrupt  # the program ends so

    def load():
        with mx.recordio.MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "r") as reader:
            found = [mx.recordio.unpack(reader.read_idx(i)) for i in reader.keys]
        version = int(found[0][0].label)
        assert [h.label for h, _ in found] == [version] * (20 + version % 3) and all(i == picture for _, i in found)
        return version

    return Writer(save, load, ("a.idx", "a.lst", "a.png", "a.rec"))


class _Response:
    status_code, headers = 200, types.MappingProxyType({})

    def __init__(self, content):
        self.content = content

    def close(self):
        pass

    def iter_content(self, chunk_size):
        for i in range(0, len(self.content), chunk_size):
            yield self.content[i:i + chunk_size]


def _serve(content):
    """Let downloads give these bytes; the tests have no network."""
    sys.modules["requests"] = types.SimpleNamespace(
        get=lambda url, **_: _Response(content), RequestException=OSError, TooManyRedirects=RecursionError)


def _published(version):
    return b"%08d" % version * 30000


def _downloaded(path):
    content = pathlib.Path(path).read_bytes()
    version = int(content[:8])
    assert content == _published(version)
    return version


def _fetch(content, path):
    _serve(content)
    with contextlib.redirect_stdout(io.StringIO()):
        gluon.utils.download("https://example.org/a.bin", path, overwrite=True)


def _download(folder):
    path = f"{folder}/a.bin"
    return Writer(lambda v: _fetch(_published(v), path),
                  lambda: _downloaded(path), ("a.bin",))


def _zipped(name, content):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, content)
    return made.getvalue()


def _pretrained(folder):
    name, path = "squeezenet1.0", folder / "squeezenet1.0-12345678.params"
    model_store.short_hash = lambda _: "12345678"  # else each version would have another name

    def save(version):
        content = _published(version)
        model_store._model_sha1[name] = hashlib.sha1(content).hexdigest()
        _serve(_zipped(path.name, content))
        with contextlib.redirect_stdout(io.StringIO()):
            model_store.get_model_file(name, str(folder))

    return Writer(save, lambda: _downloaded(path), (path.name,))


def _unpacked(folder):
    path = f"{folder}/a.vec"
    return Writer(lambda v: embedding._unpack(io.BytesIO(_published(v)), str(folder), "x/a.vec"), lambda: _downloaded(path), ("a.vec",))


def _mnist(folder):
    path = f"{folder}/a.bin"
    return Writer(lambda v: test_data._write(path, io.BytesIO(_published(v))), lambda: _downloaded(path), ("a.bin",))


WRITERS = {
    "nd.save": _nd_save, "npx.save": _npx_save, "Symbol.save": _symbol_save, "Block.save_parameters": _save_parameters,
    "ParameterDict.save": _parameter_dict, "HybridBlock.export": _export, "Block.save": _block_save, "Trainer.save_states": _trainer,
    "KVStore.save_optimizer_states": _kvstore, "Module.save_checkpoint": _module, "model.save_checkpoint": _checkpoint, "profiler.dump": _profiler,
    "MXRecordIO": _recordio, "MXIndexedRecordIO": _indexed_recordio, "im2rec list": _im2rec_list, "im2rec record": _im2rec_record,
    "gluon.utils.download": _download, "model_store.get_model_file": _pretrained, "embedding archive": _unpacked, "test_utils download": _mnist,
}


# -- killing ---------------------------------------------------------------------------------------------------------

class _Shared:
    """What a child tells its parent: the versions that it began and finished to write."""

    def __init__(self):
        self._map = mmap.mmap(-1, 4096)
        self.numbers = memoryview(self._map).cast("q")

    begun = property(lambda self: self.numbers[0], lambda self, value: self.numbers.__setitem__(0, value))
    done = property(lambda self: self.numbers[1], lambda self, value: self.numbers.__setitem__(1, value))


def _child(writer, shared, version):
    """Save for ever; a child process never returns from here."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        faulthandler.enable()  # says where, if it gets stuck
        while True:
            shared.begun = version
            writer.save(version)
            shared.done = version
            version += 1
    except KeyboardInterrupt as error:
        # As the interpreter ends a program: what nobody caught is kept, and what is left is finalized.
        sys.last_value = error
        weakref.finalize._exitfunc()
        os._exit(130)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _wait(pid, how):
    """How a process ended; over 30 s it is an error. Ctrl-C is pressed again then and now: Python loses one that comes when it enters a finalizer."""
    descriptor = os.pidfd_open(pid)
    try:
        for _ in range(10):
            stuck = not select.select([descriptor], [], [], 3)[0]
            if not stuck:
                break
            if how == signal.SIGINT:
                os.kill(pid, how)
    finally:
        os.close(descriptor)
    if stuck:
        os.kill(pid, signal.SIGABRT)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "over 30 s" if stuck else code


def _as_versions(found):
    return found if isinstance(found, tuple) else (found,)


def kill_writer(name, kills, seed, report=print):
    """Kill a writer so many times; what went wrong, as texts."""
    rng, failures = random.Random(f"{seed} {name}"), []
    folder = pathlib.Path(tempfile.mkdtemp(dir=shared_memory(), prefix="fuzz-kills-"))
    try:
        writer, shared, version = WRITERS[name](folder), _Shared(), 1
        writer.save(version)
        begin = time.perf_counter()
        for _ in range(3):
            version += 1
            writer.save(version)
        span = (time.perf_counter() - begin) / 3
        gc.freeze()
        for number in range(kills):
            how = rng.choice(_SIGNALS)
            shared.begun = shared.done = version
            pid = os.fork()
            if pid == 0:
                _child(writer, shared, version + 1)
            deadline = time.monotonic() + 30
            while shared.begun == version and time.monotonic() < deadline:
                time.sleep(0.0002)
            time.sleep(rng.uniform(0, 3 * span))
            os.kill(pid, how)
            ended = _wait(pid, how)
            problem = None
            if ended not in (-how, 130 if how == signal.SIGINT else -how):
                problem = f"the process ended with {ended}"
            try:
                for found in _as_versions(writer.load()):
                    if found is not None and not shared.done <= found <= shared.begun:
                        problem = f"version {found} is there, {shared.done} was complete and {shared.begun} begun"
            except Exception:
                problem = traceback.format_exc(limit=-4)
            version = shared.begun + 1
            writer.save(version)
            try:
                if set(_as_versions(writer.load())) != {version}:
                    problem = f"version {version} was saved, {writer.load()} is there"
            except Exception:
                problem = traceback.format_exc(limit=-4)
            left = [p.name for p in folder.iterdir() if not any(p.match(f) for f in writer.files)]
            if left:
                problem = f"left over: {left}"
            if problem:
                failures.append(f"{name}, kill {number} ({signal.Signals(how).name}): {problem}")
                report(failures[-1])
                for path in left:
                    subprocess.run(["rm", "-rf", folder / path])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return failures


def run(kills, seed, only=(), command=""):
    """Kill all writers; print a report; the number of failures."""
    begin, rows = time.monotonic(), []
    for name in WRITERS:
        if only and not any(name.startswith(o) for o in only):
            continue
        start = time.monotonic()
        failures = kill_writer(name, kills, seed)
        rows.append((name, len(failures), time.monotonic() - start))
        print(f"{name}: {kills} kills, {len(failures)} failures, {rows[-1][2]:.0f} s", file=sys.stderr, flush=True)
    lines = [*circumstances(command, time.monotonic() - begin),
             f"- Kills: {kills * len(rows):,}, seed {seed}; 8 of 10 by SIGKILL, one by SIGTERM, one by Ctrl-C",
             f"- Failures: {sum(r[1] for r in rows) or 'none'}", "",
             "| writer | kills | not whole, or something left over | s |", "|---|--:|--:|--:|",
             *(f"| {name} | {kills:,} | {failed} | {seconds:.0f} |" for name, failed, seconds in rows)]
    print("\n".join(lines))
    return sum(r[1] for r in rows)
