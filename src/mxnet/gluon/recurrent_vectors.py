"""Checkpoints of MXNet 2, which keep the parameters of a recurrent layer in one vector, ``rnn_param``."""
from __future__ import annotations

from typing import Any

from ..base import MXNetError
from ..ops.nn.rnn_layout import layout_of_vector


def split_vectors(block: Any, loaded: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a checkpoint, those of vectors of recurrent layers as entries for the parameters that these layers have here.

    Parameters
    ----------
    block : Block
    loaded : dict of str to NDArray
        By where they are in the block.

    Raises
    ------
    MXNetError
        If a vector does not fit its layer.
    """
    if not any(name.rpartition(".")[2] == "rnn_param" for name in loaded):
        return loaded
    entries: dict[str, Any] = {}
    for name, array in loaded.items():
        path, _, last = name.rpartition(".")
        layer = _at(block, path) if last == "rnn_param" else None
        entries.update({name: array} if layer is None or not hasattr(layer, "_packed_names") else _parts(layer, path, array, name))
    return entries


def _at(block: Any, path: str) -> Any:
    """Return the block at a place (``encoder.0``), or None."""
    for name in filter(None, path.split(".")):
        block = block._children.get(name)
        if block is None:
            return None
    return block


def _parts(layer: Any, path: str, vector: Any, name: str) -> dict[str, Any]:
    try:
        layout = layout_of_vector(vector.size, layer._mode, layer._hidden_size, layer._num_layers, layer._dir, layer._projection_size)
    except MXNetError as error:
        raise MXNetError(f"{name}: {error}") from None
    places = {id(parameter): place for place, parameter in layer._collect_params_with_prefix(path).items()}
    entries, start, flat = {}, 0, vector.reshape((-1,))
    for part, size in zip(layout.parts, layout.sizes):
        entries[places[id(layer._reg_params[part.name])]] = flat[start:start + size].reshape(part.shape).copy()
        start += size
    return entries
