"""A target for each reader of files."""
import functools
import gzip
import itertools
import pathlib
import pickle
import struct
import tempfile

import cv2
import numpy as np

import mxnet as mx
from mxnet.io.image_list import read_image_list
from mxnet.optimizer import pickles

from .campaign import Target
from .mutations import mutated
from .supervise import shared_memory

_DATA = pathlib.Path(__file__).parents[1] / "data"


@functools.cache
def _folder():
    folder = tempfile.TemporaryDirectory(prefix="remex-fuzz-", dir=tempfile.tempdir or shared_memory())
    _folder.kept = folder  # removed with the process
    return pathlib.Path(folder.name)


def _file(content, name):
    path = _folder() / name
    path.write_bytes(content)
    return str(path)


def _written(write, name):
    path = _folder() / name
    write(str(path))
    return path.read_bytes()


# -- good files ------------------------------------------------------------------------------------------------------

def _params():
    arrays = {"a": mx.nd.ones((2, 3)), "b": mx.nd.arange(4, dtype="int64"), "c": mx.nd.zeros((1,), dtype="float16")}
    sparse = [mx.nd.array([[1, 0], [0, 2]]).tostype("csr"), mx.nd.array([[1, 0], [0, 0]]).tostype("row_sparse")]
    legacy = struct.pack("<QQQ", 0x112, 0, 1) + struct.pack("<I2I3i2fQ", 2, 1, 2, 1, 0, 0, 1.0, 2.0, 0)
    return [_written(lambda p: mx.nd.save(p, arrays), "seed"), _written(lambda p: mx.nd.save(p, sparse), "seed"), legacy,
            (_DATA / "mxnet191-0005.params").read_bytes()]


def _json():
    data = mx.sym.var("data", shape=(0, 3, 8, 8), lr_mult=2)
    net = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.BatchNorm(net, name="bn")
    net = mx.sym.Pooling(mx.sym.LeakyReLU(net, act_type="elu"), kernel=(2, 2), pool_type="max", global_pool=True)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3), name="softmax")
    parts = mx.sym.split(mx.sym.var("x"), num_outputs=2)
    some = mx.sym.Concat(parts[0], parts[1], mx.sym.transpose(mx.sym.var("y"), axes=(1, 0)), dim=0)
    loop, state = mx.sym.contrib.foreach(lambda row, s: (row + s, row * s), mx.sym.var("rows"), mx.sym.var("state"))
    rnn = mx.sym.RNN(mx.sym.var("d"), mx.sym.var("p"), mx.sym.var("s"), state_size=3, num_layers=2, mode="gru")
    split = mx.sym._internal._split_v2(mx.sym.var("x"), indices=(0, 2), axis=1)
    return [s.tojson().encode() for s in (net, some, mx.sym.Group([loop, state]), rnn, split)] + [(_DATA / "mxnet191-symbol.json").read_bytes()]


def _states():
    seeds = []
    for name, options in (("sgd", {"momentum": 0.9}), ("adam", {"learning_rate": 0.01, "lr_scheduler": mx.lr_scheduler.FactorScheduler(3)})):
        updater, weight = mx.optimizer.get_updater(mx.optimizer.create(name, **options)), mx.nd.ones((2, 2))
        updater(0, weight.copy(), weight)
        seeds += [updater.get_states(True), updater.get_states(False)]
    values = (np.arange(3), np.float32(1), {1, 2}, bytearray(b"a"), mx.cpu(), [(1, {"a": None})])
    return [*seeds, *(pickle.dumps(values, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)), (_DATA / "mxnet191-0005.states").read_bytes()]


def _mnist():
    images = struct.pack(">I3I", 0x803, 4, 3, 2) + bytes(range(24))
    return [images, gzip.compress(images, mtime=0)]


_PICTURE = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)


def _images():
    return [cv2.imencode(e, _PICTURE)[1].tobytes() for e in (".png", ".jpg", ".bmp", ".webp", ".ppm", ".tiff")]


def _record(labels):
    def write(path):
        writer = mx.recordio.MXRecordIO(path, "w")
        for i, label in enumerate(labels):
            writer.write(mx.recordio.pack(mx.recordio.IRHeader(0, label, i, 0), cv2.imencode((".jpg", ".png")[i % 2], _PICTURE)[1].tobytes()))
        writer.close()
    return _written(write, "seed")


def _records():
    return [_record([1.0, 2.0]), _record([[1, 2], [3, 4], [5, 6]]), (_DATA / "mxnet191.rec").read_bytes()]


def _detections():
    return [_record([[2, 5, 0, 0.1, 0.2, 0.5, 0.9], [2, 5, 1, 0, 0, 1, 1, 0, 0.2, 0.2, 0.4, 0.4]])]


# -- readers ---------------------------------------------------------------------------------------------------------

def _read_params(case):
    arrays = mx.nd.load(_file(case, "a.params"))
    for array in arrays.values() if isinstance(arrays, dict) else arrays:
        if array is not None and array._is_sparse and array.size < 1 << 20:
            array.asnumpy()


def _read_json(case):
    symbol = mx.sym.load(_file(case, "a.json"))
    symbol.list_arguments(), symbol.list_auxiliary_states(), symbol.list_outputs(), symbol.tojson()
    symbol.infer_shape_partial()


def _read_states(case):
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    updater.set_states(case)
    updater.sync_state_context(updater.states, mx.cpu())


def _read_values(case):
    pickles.loads(case)


def _batches(iterator):
    for batch in itertools.islice(iterator, 5):
        batch.data[0].asnumpy(), batch.label[0].asnumpy()


def _read_mnist(case):
    label = _file(struct.pack(">2I", 0x801, 4) + bytes(4), "labels")
    _batches(mx.io.MNISTIter(image=_file(case, "images"), label=label, batch_size=2, silent=True))


def _read_csv(case):
    _batches(mx.io.CSVIter(data_csv=_file(case, "a.csv"), data_shape=(3,), batch_size=2))


def _read_libsvm(case):
    _batches(mx.io.LibSVMIter(data_libsvm=_file(case, "a.svm"), data_shape=(6,), batch_size=2))


def _read_record(case):
    with mx.recordio.MXRecordIO(_file(case, "a.rec"), "r") as records:
        while (record := records.read()) is not None:
            mx.recordio.unpack_img(record)


@functools.cache
def _indexed():
    return _file(_records()[0], "b.rec")


def _read_index(case):
    with mx.recordio.MXIndexedRecordIO(_file(case, "b.idx"), _indexed(), "r") as records:
        for key in records.keys[:5]:
            records.read_idx(key)


def _read_image_record(case):
    _batches(mx.io.ImageRecordIter(path_imgrec=_file(case, "c.rec"), data_shape=(3, 4, 4), batch_size=1, label_width=1, preprocess_threads=1))


def _read_detection(case):
    _batches(mx.io.ImageDetRecordIter(path_imgrec=_file(case, "d.rec"), data_shape=(3, 4, 4), batch_size=1, preprocess_threads=1, verbose=False))


def _read_list(case):
    path = _file(case, "a.lst")
    list(read_image_list(path))
    list(read_image_list(path, 2))


def _read_image(case):
    mx.image.imdecode(case).asnumpy()


def _target(name, seeds, read, text=False):
    seeds = functools.cache(seeds)
    return Target(f"readers.{name}", lambda rng: mutated(rng.choice(seeds()), rng, seeds(), text and rng.random() < 0.9), read)


TARGETS = [
    _target("params", _params, _read_params),
    _target("json", _json, _read_json, text=True),
    _target("states", _states, _read_states),
    _target("pickles", _states, _read_values),
    _target("mnist", _mnist, _read_mnist),
    _target("csv", lambda: [b"1,2,3\n4,5,6\n7,8,9.5\n"], _read_csv, text=True),
    _target("libsvm", lambda: [b"1 0:1 2:3.5\n0 1:2 5:1 # x\n1.5 qid:3 4:2\n"], _read_libsvm, text=True),
    _target("record", _records, _read_record),
    _target("index", lambda: [b"0\t0\n1\t300\n2\t700\n", b"0\t0\n"], _read_index, text=True),
    _target("image_record", _records, _read_image_record),
    _target("detection", _detections, _read_detection),
    _target("list", lambda: [b"0\t1\t2\ta.jpg\n5\t0.5\t3\tb/c.png\n", b"0 1 2 a.jpg\n"], _read_list, text=True),
    _target("image", _images, _read_image),
]
