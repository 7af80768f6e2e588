"""A target for each reader of data, arrays and states."""
import bz2
import functools
import gzip
import importlib.util
import io
import itertools
import json
import os
import pathlib
import pickle
import random
import struct
import unittest.mock
import zipfile

import cv2
import numpy as np

import mxnet as mx
from mxnet import resumption
from mxnet.gluon.data.vision import datasets
from mxnet.gluon.model_zoo import model_store
from mxnet.io.image_list import read_image_list
from mxnet.optimizer import pickles
from mxnet.test_utils import data as test_data
from mxnet.tools import parse_log, rec, rec2idx

from .making import DATA, file, folder, target, written
from .mutations import mutated, mutated_json, mutated_pickle

# -- good files ------------------------------------------------------------------------------------------------------

def _params():
    arrays = {"a": mx.nd.ones((2, 3)), "b": mx.nd.arange(4, dtype="int64"), "c": mx.nd.zeros((1,), dtype="float16")}
    sparse = [mx.nd.array([[1, 0], [0, 2]]).tostype("csr"), mx.nd.array([[1, 0], [0, 0]]).tostype("row_sparse")]
    legacy = [struct.pack("<QQQ", 0x112, 0, 1) + array + struct.pack("<2Q1s", 1, 1, b"a") for array in (
        struct.pack("<I2I3i2f", 2, 1, 2, 1, 0, 0, 1.0, 2.0), struct.pack("<Ii2q3i2f", 0xF993FAC8, 2, 1, 2, 1, 0, 0, 1.0, 2.0))]
    return [written(lambda p: mx.nd.save(p, arrays)), written(lambda p: mx.nd.save(p, sparse)), *legacy,
            (DATA / "mxnet191-0005.params").read_bytes()]


def _numpy_params():
    with mx.np_shape():
        arrays = {"a": mx.np.ones(()), "b": mx.np.zeros((0, 3)), "c": mx.np.array([True, False])}
        return [written(lambda p: mx.npx.save(p, arrays)), written(lambda p: mx.npx.save(p, mx.np.ones((2, 3))))]


def _npz():
    arrays = {"a": mx.nd.ones((2, 3)), "b": mx.nd.arange(4, dtype="int64")}

    def deflated(path):
        np.savez_compressed(path, a=np.ones((5, 7), "float32"), b=np.asfortranarray(np.ones((2, 3))))
        os.replace(f"{path}.npz", path)

    return [written(lambda p: mx.npx.savez(p, **{name: array.as_np_ndarray() for name, array in arrays.items()})), written(deflated)]


def _npy():
    def save(path):
        with open(path, "wb") as f:
            np.save(f, np.arange(6, dtype="float32").reshape(2, 3))

    return [written(save)]


def _safetensors():
    def save(path):
        mx.nd.save(f"{path}.safetensors", {"a": mx.nd.ones((2, 3)), "b": mx.nd.zeros((3,)).astype("bfloat16")})
        os.replace(f"{path}.safetensors", path)

    return [written(save)]


def _array_bytes():
    return [mx.nd.ones((2, 3)).__reduce__()[2]["handle"], mx.nd.array([[1, 0], [0, 2]]).tostype("csr").__getstate__()["handle"]]


_OPTIMIZERS = (("sgd", {"momentum": 0.9}), ("sgd", {"multi_precision": True}), ("nag", {"momentum": 0.9}), ("rmsprop", {"centered": True}),
               ("adam", {"learning_rate": 0.01, "lr_scheduler": mx.lr_scheduler.FactorScheduler(3)}), ("lamb", {}), ("ftrl", {}), ("adagrad", {}))


def _states():
    seeds = []
    for name, options in _OPTIMIZERS:
        updater, weight = mx.optimizer.get_updater(mx.optimizer.create(name, **options)), mx.nd.ones((2, 2))
        updater(0, weight.copy(), weight)
        seeds.append(updater.get_states(True))
        if not seeds[1:]:
            seeds.append(updater.get_states(False))  # what `_read_states` has an optimizer for
    return seeds


def _pickles():
    values = (np.arange(3), np.float32(1), {1, 2}, bytearray(b"a"), mx.cpu(), [(1, {"a": None})])
    return [*_states()[:6], (DATA / "mxnet191-0005.states").read_bytes(), *(pickle.dumps(values, p) for p in range(pickle.HIGHEST_PROTOCOL + 1))]


# Instructions that call, import, or ask for memory.
_INSTRUCTIONS = [
    b"cos\nsystem\n", b"cbuiltins\neval\n", b"c__builtin__\nexec\n", b"cmxnet.base\nos\n", b"cbuiltins\nbytearray\n", b"cnumpy\nndarray\n",
    b"cnumpy\ndtype\n", b"cnumpy._core.multiarray\n_reconstruct\n", b"cnumpy.core.numeric\n_frombuffer\n", b"cmxnet.ndarray.ndarray\nNDArray\n",
    b"cmxnet.optimizer.optimizer\nSGD\n", b"cmxnet.context\nContext\n", b"csubprocess\nPopen\n", b"cmxnet.test_utils\ndownload\n",
    b"X\x04\x00\x00\x00true", b"\x8a\x06\x00\x00\x00\x00\x00\x01", b"K\x00", b"K\xff", b"J\xff\xff\xff\xff", b"M\xff\xff", b"N", b"\x88", b"(", b")",
    b"]",
    b"}", b"\x85", b"\x86", b"\x87", b"t", b"l", b"d", b"R", b"\x81", b"b", b"s", b"u", b"a", b"e", b"\x93", b"2", b"0", b"1", b"h\x00", b"q\x01",
    b"\x94", b"C\x03O8\x00", b"X\x02\x00\x00\x00O8", b"X\x02\x00\x00\x00f8", b"G\x7f\xf0\x00\x00\x00\x00\x00\x00"]


def _changed_pickle(data, rng, others):
    return mutated_pickle(data, rng, others, _INSTRUCTIONS)


_IMAGES = struct.pack(">I3I", 0x803, 4, 3, 2) + bytes(range(24))


def _mnist():
    return [_IMAGES, gzip.compress(_IMAGES, mtime=0)]


_PICTURE = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)


def _images():
    return [cv2.imencode(e, _PICTURE)[1].tobytes() for e in (".png", ".jpg", ".bmp", ".webp", ".ppm", ".tiff")]


def _record(labels):
    def write(path):
        writer = mx.recordio.MXRecordIO(path, "w")
        for i, label in enumerate(labels):
            writer.write(mx.recordio.pack(mx.recordio.IRHeader(0, label, i, 0), cv2.imencode((".jpg", ".png")[i % 2], _PICTURE)[1].tobytes()))
        writer.close()
    return written(write)


def _records():
    return [_record([1.0, 2.0]), _record([3.0])]


def _records_of_two():
    return [_record([[1, 2], [3, 4], [5, 6]])]


def _all_records():
    return [*_records(), *_records_of_two(), (DATA / "mxnet191.rec").read_bytes()]


def _indices():
    """Of the first of `_records`."""
    second = _records()[0].rindex(mx.recordio.MAGIC)
    return [b"0\t0\n1\t%d\n" % second, b"7\t0\n"]


def _detections():
    return [_record([[2, 5, 0, 0.1, 0.2, 0.5, 0.9], [2, 5, 1, 0, 0, 1, 1, 0, 0.2, 0.2, 0.4, 0.4]])]


def _packed():
    return [mx.recordio.pack(mx.recordio.IRHeader(0, label, 1, 0), i) for label in (1.0, [1, 2]) for i in _images()]


def _labels(count):
    return struct.pack(">2I", 0x801, count) + bytes(range(count))


def _cifar():
    return [bytes([3]) + bytes(range(256)) * 12]


# -- readers ---------------------------------------------------------------------------------------------------------

def _read_params(case):
    arrays = mx.nd.load(file(case, "a.params"))
    for array in arrays.values() if isinstance(arrays, dict) else arrays:
        if array is not None and array.stype != "default" and array.size < 1 << 20:
            array.asnumpy()


def _read_numpy_params(case):
    with mx.np_shape():
        mx.npx.load(file(case, "a.npy"))
    try:
        mx.npx.load(file(case, "a.npy"))
    except mx.MXNetError:  # scalars are refused here
        pass


def _read_array(case):
    kind = mx.nd.sparse.CSRNDArray if case[4:8] == b"\2\0\0\0" else mx.nd.NDArray
    kind(None).__setstate__({"handle": case})


def _read_states(case):
    updater, weight = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9)), mx.nd.ones((2, 2))
    updater.set_states(case)
    updater.sync_state_context(updater.states, mx.cpu())
    updater(0, weight.copy(), weight)
    if mx.nd.concat(weight, mx.nd.ones((2, 2))).shape != (2, 4):
        raise AssertionError("a step changed the weight's shape")


def _read_values(case):
    pickles.loads(case)


def _batches(iterator):
    for batch in itertools.islice(iterator, 5):
        batch.data[0].asnumpy(), batch.label[0].asnumpy()


@functools.cache
def _kept(name, content):
    return file(content, name)


@functools.cache
def _record_file():
    return file(_records()[0], "b.rec")


def _read_mnist(case):
    _batches(mx.io.MNISTIter(image=file(case, "images"), label=_kept("labels", _labels(4)), batch_size=2, silent=True))


def _read_mnist_dataset(case):
    path = file(case, "images.gz")
    for read in (lambda: datasets._read_idx(path, 3), lambda: test_data._read_idx(folder() / "images.gz")):
        try:
            read()
        except mx.MXNetError:
            pass


def _read_cifar(case):
    datasets.CIFAR10._read_batch(datasets.CIFAR10.__new__(datasets.CIFAR10), file(case, "a.bin"))


def _read_csv(case):
    dtype = (None, "int32", "int64")[len(case) % 3]
    _batches(mx.io.CSVIter(data_csv=file(case, "a.csv"), data_shape=(3,), batch_size=2, dtype=dtype, round_batch=len(case) % 2 == 0))


def _read_csv_labels(case):
    _batches(mx.io.CSVIter(data_csv=_kept("b.csv", b"1,2,3\n4,5,6\n"), data_shape=(3,), label_csv=file(case, "c.csv"), label_shape=(2,),
                           batch_size=2))


def _read_libsvm(case):
    _batches(mx.io.LibSVMIter(data_libsvm=file(case, "a.svm"), data_shape=(6,), batch_size=2))


def _read_libsvm_labels(case):
    _batches(mx.io.LibSVMIter(data_libsvm=_kept("b.svm", b"1 0:10 2:3.5\n0 1:2\n"), data_shape=(6,), label_libsvm=file(case, "c.svm"),
                              label_shape=(6,), batch_size=2))


def _read_record(case):
    with mx.recordio.MXRecordIO(file(case, "a.rec"), "r") as records:
        while (record := records.read()) is not None:
            mx.recordio.unpack_img(record)


def _read_index(case):
    with mx.recordio.MXIndexedRecordIO(file(case, "b.idx"), _record_file(), "r") as records:
        for key in records.keys[:5]:
            records.read_idx(key)


def _verify(case):
    """What is repaired has no damage, and each record that the ordinary reader gets before it fails is whole or named."""
    path, new = file(case, "i.rec"), f"{folder()}/j.rec"
    count, messages, _ = rec.verify(path, images=True)
    if rec.repair(path, new) != (count, rec.verify(path)[1]) or rec.verify(new, new[:-3] + "idx")[:2] != (count, []):
        raise AssertionError(f"repair left damage, or lost records; {messages}")
    rec.inspect(path, 3, out=str)
    try:
        with mx.recordio.MXRecordIO(path, "r") as records:
            while records.read() is not None:
                pass
    except mx.MXNetError:
        if not messages:
            raise AssertionError("verify overlooked what a reader reports") from None


def _verify_index(case):
    path, new = _record_file(), f"{folder()}/j.rec"
    index = file(case, "i.idx")
    rec.verify(path, index)
    rec.repair(path, new, index)


def _index_of_damaged(case):
    rec2idx.make_index(file(case, "i.rec"), f"{folder()}/i.idx")


def _read_record_dataset(case):
    _kept("d.idx", b"0\t0\n")
    dataset = mx.gluon.data.vision.ImageRecordDataset(file(case, "d.rec"))
    for i in range(len(dataset)):
        dataset[i][0].asnumpy()


def _read_image_record(case):
    _batches(mx.io.ImageRecordIter(path_imgrec=file(case, "c.rec"), data_shape=(3, 4, 4), batch_size=1, label_width=1, preprocess_threads=1))


def _read_augmented(case):
    _batches(mx.io.ImageRecordIter(path_imgrec=file(case, "c.rec"), data_shape=(3, 4, 4), batch_size=2, label_width=2, preprocess_threads=1, resize=5,
                                   rand_crop=True, rand_mirror=True, max_rotate_angle=10, random_h=5, max_aspect_ratio=0.2, mean_r=3, scale=0.5))


def _read_image_index(case):
    _batches(mx.io.ImageRecordIter(path_imgrec=_record_file(), path_imgidx=file(case, "e.idx"), data_shape=(3, 4, 4), batch_size=1,
                                   preprocess_threads=1, shuffle=True))


def _read_image_labels(case):
    _batches(mx.io.ImageRecordIter(path_imgrec=_record_file(), path_imglist=file(case, "e.lst"), data_shape=(3, 4, 4), batch_size=1,
                                   preprocess_threads=1, label_width=2))


def _read_mean(case):
    _batches(mx.io.ImageRecordIter(path_imgrec=_record_file(), mean_img=file(case, "mean"), data_shape=(3, 4, 4), batch_size=1,
                                   preprocess_threads=1))


def _read_detection(case):
    _batches(mx.io.ImageDetRecordIter(path_imgrec=file(case, "d.rec"), data_shape=(3, 4, 4), batch_size=1, preprocess_threads=1, verbose=False))


def _read_image_iter(case):
    _batches(mx.image.ImageIter(1, (3, 4, 4), path_imgrec=file(case, "g.rec"), aug_list=[mx.image.ForceResizeAug((4, 4))]))


def _read_detection_iter(case):
    _batches(mx.image.ImageDetIter(1, (3, 4, 4), path_imgrec=file(case, "h.rec"), aug_list=[mx.image.DetBorrowAug(mx.image.ForceResizeAug((4, 4)))]))


def _read_list(case):
    path = file(case, "a.lst")
    list(read_image_list(path))
    list(read_image_list(path, 2))


@functools.cache
def _picture_file():
    return file(_images()[0], "a.png")


def _read_listed(case):
    _picture_file()
    mx.gluon.data.vision.ImageListDataset(str(folder()), file(case, "b.lst"))
    _batches(mx.image.ImageIter(1, (3, 6, 8), path_imglist=file(case, "b.lst"), path_root=str(folder()), aug_list=[], label_width=2))


def _read_image(case):
    mx.image.imdecode(case).asnumpy()
    mx.image.imdecode(case, flag=0, to_rgb=0).asnumpy()
    mx.image.imread(file(case, "a.png"), flag=len(case) % 2)


def _read_packed(case):
    for flag in (-1, 0, 1):
        mx.recordio.unpack_img(case, flag)


def _read_embedding(case):
    mx.contrib.text.embedding.CustomEmbedding(file(case, "a.vec"))


# -- what trainings, profiles and downloads leave --------------------------------------------------------------------

class _Known(mx.gluon.data.Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        if not isinstance(i, (int, np.integer)) or not 0 <= i < 7:
            raise mx.MXNetError(f"there is no sample {i}")
        return np.float32(i)


def _iterators():
    """Of each kind that has a state, as functions, since reading changes them."""
    data = np.arange(12, dtype="float32")
    return [lambda: mx.io.NDArrayIter(data, batch_size=5, shuffle=True, last_batch_handle="roll_over"),
            lambda: mx.io.ResizeIter(mx.io.NDArrayIter(data, batch_size=5), 4),
            lambda: mx.gluon.data.DataLoader(_Known(), 2, shuffle=True, last_batch="rollover"),
            lambda: mx.io.CSVIter(data_csv=_kept("p.csv", b"1\n2\n3\n4\n5\n"), data_shape=(1,), batch_size=2),
            lambda: mx.io.ImageRecordIter(path_imgrec=_record_file(), data_shape=(3, 4, 4), batch_size=1, preprocess_threads=1)]


def _positions():
    seeds = []
    for make in _iterators():
        for taken in (0, 1):
            iterator = make()
            next(iter(iterator))
            for _, _ in zip(range(taken), iterator):
                pass
            seeds.append(written(lambda p, i=iterator: mx.io.save_position(p, i)))
    return seeds


def _read_position(case):
    path, error = file(case, "a.data"), None
    for make in _iterators():
        iterator = make()
        try:
            mx.io.load_position(path, iterator)
        except mx.MXNetError as refused:
            error = refused
            continue
        for _ in itertools.islice(iterator, 10):
            pass
        np.random.randint(100, size=2000), random.random()
        for name in ("uniform", "gamma"):
            getattr(mx.nd.random, name)(shape=(3000,)).asnumpy()
        return
    raise error


def _changed_json(data, rng, others):
    try:
        return mutated_json(data, rng, others, ["X", "B", "E", "i", "C", "NaN"])
    except ValueError:  # one that breaks off
        return mutated(data, rng, others, True)


def _read_save(case):
    saves = folder() / "saves"
    (saves / "000000003-0of1").mkdir(parents=True, exist_ok=True)
    file(case, "saves/000000003-0of1/summary.json")
    resumption.Saves(saves).newest()


@functools.cache
def _training():
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    return net, mx.gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore=None)


def _training_files():
    net, trainer = _training()
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 3))).sum()
    loss.backward()
    trainer.step(1)
    trainer.save_training(folder() / "training", net).wait()
    return [(folder() / "training" / "training-000000001" / "rank-00000-of-00001.safetensors").read_bytes()]


def _read_training(case):
    _training_index([len(case)])
    file(case, "training/training-000000001/rank-00000-of-00001.safetensors")
    net, trainer = _training()
    trainer.resume_training(folder() / "training", net)


def _training_index(sizes):
    (folder() / "training" / "training-000000001").mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": "remex training 1", "ranks": 1, "sizes": sizes, "epoch": 0, "batch": 0})
    file(text.encode(), "training/training-000000001/index.json")


def _traces():
    path = str(folder() / "trace.json")
    mx.profiler.set_config(filename=path, profile_all=True)
    mx.profiler.set_state("run")
    with mx.autograd.record():
        (mx.nd.ones((3, 2)) * 2).sum()
    mx.profiler.Marker("some", "marker").mark()
    mx.profiler.set_state("stop")
    mx.profiler.dump()
    text = pathlib.Path(path).read_bytes()
    return [text, text[:-40], b'[{"name": "a", "ph": "B", "ts": 1, "pid": 0, "tid": 1}, {"name": "a", "ph": "E", "ts": 5, "pid": 0, "tid": 1}]']


def _read_trace(case):
    mx.profiler.report(str(folder() / "a.html"), profile=file(case, "t.json"))


def _zipped():
    made = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", method) as archive:
            archive.writestr("inside/a.txt", b"text " * 20)
            archive.writestr("b.params", b"\x01\x02")
        made.append(content.getvalue())
    return made


def _given(case):
    """Downloads that give this."""
    return unittest.mock.patch.object(test_data, "download",
                                      lambda url, fname, dirname=None: pathlib.Path(dirname or "", fname).write_bytes(case))


def _unzip(case):
    with _given(case):
        test_data.get_zip_data(str(folder() / "unzipped"), "http://x/a.zip", "a.zip")
    os.remove(folder() / "unzipped" / "a.zip")


def _extract(case):
    model_store._extract(file(case, "a.zip"), "b.params", io.BytesIO())


def _unpack(case):
    os.makedirs(folder() / "unpacked", exist_ok=True)
    with _given(case):
        test_data.get_bz2_data(str(folder() / "unpacked"), "a.txt", "http://x/a.bz2", "a.bz2")
    os.remove(folder() / "unpacked" / "a.txt")


def _read_text(case):
    file(case, "wiki.test.tokens")
    data = mx.gluon.contrib.data.text.WikiText2(str(folder()), "test", seq_len=3)
    for i in range(min(len(data), 3)):
        data[i]


def _target(name, *given, **named):
    return target(f"readers.{name}", *given, **named)


_LIST = [b"0\t1\t2\ta.png\n1\t0.5\t3\ta.png\n", b"0 1 2 a.png\n1 5 6 a.png\n"]
_VECTORS = [b"2 3\na 1 2 3\nb 4 5.5 -6e3\n<unk> 0 0 1\n", "\u00e9 1 2\nb 3 4\n".encode()]
_LOG = b"Epoch[0] Train-accuracy=0.5\nEpoch[0] Time cost=2.5\n[Epoch 1] Finished in 1.5s, training accuracy: 0.5\n"
_SVM = [b"1 0:10 2:3.5\n0 1:2 5:1 # x\n1.5 qid:3 4:2\n"]

TARGETS = [
    _target("params", _params, _read_params, share=16),
    _target("numpy_params", _numpy_params, _read_numpy_params, share=4),
    _target("npz", _npz, lambda case: mx.nd.load(file(case, "a.npz")), share=8),
    _target("npy", _npy, lambda case: mx.nd.load(file(case, "a.npy")), share=4),
    *([_target("safetensors", _safetensors, lambda case: mx.nd.load(file(case, "a.safetensors")), share=4)]
      if importlib.util.find_spec("safetensors") else ()),
    _target("array", _array_bytes, _read_array, share=8),
    _target("states", _states, _read_states, structure=_changed_pickle, share=12),
    _target("pickles", _pickles, _read_values, structure=_changed_pickle, share=12),
    _target("mnist", _mnist, _read_mnist, share=2),
    _target("mnist_labels", lambda: [_labels(4), gzip.compress(_labels(4), mtime=0)],
            lambda case: _batches(mx.io.MNISTIter(image=_kept("pictures", _IMAGES), label=file(case, "l"), batch_size=2, silent=True)), share=2),
    _target("mnist_dataset", lambda: _mnist()[1:] + [gzip.compress(_labels(4), mtime=0)], _read_mnist_dataset, share=3),
    _target("cifar", _cifar, _read_cifar, share=4),
    _target("csv", lambda: [b"1,2,3\n4,5,6\n7,8,9\n"], _read_csv, text=True, share=2),
    _target("csv_labels", lambda: [b"1,2\n4,5\n"], _read_csv_labels, text=True, share=2),
    _target("libsvm", lambda: _SVM, _read_libsvm, text=True, share=2),
    _target("libsvm_labels", lambda: _SVM, _read_libsvm_labels, text=True, share=2),
    _target("record", _all_records, _read_record, share=6),
    _target("index", _indices, _read_index, text=True, share=4),
    _target("verify", _all_records, _verify, share=4),
    _target("verify_index", _indices, _verify_index, text=True, share=2),
    _target("rec2idx", _records, _index_of_damaged, share=2),
    _target("log", lambda: [_LOG], lambda case: parse_log.table(parse_log.parse(case.decode("utf-8", "replace").splitlines())), text=True, share=4),
    _target("record_dataset", _records, _read_record_dataset, share=2),
    _target("image_record", _records, _read_image_record, share=2),
    _target("augmented", _records_of_two, _read_augmented, share=2),
    _target("image_index", _indices, _read_image_index, text=True),
    _target("image_labels", lambda: _LIST, _read_image_labels, text=True),
    _target("mean", lambda: [written(lambda p: mx.nd.save(p, {"mean_img": mx.nd.ones((3, 4, 4))}))], _read_mean),
    _target("detection", _detections, _read_detection, share=2),
    _target("image_iter", _records, _read_image_iter, share=2),
    _target("detection_iter", _detections, _read_detection_iter, share=2),
    _target("list", lambda: _LIST, _read_list, text=True, share=8),
    _target("listed", lambda: _LIST, _read_listed, text=True),
    _target("image", _images, _read_image, share=6),
    _target("packed", _packed, _read_packed, share=6),
    _target("embedding", lambda: _VECTORS, _read_embedding, text=True, share=4),
    _target("position", _positions, _read_position, structure=_changed_json, share=2),
    _target("training", _training_files, _read_training, share=4),
    _target("save", lambda: [b'{"epoch": 3, "batch": 5}'], _read_save, text=True, structure=_changed_json, share=4),
    _target("trace", _traces, _read_trace, text=True, structure=_changed_json),
    _target("zip", _zipped, _unzip),
    _target("model_archive", _zipped, _extract, share=4),
    _target("bz2", lambda: [bz2.compress(b"text " * 20)], _unpack, share=2),
    _target("text", lambda: ["a b c\n\n = d = \n é a b\n".encode()], _read_text, text=True, share=2),
]
