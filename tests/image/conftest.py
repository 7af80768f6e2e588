import cv2
import numpy as np
import pytest

import mxnet as mx


@pytest.fixture
def pixels():
    y, x, c = np.mgrid[:10, :12, :3]
    return ((x * 5 + y * 3 + c * 40) % 256).astype(np.uint8)


@pytest.fixture
def image(pixels):
    return mx.nd.array(pixels, dtype="uint8")


@pytest.fixture
def folder(tmp_path, pixels):
    """Five image files, 0.png to 4.png, with red first as read back; and one that is no image."""
    for i in range(5):
        cv2.imwrite(str(tmp_path / f"{i}.png"), ((pixels.astype(int) + 10 * i) % 256).astype(np.uint8)[:, :, ::-1])
    (tmp_path / "bad.png").write_bytes(b"no image")
    return tmp_path
