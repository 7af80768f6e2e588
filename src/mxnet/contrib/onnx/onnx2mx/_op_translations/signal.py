"""Fourier transforms, and the windows and filters applied before them."""
import numpy as np

from .....base import MXNetError
from ..reading import element_type
from ..registry import translates
from ..values import as_integers
from .elemwise import binary, cast_to, with_number
from .slicing import padded


@translates("DFT")
def dft(g, data, dft_length=None, axis=None, *, inverse=0, onesided=0):
    """The discrete Fourier transform along an axis, as a product with a matrix; the last axis holds real and imaginary parts, or real ones."""
    g.entry(data)
    along = (1 if g.opset < 20 else -2) if axis is None else int(axis.number("axis"))
    along = g.axis(data, along)
    rank = g.rank(data)
    if along == rank - 1:
        raise MXNetError(f"the last axis holds real and imaginary parts; a transform goes along another, received axis {along} of {rank}")
    given = g.size(data, along, "DFT")
    back = bool(inverse and onesided)
    length = int(dft_length.number("dft_length")) if dft_length is not None else 2 * (given - 1) if back else given
    return transformed(g, data, along, length, inverse, onesided)


def transformed(g, data, axis, length, inverse=0, onesided=0):
    """`dft` along an axis counted from the front, of so many elements."""
    half, kind = length // 2 + 1, g.dtype(data) or np.dtype("float32")
    back = bool(inverse and onesided)
    before = half if back else length
    if not 0 < length <= 1 << 12:
        raise MXNetError(f"a transform of {length} elements; expected 1 to {1 << 12}")
    rank, missing = g.rank(data), before - g.size(data, axis, "DFT")
    if missing:
        data = padded(g, data, [(0, missing) if i == axis else (0, 0) for i in range(rank)])
    data = cast_to(g, data, "float64")
    parts = g.size(data, rank - 1, "DFT")
    if parts not in (1, 2):
        raise MXNetError(f"the last axis holds real and imaginary parts, or real ones: expected 1 or 2 elements, received {parts}")
    last = rank - 2
    turned = [i for i in range(rank - 1) if i != axis] + [axis]
    real, *imaginary = (g.op("transpose", g.op("squeeze", g.op("slice_axis", data, axis=rank - 1, begin=i, end=i + 1), axis=rank - 1), axes=turned)
                        for i in range(parts))
    cosine, sine = _matrices(length, inverse, onesided)

    def product(value, matrix):  # in double precision: float32 sums of thousands of products are less accurate than a fast transform
        return g.op("FullyConnected", value, g.array(matrix), num_hidden=matrix.shape[0], no_bias=True, flatten=False)

    products = [product(real, cosine), product(real, -sine)]
    if imaginary:
        products[0] = binary(g, "broadcast_add", products[0], product(imaginary[0], sine))
        products[1] = binary(g, "broadcast_add", products[1], product(imaginary[0], cosine))
    order = [turned.index(i) for i in range(last + 1)]
    products = [g.op("transpose", value, axes=order) for value in (products[:1] if back else products)]
    return cast_to(g, g.op("stack", *products, axis=rank - 1), kind)


def _matrices(length, inverse, onesided):
    """Cosines and sines, (elements of the result, elements of the data)."""
    half = length // 2 + 1
    rows = np.arange(half if onesided and not inverse else length)
    columns = np.arange(half if onesided and inverse else length)
    angle = 2 * np.pi * (rows[:, None] * columns[None] % length) / length
    cosine, sine = np.cos(angle), np.sin(angle) * (-1 if inverse else 1)
    if inverse:
        weight = np.ones(len(columns)) / length
        if onesided:
            weight[1:(length + 1) // 2] *= 2  # the other half, which is not there
        cosine, sine = cosine * weight, sine * weight
    return cosine, sine


@translates("STFT")
def stft(g, data, frame_step, window=None, frame_length=None, *, onesided=1):
    """Fourier transforms of parts of a signal (batch, length, 1 or 2)."""
    g.entry(data)
    step = int(frame_step.number("frame_step"))
    length = int(frame_length.number("frame_length")) if frame_length is not None else 0
    if not length:
        if window is None:
            raise MXNetError("`window` or `frame_length` expected, received neither")
        length = g.size(window, 0, "STFT")
    total = g.size(data, 1, "STFT")
    if step < 1 or not 0 < length <= total:
        raise MXNetError(f"parts of {length} elements in steps of {step}, of a signal of {total}")
    count, _ = g.small(((total - length) // step + 1, length), "STFT")
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = g.op("take", data, g.array(places), axis=1, mode="clip")
    if window is not None:
        frames = binary(g, "broadcast_mul", frames, g.op("Reshape", window, shape=(1, 1, -1, 1)))
    return transformed(g, frames, 2, length, 0, onesided)


@translates("MelWeightMatrix")
def mel_weight_matrix(g, num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz, *, output_datatype=1):
    """A matrix that makes a mel spectrum of a linear one."""
    (bins,), (length,), (rate,) = (as_integers(value.constant(name), name) for value, name in (
        (num_mel_bins, "num_mel_bins"), (dft_length, "dft_length"), (sample_rate, "sample_rate")))
    low, high = (2595 * np.log10(1 + value.number(name) / 700) for value, name in (
        (lower_edge_hertz, "lower_edge_hertz"), (upper_edge_hertz, "upper_edge_hertz")))
    rows = length // 2 + 1
    if not (0 < bins and 0 < rows and rate > 0 and bins * rows <= 1 << 24):
        raise MXNetError(f"{bins} bins of a transform of {length} elements at {rate} Hz")
    edges = 700 * (10 ** ((np.arange(bins + 2) * ((high - low) / (bins + 2)) + low) / 2595) - 1)
    edges = ((length + 1) * edges // rate).astype(int)
    place, left, middle, right = np.arange(rows)[:, None], edges[:-2], edges[1:-1], edges[2:]
    rising = np.where((place >= left) & (place <= middle), (place - left) / np.maximum(middle - left, 1), 0)
    rising = np.where(middle == left, place == middle, rising)
    falling = (right - place) / np.maximum(right - middle, 1)
    weights = np.where((place >= middle) & (place < right), falling, rising)
    return g.array(weights.astype(element_type(output_datatype, "its result")))


def _window(g, size, output_datatype, periodic, weights):
    count = int(size.number("size"))
    if not 0 <= count <= 1 << 24:
        raise MXNetError(f"a window of {count} elements")
    angle = 2 * np.pi * np.arange(count) / max(count if periodic else count - 1, 1)
    window = sum(weight * np.cos(i * angle) for i, weight in enumerate(weights))
    return g.array(np.asarray(window).astype(element_type(output_datatype, "its result")))


@translates("HannWindow")
def hann_window(g, size, *, output_datatype=1, periodic=1):
    """Half a cosine."""
    return _window(g, size, output_datatype, periodic, (0.5, -0.5))


@translates("HammingWindow")
def hamming_window(g, size, *, output_datatype=1, periodic=1):
    """A cosine above a step."""
    return _window(g, size, output_datatype, periodic, (25 / 46, -21 / 46))


@translates("BlackmanWindow")
def blackman_window(g, size, *, output_datatype=1, periodic=1):
    """Two cosines."""
    return _window(g, size, output_datatype, periodic, (0.42, -0.5, 0.08))


@translates("ai.onnx.ml.Binarizer")
def binarizer(g, data, *, threshold=0.0):
    """1 above a threshold, else 0."""
    return with_number(g, "_greater_scalar", data, threshold)
