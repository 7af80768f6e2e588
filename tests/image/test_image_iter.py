import random

import numpy as np
import pytest

from mxnet.base import MXNetError
from mxnet.image import ForceResizeAug, ImageIter
from mxnet.recordio import MXIndexedRecordIO, pack


def labels(it):
    return [(b.label[0].asnumpy().tolist(), b.pad) for b in it]


@pytest.fixture
def rec(folder):
    writer = MXIndexedRecordIO(folder / "x.idx", folder / "x.rec", "w")
    for i in range(5):
        writer.write_idx(i, pack((0, i, i, 0), (folder / f"{i}.png").read_bytes()))
    writer.close()
    return str(folder / "x.rec")


def test_a_list(folder, pixels):
    it = ImageIter(2, (3, 4, 5), imglist=[[i, f"{i}.png"] for i in range(5)], path_root=str(folder))
    assert it.provide_data == [("data", (2, 3, 4, 5))] and it.provide_label == [("softmax_label", (2,))]
    batch = next(it)
    assert (batch.data[0].asnumpy()[1] == pixels[3:7, 3:8].transpose(2, 0, 1) + 10).all() and batch.data[0].dtype == np.float32
    assert labels(it) == [([2, 3], 0), ([4, 0], 1)]


@pytest.mark.parametrize("handle, epochs", [
    ("pad", [[([0, 1], 0), ([2, 3], 0), ([4, 0], 1)]] * 2),
    ("discard", [[([0, 1], 0), ([2, 3], 0)]] * 2),
    ("roll_over", [[([0, 1], 0), ([2, 3], 0)], [([4, 0], 1), ([1, 2], 0), ([3, 4], 0)], [([0, 1], 0), ([2, 3], 0)]]),
])
@pytest.mark.parametrize("index", [False, True])
def test_last_batch(rec, handle, epochs, index):
    it = ImageIter(2, (3, 4, 5), path_imgrec=rec, path_imgidx=rec[:-3] + "idx" if index else None, last_batch_handle=handle)
    for expected in epochs:
        assert labels(it) == expected
        it.reset()
    it.hard_reset()
    assert next(it).label[0].asnumpy().tolist() == [0, 1]


def test_shuffle_and_parts(rec):
    random.seed(7)
    it = ImageIter(1, (3, 4, 5), path_imgrec=rec, path_imgidx=rec[:-3] + "idx", shuffle=True, num_parts=2, part_index=1)
    seen = [label[0] for label, _ in labels(it)]
    assert sorted(seen) == [2, 3]


def test_list_file(folder, rec):
    (folder / "x.lst").write_text("".join(f"{i}\t{i}.5\t{-i}\t{i}.png\n" for i in range(5)))
    it = ImageIter(2, (3, 4, 5), label_width=2, path_imglist=str(folder / "x.lst"), path_root=str(folder), data_name="d", label_name="l")
    assert it.provide_data == [("d", (2, 3, 4, 5))] and it.provide_label == [("l", (2, 2))]
    assert next(it).label[0].asnumpy().tolist() == [[0.5, 0], [1.5, -1]]
    both = ImageIter(2, (3, 4, 5), label_width=2, path_imgrec=rec, path_imgidx=rec[:-3] + "idx", path_imglist=str(folder / "x.lst"))
    assert next(both).label[0].asnumpy().tolist() == [[0.5, 0], [1.5, -1]]


def test_own_augmenters_and_overriding(folder):
    class Labelled(ImageIter):
        def augmentation_transform(self, data):
            return super().augmentation_transform(data) * 0 + 7

    it = Labelled(1, (3, 6, 6), imglist=[[[3, 4], "0.png"]], label_width=2, path_root=str(folder), aug_list=[ForceResizeAug((6, 6))])
    batch = next(it)
    assert (batch.data[0].asnumpy() == 7).all() and batch.label[0].asnumpy().tolist() == [[3, 4]]


@pytest.mark.parametrize("kwargs, error, message", [
    (dict(), MXNetError, "ImageIter needs path_imgrec, path_imglist or imglist"),
    (dict(imglist=[[0, "0.png"]], dtype="int8"), MXNetError, "int8 label not supported"),
    (dict(imglist=[[0, "0.png"]], last_batch_handle="keep"), MXNetError, "last_batch_handle must be one of"),
    (dict(imglist=[[0, "0.png"]], num_parts=2, part_index=2), MXNetError, "part_index must be from 0 to num_parts - 1"),
    (dict(imglist=[[0, "0.png"]], data_shape=(1, 4, 4)), ValueError, "data_shape must begin with 3"),
    (dict(imglist=[[0, "0.png"]], data_shape=(4, 4)), ValueError, r"must be \(channels, height, width\), received \(4, 4\)"),
    (dict(imglist=[[0, "0.png"]], rand_crops=1), TypeError, "rand_crops"),
])
def test_invalid(folder, kwargs, error, message):
    with pytest.raises(error, match=message):
        ImageIter(1, **{"data_shape": (3, 4, 5), "path_root": str(folder), **kwargs})


def test_broken_images_are_named(folder, rec):
    with pytest.raises(MXNetError, match="Broken image filename: bad.png"):
        next(ImageIter(1, (3, 4, 5), imglist=[[0, "bad.png"]], path_root=str(folder)))
    with pytest.raises(MXNetError, match=r"cannot open .*none.png: No such file"):
        next(ImageIter(1, (3, 4, 5), imglist=[[0, "none.png"]], path_root=str(folder)))
    with pytest.raises(MXNetError, match="image filename: 0.png has 2 labels, label_width is 1"):
        next(ImageIter(1, (3, 4, 5), imglist=[[0, 1, "0.png"]], path_root=str(folder)))
    with pytest.raises(MXNetError, match=r"give shape \(3, 10, 12\), data_shape is \(3, 4, 5\)"):
        next(ImageIter(1, (3, 4, 5), imglist=[[0, "0.png"]], path_root=str(folder), aug_list=[]))
    with pytest.raises(MXNetError, match="shuffle and num_parts need path_imgidx"):
        ImageIter(1, (3, 4, 5), path_imgrec=rec, shuffle=True)
    (folder / "x.lst").write_text("0\tzero\t0.png\n")
    with pytest.raises(MXNetError, match="x.lst, line 1: expected a number, labels and a path"):
        ImageIter(1, (3, 4, 5), path_imglist=str(folder / "x.lst"))
