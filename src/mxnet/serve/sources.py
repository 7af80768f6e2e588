"""Where models come from: files of a network, folders of them, and what else lies beside a network."""
from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import checkpoint, files
from .. import symbol as sym
from ..base import MXNetError
from ..context import Context
from .images import Preprocessing
from .network import Network
from .tensors import DATATYPES, TensorSpec

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ARCHIVES = (".mar", ".model")


@dataclass(frozen=True)
class Source:
    """One version of a model: its name, its version, and the file or folder that it is read from."""

    name: str
    version: str
    path: str

    def stamp(self) -> tuple:
        """Return what changes when one of the files does."""
        folder = self.path if os.path.isdir(self.path) else None
        names = sorted(glob.glob(os.path.join(glob.escape(folder), "*"))) if folder else _files(self.path)
        return tuple((name, s.st_mtime_ns, s.st_size) for name in names if os.path.isfile(name) for s in (os.stat(name),))


@dataclass
class Loaded:
    """The content of a source.

    Attributes
    ----------
    network : Network
    labels : list of str
        Names of classes (``synset.txt``), or nothing.
    preprocessing : Preprocessing
        How an image becomes an input.
    """

    network: Network
    labels: list[str] = field(default_factory=list)
    preprocessing: Preprocessing = field(default_factory=Preprocessing)


def discover(argument: str) -> list[Source]:
    """Return the models that an argument of the command line names.

    Parameters
    ----------
    argument : str
        ``[NAME=]PATH`` with the path of ``PREFIX-symbol.json`` or its PREFIX, of an ``.onnx`` file, of an archive (``.mar``, ``.model``), of a folder
        with one of these, of a folder with versions (folders named 1, 2, ...), or of a folder with several models.

    Raises
    ------
    MXNetError
        If there is no model there, or a name holds other characters than letters, digits, ``.``, ``_`` and ``-``.
    """
    given, found = _split_name(argument)
    path = found.rstrip("/") or found
    if os.path.isdir(path):
        name = given or os.path.basename(os.path.abspath(path))
        own = _versions(name, path)
        if own:
            return own
        inside = [source for entry in sorted(os.listdir(path)) if os.path.isdir(os.path.join(path, entry)) and not entry.startswith(".")
                  for source in _versions(entry, os.path.join(path, entry))]
        if inside and given is None:
            return inside
        raise MXNetError(f"{path}: a folder with a model is expected (PREFIX-symbol.json with PREFIX-0000.params, or an .onnx file), with folders "
                         "1, 2, ... of such, or with folders of several models" if not inside else
                         f"{path} holds several models, whose names are those of their folders: leave out '{given}='")
    if not _files(path):
        raise MXNetError(f"{path}: no model there; expected is a folder, an .onnx file, or the PREFIX of PREFIX-symbol.json and PREFIX-0000.params")
    base = os.path.basename(path)
    for ending in ("-symbol.json", ".onnx", *_ARCHIVES):
        base = base.removesuffix(ending)
    return [Source(_checked(given or base), "1", path)]


def _split_name(argument: str) -> tuple[str | None, str]:
    name, equals, path = argument.partition("=")
    return (name, path) if equals and "/" not in name else (None, argument)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise MXNetError(f"a model's name consists of letters, digits, '.', '_' and '-', received {name!r}; say NAME=PATH")
    return name


def _versions(name: str, folder: str) -> list[Source]:
    """Return the model in a folder: itself, or its folders that are named by numbers."""
    if _network_in(folder) is not None:
        return [Source(_checked(name), "1", folder)]
    numbered = sorted((int(entry), entry) for entry in os.listdir(folder) if re.fullmatch(r"[1-9][0-9]{0,17}", entry))
    return [Source(_checked(name), entry, path) for _, entry in numbered if _network_in(path := os.path.join(folder, entry)) is not None]


def _network_in(folder: str) -> str | None:
    """Return the path of the network in a folder: the prefix, the ONNX file or the archive."""
    if not os.path.isdir(folder):
        return None
    found = [os.path.join(folder, entry) for entry in sorted(os.listdir(folder))
             if entry.endswith(("-symbol.json", ".onnx", *_ARCHIVES)) and not entry.startswith(".")]
    if len(found) > 1:
        raise MXNetError(f"{folder} holds several networks: {', '.join(map(os.path.basename, found))}; put each into a folder of its own")
    return found[0] if found else None


def _files(path: str) -> list[str]:
    """Return the files that a model's path stands for; none if there is no model."""
    if path.endswith((".onnx", *_ARCHIVES)):
        return [path] if os.path.isfile(path) else []
    symbol = path if path.endswith("-symbol.json") else f"{path}-symbol.json"
    return [symbol, *glob.glob(glob.escape(symbol.removesuffix("-symbol.json")) + "-*.params")] if os.path.isfile(symbol) else []


def archive_of(source: Source) -> str | None:
    """Return the archive that a source is, or None."""
    path = _network_in(source.path) if os.path.isdir(source.path) else source.path
    return path if path is not None and path.endswith(_ARCHIVES) else None


def load(source: Source, declared: list[TensorSpec], ctx: Context) -> Loaded:
    """Read a network and what lies beside it.

    Parameters
    ----------
    source : Source
    declared : list of TensorSpec
        Inputs as the command line gives them; if there are none, what ``signature.json`` or ``PREFIX-shapes.json`` says holds, else what the
        network says of itself.
    ctx : Context

    Raises
    ------
    MXNetError
        If a file is missing or damaged, or the inputs' shapes can't be found out.
    """
    path = _network_in(source.path) if os.path.isdir(source.path) else source.path
    if path is None:
        raise MXNetError(f"{source.path}: the model is gone")
    folder, signature = os.path.dirname(path), _json(os.path.join(os.path.dirname(path), "signature.json"))
    if path.endswith(".onnx"):
        from ..contrib import onnx
        symbol, arguments, auxiliary = onnx.import_model(path)
        own = _inputs_of_onnx(path)
    else:
        prefix = path.removesuffix("-symbol.json")
        symbol = sym.load(f"{prefix}-symbol.json")
        arguments, auxiliary = checkpoint.read_params(_newest_params(prefix))
        own = _inputs_of(signature, "signature.json", "inputs", "data_name", "data_shape") \
            or _inputs_of({"inputs": _json(f"{prefix}-shapes.json")}, f"{os.path.basename(prefix)}-shapes.json", "inputs", "name", "shape")
    # The batch that a file was written for says little about the batches to come.
    free = [spec._replace(shape=(-1, *spec.shape[1:])) for spec in own]
    network = Network(symbol, {**arguments, **auxiliary}, declared or free, ctx, [] if declared else [spec.shape[0] for spec in own])
    preprocessing = Preprocessing.of(signature)
    preprocessing.require_channels(network.inputs[0])
    return Loaded(network, _labels(folder), preprocessing)


def _newest_params(prefix: str) -> str:
    epochs = [(int(match.group(1)), name) for name in glob.glob(glob.escape(prefix) + "-*.params")
              if (match := re.fullmatch(re.escape(prefix) + r"-(\d{4,9})\.params", name))]
    if not epochs:
        raise MXNetError(f"{prefix}-symbol.json is there, but no parameters: expected is {prefix}-0000.params")
    return max(epochs)[1]


def _json(path: str) -> Any:
    if not os.path.isfile(path):
        return None
    try:
        return json.loads(files.read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise MXNetError(f"{path} is no JSON: {error}") from None


def _inputs_of(content: Any, file: str, key: str, name_key: str, shape_key: str) -> list[TensorSpec]:
    """Return the inputs that Multi Model Server's ``signature.json`` or SageMaker's ``model-shapes.json`` declares: [{name, shape}, ...]."""
    entries = content.get(key) if isinstance(content, dict) else None
    return [] if entries is None else list(_entries(entries, file, name_key, shape_key))


def _entries(entries: Any, file: str, name_key: str, shape_key: str) -> Iterator[TensorSpec]:
    for entry in entries if isinstance(entries, list) else [entries]:
        name, shape = (entry.get(name_key), entry.get(shape_key)) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(shape, list) or not shape or not all(type(size) is int for size in shape):
            raise MXNetError(f"{file}: an input is {{'{name_key}': name, '{shape_key}': list of integers}}, received {entry!r:.100}")
        yield TensorSpec(name, np.dtype(np.float32), tuple(size if size > 0 else -1 for size in shape))


def _inputs_of_onnx(path: str) -> list[TensorSpec]:
    from onnx.helper import tensor_dtype_to_np_dtype

    from ..contrib import onnx
    specs = []
    for name, shape, kind in onnx.get_model_metadata(path)["input_tensor_data"]:
        dtype = np.dtype(tensor_dtype_to_np_dtype(kind))
        specs.append(TensorSpec(name, dtype, tuple(size if size > 0 else -1 for size in shape) or (1,)))
        if dtype not in DATATYPES.values():
            raise MXNetError(f"{path}: the input {name!r} is of type {dtype}; served are {', '.join(DATATYPES)}")
    return specs


def _labels(folder: str) -> list[str]:
    path = os.path.join(folder, "synset.txt")
    return files.read_bytes(path).decode("utf-8", "replace").splitlines() if os.path.isfile(path) else []
