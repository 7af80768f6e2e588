"""Readers of ONNX files: sizes, types and offsets are checked before they are used."""
from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base import MXNetError
from ....files import read_bytes, recover

if TYPE_CHECKING:
    from types import ModuleType

_MAX_AXES = 32
# By the numbers of onnx.proto: the type in the file, and the one that arrays have here, where there is no such type.
_TYPES = {1: ("<f4", None), 2: ("u1", None), 3: ("i1", None), 4: ("<u2", "int32"), 5: ("<i2", None), 6: ("<i4", None), 7: ("<i8", None),
          9: ("?", None), 10: ("<f2", None), 11: ("<f8", None), 12: ("<u4", "int64"), 13: ("<u8", "int64"), 16: ("<u2", "float32")}
BFLOAT16 = 16
_NAMES = {8: "string", 14: "complex64", 15: "complex128", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz",
          21: "uint4", 22: "int4", 23: "float4e2m1"}
# Where numbers lie that are not in `raw_data`.
_FIELDS = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}


class UnsupportedFeature(MXNetError, NotImplementedError):
    """Raised for a valid file with a feature that cannot be imported: an operator, a type, or a use of one."""


class UnknownValue(UnsupportedFeature):
    """Raised where the import of a node needs sizes or values that are known only when the network runs."""


def onnx_package() -> ModuleType:
    """Return the package ``onnx``.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(f"reading ONNX files takes the package onnx ({error}); install it with: pip install 'remexnet[onnx]'") from error
    return onnx


def read_model(path: str) -> Any:
    """Return the message in an ONNX file; arrays in files of their own are not read yet.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    MXNetError
        If the file cannot be read or holds no model.
    ImportError
        If the package onnx is not installed.
    """
    onnx = onnx_package()
    from google.protobuf.message import DecodeError
    model = onnx.ModelProto()
    recover(path, f"{os.fspath(path)}.data")  # of an export that was killed
    try:
        model.ParseFromString(read_bytes(path))
    except DecodeError as error:
        raise MXNetError(f"{os.fspath(path)} is no ONNX model, or is damaged: {error}") from error
    if not model.HasField("graph"):
        raise MXNetError(f"{os.fspath(path)} holds no ONNX graph")
    return model


def opset_of(model: Any, path: str) -> int:
    """Return the version of ONNX's own operators that a model is written for.

    Raises
    ------
    MXNetError
        If the file has no version.
    """
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions:
        raise MXNetError(f"{os.fspath(path)} does not say for which version of ONNX's operators it was written (opset_import)")
    return max(versions)


def element_type(number: int, what: str) -> np.dtype[Any]:
    """Return the numpy type in which values of one of ONNX's types are kept here.

    Raises
    ------
    UnsupportedFeature
        If there is none.
    """
    if number not in _TYPES:
        raise UnsupportedFeature(f"{what} has the element type {_NAMES.get(number, number)}, which no array here can have")
    stored, numpy_type = _TYPES[number]
    return np.dtype(numpy_type or stored)


def stored_type(number: int) -> np.dtype[Any] | None:
    """Return the numpy type that the format has for one of ONNX's types; None for those that no array here can have, and for bfloat16."""
    return None if number not in _TYPES or number == BFLOAT16 else np.dtype(_TYPES[number][0])


def read_tensor(tensor: Any, folder: str | None = None, what: str | None = None) -> np.ndarray:
    """Return the array of a ``TensorProto``.

    Parameters
    ----------
    tensor : onnx.TensorProto
    folder : str, optional
        That of the model, in which arrays of their own files are. Without it there are none.
    what : str, optional
        Its name in messages.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    MXNetError
        If its type is none that arrays have, if its size is not that of its data, or if these lie outside of `folder`.
    """
    what = what or f"the array '{tensor.name}'"
    number = tensor.data_type
    dtype = element_type(number, what)
    stored = np.dtype(_TYPES[number][0])
    shape = tuple(tensor.dims)
    if len(shape) > _MAX_AXES or any(size < 0 for size in shape):
        raise MXNetError(f"{what} has the shape {shape[:8]}: expected at most {_MAX_AXES} axes, and no negative size")
    count = math.prod(shape)
    if tensor.data_location == tensor.EXTERNAL:
        values = _external(tensor, folder, count, stored, what)
    elif tensor.HasField("raw_data"):
        raw = tensor.raw_data
        if len(raw) != count * stored.itemsize:
            raise MXNetError(f"{what} has {len(raw)} bytes of data, its shape {shape} and type take {count * stored.itemsize}")
        values = np.frombuffer(raw, stored)
    else:
        given = getattr(tensor, _FIELDS.get(number, "int32_data"))
        if len(given) != count:
            raise MXNetError(f"{what} has {len(given)} numbers, its shape {shape} takes {count}")
        # Halves are stored as the numbers that their bits make.
        values = np.array(given, "<u2").view(stored) if number == 10 else np.array(given).astype(stored)
    if number == BFLOAT16:
        values = (values.astype("<u4") << 16).view("<f4")
    elif stored.kind == "b":
        values = values.view("u1") != 0
    if number == 13 and values.size and values.max() > np.uint64(2 ** 63 - 1):
        raise UnsupportedFeature(f"{what} holds numbers of 2**63 and more, for which arrays here have no type")
    return values.astype(dtype).reshape(shape)


def _external(tensor, folder, count, stored, what):
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise MXNetError(f"{what} is in a file of its own ({location!r:.80}); import the model by its path, so that it is known where that lies")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", count * stored.itemsize))
    except ValueError:
        raise MXNetError(f"{what} lies at offset {entries.get('offset')!r:.40}, of length {entries.get('length')!r:.40}; expected integers") from None
    if "\0" in location:
        raise MXNetError(f"{what}: a file name without a zero byte expected, received {location!r:.80}")
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, location))
    if not location or os.path.isabs(location) or os.path.commonpath([root, path]) != root or path == root:
        raise MXNetError(f"{what} lies in {location!r:.120}, outside of the model's folder; only files below that are read")
    if length != count * stored.itemsize:
        raise MXNetError(f"{what} has {length} bytes of data in {location!r:.120}, its shape and type take {count * stored.itemsize}")
    try:
        size = os.path.getsize(path) if os.path.isfile(path) else -1
        if size < 0 or offset < 0 or offset + length > size:
            problem = "there is no such file" if size < 0 else f"the file has {size} bytes"
            raise MXNetError(f"{what} takes bytes {offset} to {offset + length} of {location!r:.120}; {problem}")
        return np.fromfile(path, stored, count, offset=offset)
    except OSError as error:
        raise MXNetError(f"{what}: cannot read {location!r:.120}: {error.strerror}") from error


def read_attributes(node: Any, folder: str | None = None, outer: Any = None, field: str = "attribute") -> dict[str, Any]:
    """Return the attributes of a node as Python values: numbers, texts, tuples of these, arrays, graphs.

    Parameters
    ----------
    node : onnx.NodeProto or onnx.FunctionProto
    folder : str, optional
        As for `read_tensor`.
    outer : dict, optional
        The attributes of the function that the node is in, which its own may refer to.
    field : str
        Where they stand in the message.

    Returns
    -------
    dict of str to object

    Raises
    ------
    MXNetError
        If one is given twice, refers to an attribute that is not there, or is of a kind that cannot be imported.
    """
    onnx = onnx_package()
    kinds = onnx.AttributeProto
    read = {kinds.FLOAT: lambda a: a.f, kinds.INT: lambda a: a.i, kinds.STRING: lambda a: _text(a.s, a.name),
            kinds.FLOATS: lambda a: tuple(a.floats), kinds.INTS: lambda a: tuple(a.ints),
            kinds.STRINGS: lambda a: tuple(_text(s, a.name) for s in a.strings), kinds.GRAPH: lambda a: a.g,
            kinds.TENSOR: lambda a: read_tensor(a.t, folder, f"the attribute {a.name!r}")}
    attributes = {}
    for attribute in getattr(node, field):
        if attribute.name in attributes:
            raise MXNetError(f"the attribute {attribute.name!r} is given twice")
        if attribute.ref_attr_name:
            if outer is None:
                raise MXNetError(f"the attribute {attribute.name!r} refers to that of a function, and the node is in none")
            if attribute.ref_attr_name in outer:
                attributes[attribute.name] = outer[attribute.ref_attr_name]
            continue
        kind = attribute.type or _guessed(attribute, kinds)
        if kind not in read:
            raise UnsupportedFeature(f"the attribute {attribute.name!r} is of a kind that cannot be imported (number {kind} in onnx.proto)")
        attributes[attribute.name] = read[kind](attribute)
    return attributes


def _guessed(attribute, kinds):
    """Return the kind of an attribute of the first version of the format, which did not name it."""
    for field, kind in (("f", kinds.FLOAT), ("i", kinds.INT), ("s", kinds.STRING), ("t", kinds.TENSOR), ("g", kinds.GRAPH)):
        if attribute.HasField(field):
            return kind
    several = {"floats": kinds.FLOATS, "ints": kinds.INTS, "strings": kinds.STRINGS}
    return next((kind for field, kind in several.items() if getattr(attribute, field)), 0)


def _text(content, name):
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise MXNetError(f"the attribute {name!r} is no text in UTF-8: {content!r:.60}") from None
