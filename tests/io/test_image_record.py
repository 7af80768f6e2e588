import inspect
import json
import os
import subprocess
import threading
import time

import cv2
import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet.base import MXNetError
from mxnet.recordio import MXRecordIO, pack, pack_img

PLAIN = dict(data_shape=(3, 4, 5), batch_size=2)


def labels(it):
    return [(b.label[0].asnumpy().tolist(), b.pad, b.index.tolist()) for b in it]


# What MXNet 1.9.1 gives for the test images: [1, :, 1, :2], [0, 0, 0, 0] and the sum of all values.
@pytest.mark.parametrize("parameters, corner, first, total", [
    (dict(), [[117, 122], [77, 82], [37, 42]], 104, 10020),
    (dict(resize=7), [[108, 115], [68, 75], [28, 35]], 93, 9596),
    (dict(resize=7, inter_method=0), [[101, 111], [61, 71], [21, 31]], 88, 9000),
    (dict(resize=7, inter_method=3), [[108, 116], [68, 76], [28, 36]], 93, 9594),
    (dict(mirror=True), [[137, 132], [97, 92], [57, 52]], 124, 10020),
    (dict(mean_r=100, mean_g=110, mean_b=120, std_r=2, std_g=4, std_b=8, scale=0.5), [[4.25, 5.5], [-4.125, -3.5], [-5.1875, -4.875]], 1, -88.75),
    (dict(dtype="uint8", mirror=True), [[137, 132], [97, 92], [57, 52]], 124, 10020),
    (dict(dtype="int8", mean_r=100.5, mean_g=-10, mean_b=120), [[16, 21], [87, 92], [-83, -78]], 3, 1580),
    (dict(data_shape=(1, 4, 5)), [[84, 89]], 71, 3620),
    (dict(pad=3, fill_value=9, data_shape=(3, 16, 18)), [[9, 9]] * 3, 9, 70992),
    (dict(max_crop_size=6, min_crop_size=6), [[117, 123], [77, 83], [37, 43]], 102, 10320),
    (dict(rotate=90, fill_value=0), [[131, 134], [91, 94], [51, 54]], 126, 10740),
    (dict(data_shape=(3, 20, 20)), [[94, 97], [54, 57], [14, 17]], 84, 205860),
])
def test_values(make_record, parameters, corner, first, total):
    batch = next(mx.io.ImageRecordIter(path_imgrec=make_record(), **{**PLAIN, **parameters}))
    data = batch.data[0].asnumpy()
    assert data.dtype == parameters.get("dtype", "float32") and data.shape == (2, *parameters.get("data_shape", (3, 4, 5)))
    assert data[1, :, 1, :2].tolist() == corner
    assert data[0, 0, 0, 0] == first and abs(data.astype(np.float64).sum() - total) < 1e-3


def test_four_channels(make_record):
    rec = make_record("rgba", channels=4)
    data = next(mx.io.ImageRecordIter(path_imgrec=rec, data_shape=(4, 4, 5), batch_size=2, mean_a=50)).data[0].asnumpy()
    assert data[1, :, 1, :2].tolist() == [[117, 122], [77, 82], [37, 42], [107, 112]] and data.sum() == 14560
    with pytest.raises(MXNetError, match="p.rec, the record at offset 0: Invalid image: Expected 4 channels, got 3"):
        mx.io.ImageRecordIter(path_imgrec=make_record(), data_shape=(4, 4, 5), batch_size=2)


def test_rounds(make_record):
    it = mx.io.ImageRecordIter(path_imgrec=make_record(), **PLAIN)
    assert it.provide_data == [("data", (2, 3, 4, 5))] and it.provide_label == [("softmax_label", (2,))] and it.batch_size == 2
    assert labels(it) == [([0, 1], 0, [100, 101]), ([2, 3], 0, [102, 103]), ([4, 0], 1, [104, 100])]
    it.reset()
    assert labels(it) == [([1, 2], 0, [101, 102]), ([3, 4], 0, [103, 104])]
    it.reset()
    assert labels(it) == [([0, 1], 0, [100, 101]), ([2, 3], 0, [102, 103]), ([4, 0], 1, [104, 100])]


def test_without_rounds(make_record):
    it = mx.io.ImageRecordIter(path_imgrec=make_record(), round_batch=False, **PLAIN)
    for _ in range(2):
        assert labels(it) == [([0, 1], 0, [100, 101]), ([2, 3], 0, [102, 103]), ([4, 0], 1, [104, 0])]
        it.reset()


def test_a_reset_in_the_middle_starts_again(make_record):
    it = mx.io.ImageRecordIter(path_imgrec=make_record(), **PLAIN)
    next(it)
    it.reset()
    assert labels(it)[0] == ([0, 1], 0, [100, 101])


@pytest.mark.parametrize("index", [False, True])
def test_shuffle_and_seeds(make_record, index):
    rec = make_record(count=20)
    extra = {"path_imgidx": rec[:-3] + "idx"} if index else {}

    def order(seed):
        it = mx.io.ImageRecordIter(path_imgrec=rec, shuffle=True, seed=seed, data_shape=(3, 4, 5), batch_size=5, **extra)
        first = [x for data, _, _ in labels(it) for x in data]
        it.reset()
        return first, [x for data, _, _ in labels(it) for x in data]

    first, second = order(1)
    assert sorted(first) == sorted(second) == list(range(20)) and first != second
    assert order(1) == (first, second) != order(2)


@pytest.mark.parametrize("index", [False, True])
def test_parts(make_record, index):
    rec = make_record(count=9)
    extra = {"path_imgidx": rec[:-3] + "idx"} if index else {}
    found = []
    for part in range(3):
        it = mx.io.ImageRecordIter(path_imgrec=rec, num_parts=3, part_index=part, data_shape=(3, 4, 5), batch_size=1, **extra)
        found += [int(b.label[0].asscalar()) for b in it]
    assert found == list(range(9))
    with pytest.raises(MXNetError, match="part_index must be from 0 to num_parts - 1, received part_index=3 and num_parts=3"):
        mx.io.ImageRecordIter(path_imgrec=rec, num_parts=3, part_index=3, **PLAIN, **extra)


def test_several_labels(make_record):
    rec = make_record("multi", label=lambda i: [i, 2 * i])
    it = mx.io.ImageRecordIter(path_imgrec=rec, label_width=2, **PLAIN)
    assert it.provide_label == [("softmax_label", (2, 2))] and next(it).label[0].asnumpy().tolist() == [[0, 0], [1, 2]]
    with pytest.raises(MXNetError, match="a label of label_width=1 numbers expected, the record file has 2"):
        mx.io.ImageRecordIter(path_imgrec=rec, **PLAIN)


def test_labels_from_a_list(make_record, tmp_path):
    (tmp_path / "x.lst").write_text("".join(f"{100 + i}\t{i + 0.5}\t{-i}\tx.png\n" for i in range(4)))
    kwargs = dict(path_imgrec=make_record(), path_imglist=str(tmp_path / "x.lst"), **PLAIN)
    it = mx.io.ImageRecordIter(label_width=2, **kwargs)
    assert next(it).label[0].asnumpy().tolist() == [[0.5, 0], [1.5, -1]]
    next(it)
    with pytest.raises(MXNetError, match="record at offset .*: fail to find imagelabel for id 104 in path_imglist"):
        next(it)
    (tmp_path / "x.lst").write_text("100\tone\tx.png\n")
    with pytest.raises(MXNetError, match="x.lst, line 1: expected a number, 1 label and a path"):
        mx.io.ImageRecordIter(**kwargs)


def test_augmentation_does_not_depend_on_threads(make_record):
    rec = make_record(count=12)

    def epochs(seed, threads):
        it = mx.io.ImageRecordIter(path_imgrec=rec, rand_crop=True, rand_mirror=True, max_random_contrast=0.3, seed_aug=seed, data_shape=(3, 4, 5),
                                   batch_size=6, preprocess_threads=threads)
        first = [b.data[0].asnumpy() for b in it]
        it.reset()
        return np.array(first), np.array([b.data[0].asnumpy() for b in it])

    first, second = epochs(3, 1)
    assert (first != second).any()
    again = epochs(3, 4)
    assert (again[0] == first).all() and (again[1] == second).all()
    assert (epochs(4, 1)[0] != first).any()


def test_random_mirror_flips_half(make_record):
    rec = make_record(count=60)
    plain, mirrored = (next(mx.io.ImageRecordIter(path_imgrec=rec, data_shape=(3, 4, 5), batch_size=60, rand_mirror=flag)).data[0].asnumpy()
                       for flag in (False, True))
    flipped = (mirrored == plain[:, :, :, ::-1]).all((1, 2, 3))
    assert (flipped | (mirrored == plain).all((1, 2, 3))).all() and 15 < flipped.sum() < 45


def test_illumination(make_record):
    rec = make_record(count=30)
    kwargs = dict(path_imgrec=rec, data_shape=(3, 4, 5), batch_size=30)
    plain, changed = (next(mx.io.ImageRecordIter(**kwargs, **more)).data[0].asnumpy() for more in ({}, {"max_random_illumination": 10}))
    shift = changed - plain
    assert shift.std((1, 2, 3)).max() < 1e-4 and shift.min() >= -10 and shift.max() <= 10 and shift.mean((1, 2, 3)).std() > 3


def test_mean_image(make_record, tmp_path):
    rec, path = make_record(), str(tmp_path / "mean.bin")
    kwargs = dict(path_imgrec=rec, data_shape=(3, 4, 5), batch_size=5)
    plain = next(mx.io.ImageRecordIter(**kwargs)).data[0].asnumpy()
    for _ in range(2):  # made, then loaded
        data = next(mx.io.ImageRecordIter(mean_img=path, scale=0.5, mirror=True, **kwargs)).data[0].asnumpy()
        assert np.allclose(data, ((plain - plain.mean(0)) * 0.5)[:, :, :, ::-1], atol=1e-4)
    assert np.allclose(mx.nd.load(path)["mean_img"].asnumpy(), plain.mean(0))
    with pytest.raises(MXNetError, match=r"mean.bin: the mean image has shape \(3, 4, 5\), data_shape is \(3, 5, 5\)"):
        mx.io.ImageRecordIter(path_imgrec=rec, data_shape=(3, 5, 5), batch_size=5, mean_img=path)


def test_scaled_decoding(tmp_path):
    writer = MXRecordIO(tmp_path / "x.rec", "w")
    smooth = cv2.resize(np.random.RandomState(0).randint(0, 256, (4, 5, 3), np.uint8), (500, 400))
    writer.write(pack_img((0, 0, 0, 0), smooth))
    writer.close()
    kwargs = dict(path_imgrec=str(tmp_path / "x.rec"), batch_size=1, resize=50)
    for shape in ((3, 50, 60), (1, 50, 60)):
        full, scaled = (next(mx.io.ImageRecordIter(data_shape=shape, scaled_decode=flag, **kwargs)).data[0].asnumpy() for flag in (False, True))
        assert 0 < np.abs(full - scaled).mean() < 1.5


def test_old_names(make_record):
    rec = make_record()
    for name, dtype in (("ImageRecordUInt8Iter", "uint8"), ("ImageRecordInt8Iter", "int8"), ("ImageRecordIter_v1", "float32"),
                        ("ImageRecordUInt8Iter_v1", "uint8")):
        assert getattr(mx.io, name)(path_imgrec=rec, **PLAIN).provide_data[0].dtype == np.dtype(dtype)


@pytest.mark.parametrize("parameters, message", [
    (dict(path_imgrec=""), "must specify path_imgrec"),
    (dict(path_imgrec="nope.rec"), "cannot read nope.rec: No such file"),
    (dict(data_shape=(3, 4)), r"data_shape must be \(channels, height, width\), received \(3, 4\)"),
    (dict(data_shape=(5, 4, 4)), "data_shape must have 1, 3 or 4 channels, received 5"),
    (dict(dtype="float64"), "expected float32, float16, uint8 or int8, received float64"),
    (dict(layout="CHWN"), "Invalid Parameter format for layout"),
    (dict(on_error="ignore"), "Invalid Parameter format for on_error"),
    (dict(batch_size=0), "batch_size must be at least 1, received 0"),
    (dict(batch_size=11), "fewer images than batch_size=11; pass round_batch=False"),
    (dict(aug_seq="mine"), "the only augmenter is 'aug_default'"),
    (dict(std_g=0), "std_r, std_g, std_b and std_a must not be 0"),
    (dict(rotate_list="a"), "rotate_list: expected angles in degrees"),
    (dict(resize="big"), "Invalid Parameter format for resize: expected an integer, received 'big'"),
])
def test_invalid(make_record, parameters, message):
    with pytest.raises(MXNetError, match=message):
        mx.io.ImageRecordIter(**{"path_imgrec": make_record(), **PLAIN, **parameters})


def test_what_the_type_leaves_out_is_said(make_record):
    with pytest.warns(UserWarning, match="dtype=uint8 does not apply mean_r, scale"):
        mx.io.ImageRecordIter(path_imgrec=make_record(), dtype="uint8", mean_r=3, scale=2, **PLAIN)


@pytest.mark.parametrize("record, message", [
    (pack((0, 1, 7, 0), b"garbage"), "the record at offset 0: 7 bytes that are no image"),
    (pack((0, 1, 7, 0), b""), "the record at offset 0: 0 bytes that are no image"),
    (b"short", "the record at offset 0: an image record starts with a header of 24 bytes"),
])
def test_bad_records(tmp_path, record, message):
    with MXRecordIO(tmp_path / "bad.rec", "w") as writer:
        writer.write(record)
    with pytest.raises(MXNetError, match=f"bad.rec, {message}"):
        mx.io.ImageRecordIter(path_imgrec=str(tmp_path / "bad.rec"), data_shape=(3, 4, 5), batch_size=1)


def test_a_truncated_file_ends_in_an_error_and_reset_helps(make_record):
    rec = make_record()
    os.truncate(rec, os.path.getsize(rec) - 20)
    it = mx.io.ImageRecordIter(path_imgrec=rec, **PLAIN)
    with pytest.raises(MXNetError, match="p.rec: truncated RecordIO file"):
        list(it)
    it.reset()
    assert next(it).label[0].asnumpy().tolist() == [0, 1]


def test_threads_end_with_the_iterator(make_record):
    before = set(threading.enumerate())
    it = mx.io.ImageRecordIter(path_imgrec=make_record(count=30), prefetch_buffer=1, **PLAIN)
    next(it)
    own = set(threading.enumerate()) - before
    assert own
    del it
    deadline = time.monotonic() + 5
    while any(t.is_alive() for t in own) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [t for t in own if t.is_alive()]


def test_the_interpreter_exits_in_the_middle_of_an_epoch(make_record):
    program = (f"import mxnet as mx\nit = mx.io.ImageRecordIter(path_imgrec={make_record(count=40)!r}, data_shape=(3, 4, 5), batch_size=2,"
               " prefetch_buffer=2)\nnext(it)\nprint('here', flush=True)\nraise KeyboardInterrupt")
    done = subprocess.run([*python(), "-c", program], timeout=60, capture_output=True, text=True, check=False)
    assert done.stdout == "here\n" and "KeyboardInterrupt" in done.stderr and "Fatal" not in done.stderr


def test_float16_and_channels_last(make_record):
    rec, normal = make_record(), dict(mean_r=100, std_g=4)
    plain = next(mx.io.ImageRecordIter(path_imgrec=rec, **PLAIN, **normal)).data[0].asnumpy()
    half = next(mx.io.ImageRecordIter(path_imgrec=rec, dtype="float16", **PLAIN, **normal))
    last = mx.io.ImageRecordIter(path_imgrec=rec, layout="NHWC", **PLAIN, **normal)
    assert half.data[0].dtype == np.float16 and np.array_equal(half.data[0].asnumpy(), plain.astype(np.float16))
    assert last.provide_data == [("data", (2, 4, 5, 3))]
    assert np.array_equal(next(last).data[0].asnumpy(), plain.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("augmentation", [dict(resize=8, rand_crop=True, rand_mirror=True), dict(random_resized_crop=True, min_random_area=0.3),
                                          dict(max_crop_size=9, min_crop_size=5, rand_crop=True), dict(max_random_contrast=0.3)], ids=str)
def test_the_kernel_gives_what_its_parts_give(make_record, monkeypatch, augmentation):
    """Where there is no kernel OpenCV resizes and NumPy does the rest, with the same random numbers."""
    rec = make_record(count=8)

    def values():
        it = mx.io.ImageRecordIter(path_imgrec=rec, data_shape=(3, 4, 5), batch_size=8, mean_g=3, std_b=7, seed=3, **augmentation)
        return next(it).data[0].asnumpy()

    found = values()
    monkeypatch.setattr("mxnet.io.normalizer.available", lambda: False)
    assert np.array_equal(values(), found)


@pytest.mark.parametrize("options", [dict(), dict(shuffle=True, round_batch=False), dict(shuffle=True, seed=5)], ids=str)
@pytest.mark.parametrize("index", [False, True])
def test_an_epoch_goes_on_where_its_state_was_asked_for(make_record, index, options):
    rec = make_record(count=11)
    options = {**options, **PLAIN, "path_imgrec": rec, **({"path_imgidx": rec[:-3] + "idx"} if index else {})}
    it = mx.io.ImageRecordIter(**options)
    states, seen = [it.state()], []
    for _ in range(2):
        for batch in it:
            seen.append((batch.label[0].asnumpy().tolist(), batch.pad))
            states.append(json.loads(json.dumps(it.state())))
        it.reset()
    for place in (0, 1, 3, 6, 7):
        again = mx.io.ImageRecordIter(**options)
        again.load_state(states[place])
        rest = [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in again]
        again.reset()
        rest += [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in again]
        assert rest[:len(seen) - place] == seen[place:]
    with pytest.raises(MXNetError, match=r"load_state: what `state\(\)` of such an iterator returned is expected, received {'taken': 1}"):
        it.load_state({"taken": 1})


@pytest.mark.parametrize("threads", [1, 3])
def test_images_that_cannot_be_decoded_are_left_out(tmp_path, threads, caplog):
    path = str(tmp_path / "a.rec")
    writer = MXRecordIO(path, "w")
    for i in range(10):
        content = pack((0, i, i, 0), b"no image") if i in (0, 3, 4, 9) else pack_img((0, i, i, 0), np.full((8, 8, 3), i, np.uint8), img_fmt=".png")
        writer.write(content)
    writer.close()
    options = dict(path_imgrec=path, data_shape=(3, 8, 8), batch_size=4, preprocess_threads=threads)
    it = mx.io.ImageRecordIter(on_error="skip", **options)
    found = [(b.label[0].asnumpy().tolist(), b.data[0].asnumpy()[:, 0, 0, 0].tolist(), b.index.tolist(), b.pad) for b in it]
    assert found == [([1, 2, 5, 6],) * 3 + (0,), ([7, 8, 1, 2],) * 3 + (2,)]
    assert len(it.handle.skipped) == 4 and "8 bytes that are no image" in caplog.text
    it = mx.io.ImageRecordIter(on_error="skip", round_batch=False, **options)
    assert [(b.label[0].asnumpy().tolist(), b.pad) for b in it] == [([1, 2, 5, 6], 0), ([7, 8, 0, 0], 2)]
    with pytest.raises(MXNetError, match="a.rec, the record at offset 0: 8 bytes that are no image"):
        mx.io.ImageRecordIter(**options)


def test_no_batch_shares_memory_with_another(make_record):
    options = dict(path_imgrec=make_record(count=20), data_shape=(3, 4, 5), batch_size=2)
    kept = list(mx.io.ImageRecordIter(**options))
    for batch, again in zip(kept, mx.io.ImageRecordIter(**options), strict=True):
        assert np.array_equal(batch.data[0].asnumpy(), again.data[0].asnumpy()) and np.array_equal(batch.index, again.index)
        again.data[0][:] = 0


def test_the_memory_of_batches_that_nobody_has_is_used_again(make_record):
    it = mx.io.ImageRecordIter(path_imgrec=make_record(count=20), data_shape=(3, 64, 64), resize=64, batch_size=4, prefetch_buffer=2)
    places = []
    for _ in range(8):
        places += [batch.data[0]._data.data_ptr() for batch in it]
        it.reset()
    assert len(places) == 40 and len(set(places)) <= 12


ACTS = {  # of each parameter a value that shows in the batches of `coloured`, by itself or with others
    "label_width": dict(label_width=2, path_imglist="two.lst"), "path_imglist": dict(path_imglist="one.lst"),
    "path_imgidx": dict(path_imgidx="p.idx", shuffle=True), "data_shape": dict(data_shape=(3, 8, 9)), "num_parts": dict(num_parts=2),
    "part_index": dict(num_parts=2, part_index=1), "shuffle": dict(shuffle=True, seed=1), "batch_size": dict(batch_size=2),
    "round_batch": dict(batch_size=4, round_batch=False), "dtype": dict(dtype="uint8"), "resize": dict(resize=12),
    "rand_crop": dict(rand_crop=True), "random_resized_crop": dict(random_resized_crop=True, min_random_area=0.3),
    "max_random_area": dict(random_resized_crop=True, max_random_area=0.5, min_random_area=0.4),
    "min_random_area": dict(random_resized_crop=True, min_random_area=0.2), "max_rotate_angle": dict(max_rotate_angle=90),
    "max_aspect_ratio": dict(max_aspect_ratio=0.5), "min_aspect_ratio": dict(min_aspect_ratio=0.5, max_aspect_ratio=0.6),
    "max_shear_ratio": dict(max_shear_ratio=0.9), "max_crop_size": dict(max_crop_size=12, min_crop_size=12),
    "min_crop_size": dict(max_crop_size=12, min_crop_size=9), "max_random_scale": dict(max_random_scale=2),
    "min_random_scale": dict(min_random_scale=0.5), "max_img_size": dict(max_img_size=6),
    "min_img_size": dict(min_img_size=40, rand_crop=True),
    "brightness": dict(brightness=0.9), "contrast": dict(contrast=0.9), "saturation": dict(saturation=0.9), "pca_noise": dict(pca_noise=0.9),
    "random_h": dict(random_h=90), "random_s": dict(random_s=120), "random_l": dict(random_l=120), "rotate": dict(rotate=30),
    "fill_value": dict(pad=9, fill_value=3, data_shape=(3, 30, 32)), "inter_method": dict(resize=12, inter_method=0),
    "pad": dict(pad=9, data_shape=(3, 30, 32)), "mirror": dict(mirror=True), "rand_mirror": dict(rand_mirror=True),
    "mean_img": dict(mean_img="mean.params"), "mean_r": dict(mean_r=9), "mean_g": dict(mean_g=9), "mean_b": dict(mean_b=9), "std_r": dict(std_r=2),
    "std_g": dict(std_g=2), "std_b": dict(std_b=2), "scale": dict(scale=2), "max_random_contrast": dict(max_random_contrast=0.9),
    "max_random_illumination": dict(max_random_illumination=90), "rotate_list": dict(rotate_list="20,40"), "layout": dict(layout="NHWC"),
    "seed": dict(rand_crop=True, seed=5), "seed_aug": dict(rand_crop=True, seed_aug=5),
}
# With what the value above is compared where it needs another: by default with nothing set.
BESIDE = {"label_width": dict(path_imglist="one.lst"), "part_index": dict(num_parts=2), "round_batch": dict(batch_size=4),
          "path_imgidx": dict(path_imgidx="p.idx"), "max_random_area": dict(random_resized_crop=True, min_random_area=0.4),
          "min_random_area": dict(random_resized_crop=True),
          "max_crop_size": dict(max_crop_size=9, min_crop_size=9), "min_crop_size": dict(max_crop_size=12, min_crop_size=12),
          "inter_method": dict(resize=12),
          "min_aspect_ratio": dict(max_aspect_ratio=0.6), "fill_value": dict(pad=9, data_shape=(3, 30, 32)), "pad": dict(data_shape=(3, 30, 32)),
          "seed": dict(rand_crop=True), "seed_aug": dict(rand_crop=True), "min_img_size": dict(rand_crop=True),
          "random_resized_crop": dict(min_random_area=0.3)}
# Tests of their own see these: threads, logs, alpha, errors, scaled decoding, places in memory, chunks of 1 MB (above), the name of the file.
ELSEWHERE = {"path_imgrec", "aug_seq", "preprocess_threads", "verbose", "device_id", "shuffle_chunk_size", "shuffle_chunk_seed", "prefetch_buffer",
             "ctx", "mean_a", "std_a", "scaled_decode", "on_error", "data_name", "label_name", "kwargs"}


@pytest.fixture
def coloured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = mx.recordio.MXIndexedRecordIO("p.idx", "p.rec", "w")
    for i in range(10):
        writer.write_idx(i, pack_img((0, i, i, 0), np.random.RandomState(i).randint(0, 256, (16, 18, 3), np.uint8), img_fmt=".png"))
    writer.close()
    for name, more in (("one.lst", ""), ("two.lst", "\t7")):
        (tmp_path / name).write_text("".join(f"{i}\t{i + 40}{more}\tx.png\n" for i in range(10)))

    def run(parameters):
        batches = list(mx.io.ImageRecordIter(**{"path_imgrec": "p.rec", "data_shape": (3, 8, 8), "batch_size": 3, "verbose": False, **parameters}))
        return [(b.data[0].dtype, b.data[0].shape, b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in batches]
    return run


def test_there_is_a_test_for_each_parameter():
    assert set(inspect.signature(mx.io.ImageRecordIter).parameters) == set(ACTS) | ELSEWHERE


@pytest.mark.parametrize("name", sorted(set(ACTS) - ELSEWHERE))
def test_each_parameter_acts(coloured, name):
    assert coloured(ACTS[name]) != coloured(BESIDE.get(name, {}))
