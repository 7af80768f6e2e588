"""Parameters of kernels as structs, declared here only: `header` generates the C++ declarations, with which every kernel is compiled.

The names are those of the contracts: n images of h x w pixels and c channels, k filters of r x s taps, p x q outputs. build.py loads this file alone,
where neither torch nor mxnet can be imported.
"""
import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_float, c_int32, c_int64
from typing import Any

MLP_LAYERS = 8  # most layers of a fused MLP
TRAINED_LAYERS = 4  # and of one in training
UPDATED_TOGETHER = 8  # most weights of one call of an optimizer's kernel
_CPP_TYPES: dict[Any, str] = {c_int64: "int64_t", c_int32: "int32_t", c_float: "float"}


def _int64(*names: str) -> list[tuple[str, Any]]:
    return [(name, c_int64) for name in names]


def _float(*names: str) -> list[tuple[str, Any]]:
    return [(name, c_float) for name in names]


_STEPS = ("stride_h", "stride_w", "pad_h", "pad_w", "dilate_h", "dilate_w")
_CONVOLUTION = ("n", "h", "w", "c", "k", "r", "s", "p", "q", *_STEPS)
_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w")


class ConvParams(Structure):
    """A convolution of one group."""

    _fields_ = _int64(*_CONVOLUTION)


class StridedConvParams(Structure):
    """A convolution that writes the channels from `first` on, of an array with `total` channels."""

    _fields_ = _int64(*_CONVOLUTION, "total", "first")


class PrepackedConvParams(Structure):
    """The same with packed weights. With `lines` the inner sum runs over rows of the filter; with `planes` the data has its channels first."""

    _fields_ = _int64(*_CONVOLUTION, "total", "first", "lines", "planes")


class DepthwiseParams(Structure):
    """A depthwise convolution that writes the channels from `first` on, of an array with `total` channels."""

    _fields_ = _int64("n", "h", "w", "c", "r", "s", "p", "q", *_STEPS, "total", "first")


class WinogradParams(Structure):
    """A convolution with stride 1 that writes the channels from `first` on, of an array with `total` channels."""

    _fields_ = _int64("n", "h", "w", "c", "k", "p", "q", "pad_h", "pad_w", "total", "first")


class WinogradGradientParams(Structure):
    """The gradient of the weights, in blocks of `block` tiles."""

    _fields_ = _int64("n", "h", "w", "c", "k", "p", "q", "pad_h", "pad_w", "block")


class DeformableParams(Structure):
    """Samples of a deformable convolution with `groups` groups of channels; with `fades` samples fade to zero outside of the image.

    The filter has `down` x `across` taps.
    """

    _fields_ = _int64("n", "c", "h", "w", "p", "q", "groups", "down", "across", "stride_down", "stride_across", "dilate_down",
                      "dilate_across", "pad_down", "pad_across", "fades")


class PoolingNhwcParams(Structure):
    """Pooling that writes the channels from `first` on, of an array with `total` channels. With `padded` an average counts the padding."""

    _fields_ = _int64("n", "h", "w", "c", "p", "q", *_WINDOW, "total", "first", "average", "padded")


class MaxPoolingParams(Structure):
    """Maximum pooling of `planes` planes."""

    _fields_ = _int64("planes", "h", "w", "p", "q", *_WINDOW)


class RoiPoolingParams(Structure):
    """Pooling of r regions to p x q bins. Position-sensitive pooling has down x right groups of channels, other pooling one."""

    _fields_ = _int64("n", "c", "h", "w", "r", "p", "q", "down", "right")


class RnnParams(Structure):
    """A recurrent layer of u units over t steps, of b rows each or n in all; d numbers are passed on from step to step.

    With `keep` the forward pass stores what the backward pass needs; with `wide` bfloat16 is multiplied as float32.
    """

    _fields_ = _int64("t", "b", "n", "u", "d", "reverse", "keep", "wide")


class RnnPackingParams(Structure):
    """Packing of the weights of a recurrent layer."""

    _fields_ = _int64("u", "d", "wide")


class FusedMlpParams(Structure):
    """Fully connected layers over n rows: `widths` are the numbers of inputs and of each layer's outputs, 0 behind the last.

    Bit i of `relu_mask` is set if layer i has a ReLU.
    """

    _fields_ = [*_int64("n"), ("widths", c_int64 * (MLP_LAYERS + 1)), *_int64("relu_mask")]


class MlpTrainingParams(Structure):
    """Fully connected layers in training over n rows; the widths are those of `FusedMlpParams`.

    Two bits for each layer tell its activation: 0 none, 1 ReLU, 2 sigmoid, 3 tanh.
    """

    _fields_ = [*_int64("n"), ("widths", c_int64 * (TRAINED_LAYERS + 1)), *_int64("activations")]


class BatchNormForwardParams(Structure):
    """Batch normalization, with a ReLU or not; with `streaming` results are written by non-temporal stores."""

    _fields_ = [*_float("eps", "momentum"), ("relu", c_int32), ("streaming", c_int32)]


class BatchNormBackwardParams(Structure):
    """Its gradients; the names are those of `BatchNormForwardParams`."""

    _fields_ = [("relu", c_int32), ("streaming", c_int32)]


class AdamParams(Structure):
    """An update by Adam; `rest1` and `rest2` are 1 - beta1 and 1 - beta2, and a `clip` below 0 clips nothing."""

    _fields_ = _float("lr", "beta1", "beta2", "rest1", "rest2", "epsilon", "wd", "rescale", "clip")


class UpdatedTogetherParams(Structure):
    """The numbers of elements of several weights, 0 behind the last."""

    _fields_ = [("sizes", c_int64 * UPDATED_TOGETHER)]


class AdamaxParams(Structure):
    """An update by Adamax; the names are those of `AdamParams`."""

    _fields_ = _float("lr", "beta1", "beta2", "rest1", "epsilon", "wd", "rescale", "clip")


class ImageCutParams(Structure):
    """The geometry of an image's preprocessing, as `mxnet.kernels.image.transform.Cut` describes it."""

    _fields_ = _int64("height", "width", "top", "left", "rows", "columns", "resized_rows", "resized_columns", "crop_top", "crop_left", "mirrored",
                      "reversed")


class JpegParams(Structure):
    """The length of a file in bytes, the size of its image, and the window that is decoded."""

    _fields_ = _int64("length", "height", "width", "top", "left", "rows", "columns")


STRUCTS: tuple[type[Structure], ...] = tuple(v for v in list(globals().values())
                                             if isinstance(v, type) and issubclass(v, Structure) and v is not Structure)


def field_names(struct: type[Structure]) -> tuple[str, ...]:
    """Return the names of a struct's fields, in order."""
    return tuple(field[0] for field in struct._fields_)


def header(structs: Sequence[type[Structure]] = STRUCTS) -> str:
    """Return the C++ header ``runtime/parameters.h``; it does not compile if C++ lays out a struct unlike ctypes."""
    lines = "// Generated from runtime/parameters.py, which describes the fields.", "#pragma once", "#include <cstddef>", "#include <cstdint>"
    return "\n".join([*lines, *map(_declaration, structs)])


def _declaration(struct: type[Structure]) -> str:
    name = struct.__name__
    lines, checks = [], [f'static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "size of {name}");']
    fields: list[Any] = list(struct._fields_)
    for field, kind in fields:
        array = issubclass(kind, ctypes.Array)
        lines.append(f"  {_CPP_TYPES[kind._type_ if array else kind]} {field}{f'[{kind._length_}]' if array else ''};")
        checks.append(f'static_assert(offsetof({name}, {field}) == {getattr(struct, field).offset}, "offset of {name}::{field}");')
    return "\n".join([f"\nstruct {name} {{", *lines, "};", *checks, ""])
