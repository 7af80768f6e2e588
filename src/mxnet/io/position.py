"""Files with the position of an iterator in its data, as parts of checkpoints."""
import base64
import json
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .. import files
from ..base import MXNetError
from ..ops import random_state

__all__ = ["load_position", "save_position"]

# The formats, and how the states of generators are decoded. Base85 is written in Python and takes 0.1 s for all states of this thread's generators.
_FORMATS: dict[str, Callable[[str], bytes]] = {"remex data position 1": base64.b85decode, "remex data position 2": base64.b64decode}
_FORMAT = "remex data position 2"
_DAMAGE = (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError)  # the errors of invalid contents


def save_position(fname: str | os.PathLike[str], data: Any, epoch_over: bool = False) -> None:
    """Save the position of `data` to a file, and the states of the random generators on which later orders and augmentations depend: NumPy's,
    Python's, this thread's for CPU arrays, and those of the GPUs in use. The file is written atomically.

    `Module.fit` has already taken the next batch when it calls a ``batch_end_callback``: positions within its epochs are one batch ahead of training.

    Parameters
    ----------
    fname : str
    data : NDArrayIter, MXDataIter, ResizeIter or gluon.data.DataLoader
        Any object with ``state()``, ``load_state(state)`` and ``reset()`` (or a loader's ``clean()``); a state consists of dicts, lists,
        texts, numbers and None.
    epoch_over : bool
        Continue with the next epoch, even if the current one is not finished.

    Raises
    ------
    MXNetError
        If `data` has no state, or the file cannot be written.

    Example
    -------
    >>> import mxnet as mx, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'train-0001.data')
    >>> it = mx.io.NDArrayIter(mx.nd.arange(6), batch_size=2)
    >>> first = it.next()
    >>> mx.io.save_position(path, it)
    >>> it = mx.io.NDArrayIter(mx.nd.arange(6), batch_size=2)
    >>> mx.io.load_position(path, it)
    >>> it.next().data[0].asnumpy()
    array([2., 3.], dtype=float32)
    """
    files.write_bytes(fname, position_text(data, epoch_over).encode())


def position_text(data: Any = None, epoch_over: bool = False) -> str:
    """Return the content of a file of `save_position`; without `data` the states of the random generators alone.

    Raises
    ------
    MXNetError
        If `data` has no state.
    """
    if data is not None:
        _require_state(data)
    state = None if data is None else data.state()
    try:
        return json.dumps({"format": _FORMAT, "epoch_over": bool(epoch_over), "data": state, "generators": _generators()})
    except (TypeError, ValueError) as error:
        raise MXNetError(f"save_position: state() of a {type(data).__name__} is not of dicts, lists, texts, numbers and None: {error}") from None


def load_position(fname: str | os.PathLike[str], data: Any) -> None:
    """Restore the position of `data` and the random generators from a file of `save_position`; `data` must be made with the same arguments.

    Raises
    ------
    MXNetError
        If the file is missing or has another content, or its state belongs to other data.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'position.json')
    >>> batches = mx.io.NDArrayIter(mx.nd.arange(6), batch_size=2)
    >>> first = next(batches)
    >>> mx.io.save_position(path, batches)
    >>> again = mx.io.NDArrayIter(mx.nd.arange(6), batch_size=2)
    >>> mx.io.load_position(path, again)
    >>> next(again).data[0].asnumpy()
    array([2., 3.], dtype=float32)
    """
    _require_state(data)
    restore_position(files.read_bytes(fname), os.fspath(fname), data)


def restore_position(text: bytes | str, source: str, data: Any = None) -> None:
    """Restore what `position_text` returned; without `data` the random generators alone.

    Raises
    ------
    MXNetError
        If it is damaged, or belongs to other data; `source` names the file in the text.
    """
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") not in _FORMATS:
            raise ValueError("it holds something else")
        restore = _restoration(content["generators"], _FORMATS[content["format"]])
        state, epoch_over = content["data"], content["epoch_over"]
    except (*_DAMAGE, MXNetError) as error:
        raise MXNetError(f"{source} is not a file of mx.io.save_position: {error}") from None
    if data is not None:
        try:
            data.load_state(state)
        except (*_DAMAGE, MXNetError) as error:
            raise MXNetError(f"{source} belongs to other data, or to other arguments of a {type(data).__name__}: {error}") from error
    restore()
    if epoch_over and data is not None:  # a DataLoader has no `reset`
        (data.reset if hasattr(data, "reset") else data.clean)()


def _require_state(data: Any) -> None:
    if not (hasattr(data, "state") and hasattr(data, "load_state")):
        raise MXNetError(f"an iterator with state() and load_state() expected, received {type(data).__name__}; NDArrayIter, ResizeIter, the "
                         "iterators of files and gluon.data.DataLoader have them")


def _text(values: Any) -> str:
    return base64.b64encode(np.asarray(values).tobytes()).decode()


def _devices() -> list[torch.device]:
    """Return the GPUs whose generators may have been used."""
    return [torch.device("cuda", i) for i in range(torch.cuda.device_count())] if torch.cuda.is_initialized() else []


def _generators() -> dict[str, Any]:
    name, keys, *rest = np.random.get_state(legacy=True)
    return {"numpy": [name, _text(keys), *rest], "python": random.getstate(), "cpu": _text(random_state.get_state(torch.device("cpu"))),
            "gpus": [_text(random_state.get_state(device)) for device in _devices()]}


def _restoration(generators: dict[str, Any], decode: Callable[[str], bytes]) -> Any:
    """Return a function that sets the generators; all states are read first, so that a damaged file changes none."""
    name, keys, position, has_gauss, cached = generators["numpy"]
    for_numpy = name, np.frombuffer(decode(keys), np.uint32), int(position), int(has_gauss), float(cached)
    version, internal, gauss = generators["python"]
    for_python = version, tuple(internal), gauss
    if not 0 <= for_numpy[2] <= len(for_numpy[1]):
        raise ValueError(f"the position {position} of NumPy's generator is outside of it")  # NumPy would read out of bounds
    random.Random().setstate(for_python)
    np.random.RandomState().set_state(for_numpy)
    cpu = np.frombuffer(decode(generators["cpu"]), np.uint32)
    type(random_state.bank())().restore(cpu)
    gpus = [torch.frombuffer(bytearray(decode(state)), dtype=torch.uint8) for state in generators["gpus"]]

    def restore() -> None:
        np.random.set_state(for_numpy)
        random.setstate(for_python)
        random_state.set_state(torch.device("cpu"), cpu)
        if torch.cuda.is_available():
            for i, state in enumerate(gpus[:torch.cuda.device_count()]):
                random_state.set_state(torch.device("cuda", i), state)
    return restore
