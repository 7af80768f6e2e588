"""Synthetic JPEGs with the statistics of photographs, in class folders and in a RecordIO file, for the data benchmarks.

Noise whose amplitude falls with the frequency has a photograph's spectrum, and shapes have its edges: at quality 90 these take about as many bytes
as ImageNet's photographs of that size, so decoding takes about as long.
"""
import os

import cv2
import numpy as np

HEIGHT, WIDTH, QUALITY, CLASSES = 375, 500, 90, 10


def image(rng):
    """Return a uint8 array (HEIGHT, WIDTH, 3)."""
    frequency = np.hypot(np.fft.fftfreq(HEIGHT)[:, None], np.fft.rfftfreq(WIDTH))
    amplitude = 1 / np.maximum(frequency, 1 / WIDTH)

    def noise():
        plane = np.fft.irfft2(amplitude * np.exp(2j * np.pi * rng.random(amplitude.shape)), (HEIGHT, WIDTH))
        return plane / plane.std()

    luminance = noise()  # in common: the channels of photographs hardly differ
    pixels = np.clip(118 + 53 * np.stack([luminance + 0.25 * noise() for _ in range(3)], -1), 0, 255).astype(np.uint8)
    for _ in range(6):
        middle, axes = (int(rng.integers(WIDTH)), int(rng.integers(HEIGHT))), tuple(int(n) for n in rng.integers(10, 80, 2))
        cv2.ellipse(pixels, middle, axes, float(rng.integers(180)), 0, 360, tuple(int(n) for n in rng.integers(0, 255, 3)), -1, cv2.LINE_AA)
    return pixels


def write(folder, count):
    """Write ``folder/images/<class>/<number>.jpg`` and ``folder/images.rec`` with its index; do nothing if they are there."""
    from mxnet import recordio
    marker = os.path.join(folder, f"done-{count}")
    if os.path.exists(marker):
        return
    rng = np.random.default_rng(7)
    with recordio.MXIndexedRecordIO(os.path.join(folder, "images.idx"), os.path.join(folder, "images.rec"), "w") as record:
        for i in range(count):
            label = i % CLASSES
            content = cv2.imencode(".jpg", image(rng), (cv2.IMWRITE_JPEG_QUALITY, QUALITY))[1].tobytes()
            where = os.path.join(folder, "images", str(label))
            os.makedirs(where, exist_ok=True)
            with open(os.path.join(where, f"{i}.jpg"), "wb") as file:
                file.write(content)
            record.write_idx(i, recordio.pack((0, label, i, 0), content))
    open(marker, "w").close()


def write_long(folder, megabytes):
    """Write ``folder/long.rec``: the records of ``images.rec`` again and again, up to that size; return its path."""
    with open(os.path.join(folder, "images.rec"), "rb") as file:
        content = file.read()
    path = os.path.join(folder, "long.rec")
    with open(path, "wb") as file:
        while file.tell() < megabytes << 20:
            file.write(content)
    return path
