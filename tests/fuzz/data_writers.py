"""The writers of records, lists, profiles, downloads and kernels, which `kills` kills."""
import contextlib
import hashlib
import io
import json
import pathlib
import re
import sys
import tarfile
import threading
import types
import zipfile

import cv2
import numpy as np

import mxnet as mx
from mxnet import gluon, interrupts
from mxnet.contrib.text import datasets as text_datasets
from mxnet.contrib.text import embedding
from mxnet.gluon.data.vision import datasets
from mxnet.gluon.model_zoo import model_store
from mxnet.io import image_batches
from mxnet.kernels.runtime import build, libraries, tuning
from mxnet.test_utils import data as test_data
from mxnet.tools import im2rec, rec, rec2idx

from .making import Writer

# -- records and profiles --------------------------------------------------------------------------------------------

_MARKED = re.compile(r'"v([0-9]+)"')


def _report(folder):
    path = f"{folder}/a.html"

    def save(version):
        (folder / "t.json").write_text(json.dumps([{"name": f"v{version}", "ph": "X", "ts": 1, "dur": 2, "pid": 0, "tid": 1}]))
        mx.profiler.report(path, profile=f"{folder}/t.json")

    def load():
        text = pathlib.Path(path).read_text()
        assert text.rstrip().endswith("</html>")
        return int(_MARKED.search(text)[1])

    return Writer(save, load, ("a.html", "t.json"))


def _records(path, version):
    with mx.recordio.MXRecordIO(path, "w") as records:
        for i in range(100 + version % 5):
            records.write(_payload(version, i))


def _own_progress():
    """Give progress bars a lock of this process: their own is shared with child processes, and stays locked with those that are killed."""
    import tqdm
    tqdm.tqdm.set_lock(threading.RLock())
    tqdm.tqdm.monitor_interval = 0


def _repair(folder):
    _own_progress()
    source, base = f"{folder}/s.rec", f"{folder}/a"

    def save(version):
        _records(source, version)
        with contextlib.redirect_stderr(io.StringIO()):
            rec.repair(source, f"{base}.rec")

    def load():
        with mx.recordio.MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "r") as reader:
            return _check([reader.read_idx(i) for i in reader.keys])

    return Writer(save, load, ("s.rec", "a.rec", "a.idx"))


def _rec2idx(folder):
    _own_progress()
    source, path = f"{folder}/s.rec", f"{folder}/a.idx"

    def save(version):
        with mx.recordio.MXRecordIO(source, "w") as records:
            for _ in range(30):
                records.write(bytes(4 * version))
        with contextlib.redirect_stderr(io.StringIO()):
            rec2idx.make_index(source, path)

    def load():
        offsets = [int(line.split("\t")[1]) for line in pathlib.Path(path).read_text().splitlines()]
        assert offsets == [i * offsets[1] for i in range(30)]
        return offsets[1] // 4 - 2

    return Writer(save, load, ("s.rec", "a.idx"))


def _mean_image(folder):
    path = folder / "a.mean"

    def save(version):
        path.unlink(missing_ok=True)  # one that is there is used
        batches = types.SimpleNamespace(mean_image=lambda: np.full((3, 40, 50), version, np.float32))
        assert image_batches.load_mean_image(str(path), (3, 40, 50), batches, False)[0, 0, 0] == version

    def load():
        if not path.exists():
            return None
        found, = {*mx.nd.load(str(path))["mean_img"].asnumpy().ravel()}
        return int(found)

    return Writer(save, load, ("a.mean",))


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
    base = f"{folder}/a"
    _own_progress()
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


def _zipped(content, *names):
    made = io.BytesIO()
    with interrupts.deferred(), zipfile.ZipFile(made, "w") as archive:  # a Ctrl-C makes a ValueError of what is not closed
        for name in names:
            archive.writestr(name, content)
    return made.getvalue()


def _pretrained(folder):
    name, path = "squeezenet1.0", folder / "squeezenet1.0-12345678.params"
    model_store.short_hash = lambda _: "12345678"  # else each version would have another name

    def save(version):
        content = _published(version)
        model_store._model_sha1[name] = hashlib.sha1(content).hexdigest()
        _serve(_zipped(content, path.name))
        with contextlib.redirect_stdout(io.StringIO()):
            model_store.get_model_file(name, str(folder))

    return Writer(save, lambda: _downloaded(path), (path.name,))


def _unpacked(folder):
    path = f"{folder}/a.vec"
    return Writer(lambda v: embedding._unpack(io.BytesIO(_published(v)), str(folder), "x/a.vec"), lambda: _downloaded(path), ("a.vec",))


def _mnist(folder):
    path = f"{folder}/a.bin"
    return Writer(lambda v: test_data._write(path, io.BytesIO(_published(v))), lambda: _downloaded(path), ("a.bin",))


def _text(folder):
    path, archive = folder / "wiki.test.tokens", f"{folder}/a.zip"
    text = object.__new__(text_datasets.WikiText2)
    text._root, text._segment, text._namespace = str(folder), "test", "wikitext-2"
    text_datasets.download = lambda url, path, sha1_hash: archive

    def save(version):
        path.unlink(missing_ok=True)  # one that is there is used
        pathlib.Path(archive).write_bytes(_zipped(_published(version), f"w/{path.name}"))
        text._file()

    return Writer(save, lambda: _downloaded(path) if path.exists() else None, (path.name, "a.zip"))


def _cifar(folder):
    path, archive = folder / "data_batch_1.bin", f"{folder}/a.tar"
    images = object.__new__(datasets.CIFAR10)
    images._root = str(folder)
    images._read_batch = lambda path: pathlib.Path(path).exists() or images._missing()
    datasets.download = lambda url, path, sha1_hash: archive

    def missing():
        raise datasets._Unreadable("missing")

    def save(version):
        path.unlink(missing_ok=True)  # one that is there is used
        member = tarfile.TarInfo(f"c/{path.name}")
        member.size = len(_published(version))
        with tarfile.open(archive, "w") as tar:
            tar.addfile(member, io.BytesIO(_published(version)))
        images._read_parts({path.name: ""})

    images._missing = missing
    return Writer(save, lambda: _downloaded(path) if path.exists() else None, (path.name, "a.tar"))


def _archive(folder):
    """Of several files, which are there when the archive is."""
    archive = folder / "a.zip"

    def save(version):
        archive.unlink(missing_ok=True)  # one that is there is used
        content = _zipped(_published(version), "first", "inside/second")
        test_data.download = lambda url, fname, dirname=None: pathlib.Path(dirname or "", fname).write_bytes(content)
        test_data.get_zip_data(str(folder), "https://example.org/a.zip", "a.zip")

    def load():
        return tuple(map(_downloaded, (folder / "first", folder / "inside/second"))) if archive.exists() else None

    return Writer(save, load, ("a.zip", "first", "inside"))


def _tuning_cache(folder):
    """A cache of the autotuner."""
    found = tuning.Autotuner("a", "nn/nms")
    libraries.folder, path = lambda: folder, folder / f"a-{libraries.fingerprint('nn/nms')}.json"

    def save(version):
        found.keep("key", f"v{version}")
        assert found.get("key") == f"v{version}"

    return Writer(save, lambda: int(json.loads(path.read_text())["key"][1:]), (path.name,))


def _kernel(folder):
    path = folder / "a.so"

    def content(version):
        made = _published(version)
        return made + hashlib.sha256(made).digest()

    def load():
        if not path.exists():
            return None  # a damaged one goes before another is written
        found = path.read_bytes()
        assert build.is_complete(found) and found == content(int(found[:8]))
        return int(found[:8])

    return Writer(lambda v: libraries._store(path, content(v)), load, ("a.so",))


WRITERS = {
    "profiler.dump": _profiler, "MXRecordIO": _recordio, "MXIndexedRecordIO": _indexed_recordio, "im2rec list": _im2rec_list,
    "im2rec record": _im2rec_record, "profiler.report": _report, "rec repair": _repair, "rec2idx": _rec2idx, "mean image": _mean_image,
    "text data set": _text, "CIFAR10": _cifar, "test_utils.get_zip_data": _archive, "kernel": _kernel, "winners of races": _tuning_cache,
    "gluon.utils.download": _download,
    "model_store.get_model_file": _pretrained, "embedding archive": _unpacked, "test_utils download": _mnist,
}
