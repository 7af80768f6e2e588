import struct
import zlib

import cv2
import numpy as np
import pytest

import mxnet as mx
from mxnet.image_header import require_decodable, size_of

IMAGE = np.zeros((5, 7, 3), np.uint8)


@pytest.mark.parametrize("ending", [".png", ".jpg", ".bmp", ".webp", ".ppm", ".tiff"])
def test_the_size_is_that_of_the_image(ending):
    content = cv2.imencode(ending, IMAGE)[1]
    assert sorted(size_of(content)) == [5, 7]
    require_decodable(content, "x")


def test_other_forms_of_headers():
    assert sorted(size_of(cv2.imencode(".webp", IMAGE, [cv2.IMWRITE_WEBP_QUALITY, 101])[1])) == [5, 7]
    assert size_of(b"GIF89a" + struct.pack("<HH", 300, 2)) == (300, 2)
    assert size_of(b"P6\n# a comment\n30 20 255\n") == (30, 20) and size_of(b"P7\nWIDTH 30\nHEIGHT 20\n") == (30, 20)
    jpeg = cv2.imencode(".jpg", IMAGE)[1].tobytes()
    large = b"\xff\xe1" + struct.pack(">H", 65535) + b"\xff" * 65533  # more than one block of what precedes the size
    assert size_of(jpeg[:2] + large * 3 + jpeg[2:]) == (5, 7)


@pytest.mark.parametrize("content", [b"", b"x", b"\x89PNG", b"\xff\xd8\xff", b"\xff\xd8" + b"\0" * 100, b"BM", b"RIFF0000WEBP",
                                     b"II*\0\xff\xff\xff\xff", b"P6 a"])
def test_damaged_headers_say_nothing(content):
    assert size_of(content) is None
    require_decodable(content, "x")


def large_png(width, height, extra=1 << 18):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(1000)) + bytes(extra)) + chunk(b"IEND", b""))


def test_large_images_are_refused_before_they_are_decoded(tmp_path, monkeypatch):
    content, message = large_png(32000, 32000), "32000 x 32000 pixels is larger than 134217728 pixels; .* MXNET_IMAGE_MAX_PIXELS"
    with pytest.raises(mx.MXNetError, match=message):
        mx.image.imdecode(content)
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(mx.MXNetError, match=f"a.png'?: an image of {message}"):
        mx.image.imread(str(tmp_path / "a.png"))
    record = mx.recordio.pack(mx.recordio.IRHeader(0, 1.0, 0, 0), content)
    with pytest.raises(mx.MXNetError, match=message):
        mx.recordio.unpack_img(record)
    writer = mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "w")
    writer.write(record)
    writer.close()
    with pytest.raises(mx.MXNetError, match=message):
        next(mx.io.ImageRecordIter(path_imgrec=str(tmp_path / "a.rec"), data_shape=(3, 8, 8), batch_size=1))
    small = cv2.imencode(".png", IMAGE)[1].tobytes()
    monkeypatch.setenv("MXNET_IMAGE_MAX_PIXELS", "34")
    with pytest.raises(mx.MXNetError, match="7 x 5 pixels is larger than 34"):
        mx.image.imdecode(small)
    monkeypatch.setenv("MXNET_IMAGE_MAX_PIXELS", "35")
    assert mx.image.imdecode(small).shape == (5, 7, 3)


def test_few_bytes_hold_few_pixels():
    for content in (large_png(8000, 8000, 0), b"\xff\xd8\xff\xc0" + struct.pack(">HBHHB", 17, 8, 8000, 8000, 3) + bytes(100)):
        with pytest.raises(mx.MXNetError, match=f"{len(content)} bytes can't hold an image of 8000 x 8000 pixels"):
            mx.image.imdecode(content)


def test_chunks_of_a_png_end_within_the_file():
    content = bytearray(cv2.imencode(".png", IMAGE)[1].tobytes())
    at = content.index(b"IDAT")
    content[at - 4:at] = b"\x7f\xff\xff\xff"
    with pytest.raises(mx.MXNetError, match="a chunk of 2147483647 bytes ends behind the file's"):
        mx.image.imdecode(bytes(content))
