import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.recordio import MXRecordIO, pack, pack_img

OBJECTS = [[[1, 0.125, 0.25, 0.5, 0.75]], [[2, 0.25, 0.25, 0.75, 0.5], [3, 0.5, 0.5, 1, 1]], [[4, 0, 0, 0.25, 0.25]]]
PLAIN = dict(data_shape=(3, 8, 10), batch_size=3)


@pytest.fixture
def rec(tmp_path):
    writer = MXRecordIO(tmp_path / "det.rec", "w")
    for i, objects in enumerate(OBJECTS):
        y, x, c = np.mgrid[:16, :20, :3]
        label = [2, 5, *sum(objects, [])]
        writer.write(pack_img((0, label, 10 + i, 0), ((x * 5 + y * 3 + c * 40 + i * 10) % 256).astype(np.uint8), img_fmt=".png"))
    writer.close()
    return str(tmp_path / "det.rec")


def batch_of(rec, **kwargs):
    batch = next(mx.io.ImageDetRecordIter(path_imgrec=rec, **{**PLAIN, **kwargs}))
    return batch.data[0].asnumpy(), batch.label[0].asnumpy()


def test_labels(rec):
    it = mx.io.ImageDetRecordIter(path_imgrec=rec, **PLAIN)
    assert it.provide_data == [("data", (3, 3, 8, 10))] and it.provide_label == [("softmax_label", (3, 16))]
    batch = next(it)
    assert batch.label[0].asnumpy()[0].tolist() == [3, 8, 10, 7, 2, 5, 1, 0.125, 0.25, 0.5, 0.75, -1, -1, -1, -1, -1]
    assert batch.label[0].asnumpy()[1].tolist() == [3, 8, 10, 12, 2, 5, 2, 0.25, 0.25, 0.75, 0.5, 3, 0.5, 0.5, 1, 1]
    assert batch.index.tolist() == [10, 11, 12] and batch.pad == 0


def test_padding_of_labels(rec):
    _, label = batch_of(rec, label_pad_width=14, label_pad_value=-7)
    assert label.shape == (3, 18) and label[2, 11:].tolist() == [-7] * 7
    with pytest.raises(MXNetError, match="label_pad_width must be at least 12, the longest label; received 8"):
        batch_of(rec, label_pad_width=8)


def test_normalization(rec):
    plain, _ = batch_of(rec)
    data, _ = batch_of(rec, mean_r=100, std_g=4, scale=0.5)
    assert np.allclose(data[:, 0], (plain[:, 0] - 100) * 0.5) and np.allclose(data[:, 1], plain[:, 1] / 4 * 0.5)


def test_mirror(rec):
    plain, _ = batch_of(rec)
    data, label = batch_of(rec, rand_mirror_prob=1.0)
    assert np.abs(data - plain[:, :, :, ::-1]).max() <= 1
    assert label[0, 6:11].tolist() == [1, 0.5, 0.25, 0.875, 0.75]


def test_resize_modes(rec):
    data, label = batch_of(rec, data_shape=(3, 8, 40), resize_mode="fit")
    assert label[0, :3].tolist() == [3, 8, 10] and (data[:, :, :, 10:] == 0).all() and data[:, :, :, :10].mean() > 50
    _, label = batch_of(rec, data_shape=(3, 30, 40), resize_mode="shrink")
    assert label[0, :3].tolist() == [3, 16, 20]


def test_cropping_keeps_objects_in_place(tmp_path):
    """A white box on black must be where the label says, however the image is cropped, padded and mirrored."""
    image = np.zeros((64, 80, 3), np.uint8)
    image[16:48, 20:60] = 255
    with MXRecordIO(tmp_path / "box.rec", "w") as writer:
        for i in range(30):
            writer.write(pack_img((0, [2, 5, 1, 0.25, 0.25, 0.75, 0.75], i, 0), image, img_fmt=".png"))
    it = mx.io.ImageDetRecordIter(path_imgrec=str(tmp_path / "box.rec"), data_shape=(3, 64, 64), batch_size=30, rand_crop_prob=0.7,
                                  min_crop_scales=0.4, max_crop_scales=0.9, min_crop_aspect_ratios=0.7, max_crop_aspect_ratios=1.4,
                                  min_crop_object_coverages=0.3, rand_pad_prob=0.7, max_pad_scale=2.0, rand_mirror_prob=0.5, fill_value=0)
    batch = next(it)
    sizes = set()
    for picture, label in zip(batch.data[0].asnumpy(), batch.label[0].asnumpy(), strict=True):
        left, top, right, bottom = label[7:11]
        rows, columns = np.where(picture[0] > 127)
        found = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]) / 64
        assert np.abs(found - (left, top, right, bottom)).max() < 0.07  # a border of a few pixels is grey
        sizes.add(round(float(right - left), 2))
    assert len(sizes) > 10


def test_colours(rec):
    plain, _ = batch_of(rec)
    for name in ("hue", "saturation", "illumination"):
        data, _ = batch_of(rec, **{f"max_random_{name}": 60, f"random_{name}_prob": 1.0})
        assert 0.01 < np.abs(data - plain).mean() < 100
    data, _ = batch_of(rec, max_random_contrast=0.5, random_contrast_prob=1.0)
    factors = data.mean((1, 2, 3)) / plain.mean((1, 2, 3))
    assert factors.std() > 1e-4 and (factors > 0.48).all() and (factors < 1.52).all()


def test_labels_from_a_list(rec, tmp_path):
    (tmp_path / "x.lst").write_text("".join(f"{10 + i}\t2\t5\t9\t0.1\t0.2\t0.5\t0.6\tx.png\n" for i in range(3)))
    _, label = batch_of(rec, path_imglist=str(tmp_path / "x.lst"))
    assert label.shape == (3, 11) and (label[:, 6] == 9).all()


@pytest.mark.parametrize("parameters, message", [
    (dict(label_width=3), "offset 0: a label of label_width=3 numbers expected, received 7"),
    (dict(num_crop_sampler=2, min_crop_scales=(0.1, 0.2, 0.3)), "min_crop_scales has 3 values, num_crop_sampler is 2"),
    (dict(min_crop_overlaps=0.5, max_crop_overlaps=0.2), "min_crop_overlaps=0.5 is above max_crop_overlaps=0.2"),
    (dict(resize_mode="squeeze"), "Invalid Parameter format for resize_mode"),
    (dict(aug_seq="mine"), "the only augmenter is 'det_aug_default'"),
    (dict(dtype="float64"), "expected float32, float16, uint8 or int8, received float64"),
    (dict(inter_method=8), "inter_method must be 0 to 4, 9 or 10, received 8"),
])
def test_invalid(rec, parameters, message):
    with pytest.raises(MXNetError, match=message):
        batch_of(rec, **parameters)


@pytest.mark.parametrize("label, message", [(3.0, "label.* a single number"), ([2, 5, 1], "needs a header of 2 numbers and objects of 5 or more"),
                                            ([2, 5, 1, 0, 0, 1, 1, 7], "does not fit its own header width 2 and object width 5")])
def test_labels_of_another_form(tmp_path, label, message):
    with MXRecordIO(tmp_path / "bad.rec", "w") as writer:
        writer.write(pack_img((0, label, 0, 0), np.zeros((8, 8, 3), np.uint8)))
    with pytest.raises(MXNetError, match=f"bad.rec, the record at offset 0: .*{message}"):
        batch_of(str(tmp_path / "bad.rec"), batch_size=1)


@pytest.mark.parametrize("options", [dict(), dict(data_shape=(3, 8, 40), resize_mode="fit")], ids=["whole", "part"])
def test_types_and_layouts(rec, options):
    # In int8 means are subtracted and nothing is divided, as by ImageRecordIter; no part of MXNet does it for detection.
    plain, labels = batch_of(rec, **options)
    for dtype, more, expected in (("uint8", {}, plain), ("int8", dict(mean_r=3.0, mean_g=100.0), None), ("float16", dict(std_b=2.0), None)):
        data, label = batch_of(rec, dtype=dtype, **more, **options)
        last, _ = batch_of(rec, dtype=dtype, layout="NHWC", **more, **options)
        assert data.dtype == dtype and np.array_equal(last.transpose(0, 3, 1, 2), data) and np.array_equal(label, labels)
        assert expected is None or np.array_equal(data, expected)
    assert last.shape == (3, *options.get("data_shape", (3, 8, 10))[1:], 3)
    assert np.allclose(data[:, 2], plain[:, 2] / 2)
    shown = slice(10)
    data, _ = batch_of(rec, dtype="int8", mean_r=3.0, mean_g=100.0, **options)
    assert np.array_equal(data[:, 1, :, shown], np.clip(plain[:, 1, :, shown] - 100, -128, 127)) and (data[:, :, :, 10:] == 0).all()
    with pytest.warns(UserWarning, match="ImageDetRecordIter with dtype=uint8 does not apply mean_r, std_g$"):
        batch_of(rec, dtype="uint8", mean_r=1, std_g=2, max_random_contrast=0.5, random_contrast_prob=0)


@pytest.mark.parametrize("threads", [1, 3])
def test_images_or_labels_that_are_none_are_left_out(tmp_path, threads):
    path = str(tmp_path / "bad.rec")
    writer = MXRecordIO(path, "w")
    label = [2, 5, 1, 0.25, 0.25, 0.5, 0.5]
    for i in range(8):
        image = np.full((8, 10, 3), 10 * i, np.uint8)
        writer.write(b"short" if i == 0 else pack((0, label, i, 0), b"no image") if i == 2 else
                     pack_img((0, 7 if i == 3 else [2, 5, 1] if i == 6 else label, i, 0), image, img_fmt=".png"))
    writer.close()
    options = dict(path_imgrec=path, data_shape=(3, 8, 10), batch_size=2, preprocess_threads=threads)
    it = mx.io.ImageDetRecordIter(on_error="skip", **options)
    found = [(b.data[0].asnumpy()[:, 0, 0, 0].tolist(), b.index.tolist(), b.label[0].shape, b.pad) for b in it]
    assert found == [([10, 40], [1, 4], (2, 11), 0), ([50, 70], [5, 7], (2, 11), 0)]
    reasons = [reason.split(": ", 1)[1] for _, reason in sorted(it.handle.skipped.items(), key=lambda item: int(item[0].split()[-1]))]
    assert [reason.split(",")[0][:40] for reason in reasons][:3] == [
        "an image record starts with a header of ", "8 bytes that are no image", "image 3 has a single number as its label"]
    assert len(reasons) == 4
    with pytest.raises(MXNetError, match="bad.rec, the record at offset 0: an image record starts with a header"):
        mx.io.ImageDetRecordIter(**options)
