import numpy as np
import pytest

from mxnet.recordio import MXIndexedRecordIO, pack_img


def picture(i, height=10, width=12, channels=3):
    """The test image number `i`, with blue first."""
    y, x, c = np.mgrid[:height, :width, :channels]
    return ((x * 5 + y * 3 + c * 40 + i * 10) % 256).astype(np.uint8)


@pytest.fixture
def make_record(tmp_path):
    """A function that packs test images, without loss, and returns the path of the .rec file; the index is beside it."""
    def make(name="p", count=5, label=lambda i: i, channels=3):
        writer = MXIndexedRecordIO(tmp_path / f"{name}.idx", tmp_path / f"{name}.rec", "w")
        for i in range(count):
            writer.write_idx(i, pack_img((0, label(i), 100 + i, 0), picture(i, channels=channels), img_fmt=".png", quality=9))
        writer.close()
        return str(tmp_path / f"{name}.rec")
    return make
