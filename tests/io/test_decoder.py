import cv2
import numpy as np
import pytest

from mxnet.base import MXNetError
from mxnet.io.decoder import Decoder

IMAGE = np.random.RandomState(0).randint(0, 256, (40, 60, 3)).astype(np.uint8)


def encoded(image=IMAGE, ending=".jpg", *parameters):
    return memoryview(cv2.imencode(ending, image, parameters)[1].tobytes())


@pytest.mark.parametrize("content", [encoded(), encoded(IMAGE, ".png"), encoded(IMAGE[:, :, 0]),
                                     encoded(IMAGE, ".jpg", cv2.IMWRITE_JPEG_PROGRESSIVE, 1)],
                         ids=["jpeg", "png", "gray", "progressive"])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_opencvs(content, channels):
    expected = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE)
    assert np.array_equal(Decoder(channels)(content), expected)


def test_an_image_that_is_turned_by_exif():
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    content = bytes(encoded())
    content = content[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + content[2:]
    assert Decoder(3)(memoryview(content)).shape == (60, 40, 3)


def test_memory_is_kept_for_the_next_image():
    decode = Decoder(3)
    first, content = decode(encoded()), encoded(IMAGE[:, ::-1])
    flat = decode.flat(first)
    assert np.array_equal(flat[:first.size].numpy().reshape(first.shape), first) and flat.numel() > first.size
    assert np.shares_memory(first, decode(content))
    cropped = first[3:20, 5:30]
    assert np.array_equal(decode.flat(cropped).numpy().reshape(cropped.shape), cropped)


def test_what_is_no_image():
    with pytest.raises(MXNetError, match="3 bytes that are no image"):
        Decoder(3)(memoryview(b"abc"))
    with pytest.raises(MXNetError, match="bytes that are no image"):
        Decoder(3)(encoded()[:-300])
    with pytest.raises(MXNetError, match="Expected 4 channels, got 3"):
        Decoder(4)(encoded())
    with pytest.raises(MXNetError, match="1, 3 or 4 channels, received 2"):
        Decoder(2)
