"""Checkpoints: ``prefix-symbol.json``, ``prefix-0001.params``, ``prefix-0001.states`` and ``prefix-0001.data``, written atomically."""
from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import files
from . import ndarray as nd
from . import symbol as sym
from .base import MXNetError
from .context import cpu

if TYPE_CHECKING:
    from .ndarray import NDArray
    from .optimizer import Updater
    from .symbol import Symbol


def params_file(prefix: str, epoch: int) -> str:
    """Return the name of the parameter file of a checkpoint: ``prefix-0007.params`` for epoch 7."""
    return f"{prefix}-{epoch:04d}.params"


def states_file(prefix: str, epoch: int) -> str:
    """Return the name of the optimizer state file of a checkpoint: ``prefix-0007.states`` for epoch 7."""
    return f"{prefix}-{epoch:04d}.states"


def position_file(prefix: str, epoch: int) -> str:
    """Return the name of the file with the position of the data of a checkpoint: ``prefix-0007.data`` for epoch 7."""
    return f"{prefix}-{epoch:04d}.data"


def write_params(fname: str, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> None:
    """Save arguments and auxiliary states, by name, as one ``.params`` file."""
    entries = {f"arg:{name}": value.as_in_context(cpu()) for name, value in arg_params.items()}
    entries.update((f"aux:{name}", value.as_in_context(cpu())) for name, value in aux_params.items())
    nd.save(fname, entries)


def read_params(fname: str) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Read the arguments and auxiliary states of a ``.params`` file, as two dicts.

    Raises
    ------
    MXNetError
        If the file is missing, damaged, or holds anything but named ``arg:`` and ``aux:`` entries.
    """
    entries = nd.load(fname)
    params: dict[str, dict[str, NDArray]] = {"arg": {}, "aux": {}}
    if not entries:
        logging.warning("Params file '%s' is empty", fname)
    elif not isinstance(entries, dict):
        raise MXNetError(f"{fname!r} holds {len(entries)} arrays without names; a checkpoint names each 'arg:...' or 'aux:...'")
    for key, value in dict(entries).items():
        kind, _, name = key.partition(":")
        if kind not in params or not name:
            raise MXNetError(f"{fname!r} is not the parameter file of a symbolic checkpoint: the entry {key!r} is neither 'arg:<name>' nor "
                             "'aux:<name>'. For a file of gluon's save_parameters() use load_parameters()")
        params[kind][name] = value
    return params["arg"], params["aux"]


def save_checkpoint(prefix: str, epoch: int, symbol: Symbol | None, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray],
                    remove_amp_cast: bool = True) -> None:
    """Save a network and its parameters as ``prefix-symbol.json`` and ``prefix-<epoch, 4 digits>.params``.

    Each file is written atomically: an interrupted save leaves the previous file unchanged.

    Parameters
    ----------
    prefix : str
        The path prefix of the files.
    epoch : int
        The number of the epoch, part of the parameter file's name.
    symbol : Symbol or None
        The network; None saves the parameters only.
    arg_params, aux_params : dict of str to NDArray
        The arguments and the auxiliary states.
    remove_amp_cast : bool
        Leave out the casts that mixed precision added to the network.
    """
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    fname = params_file(prefix, epoch)
    write_params(fname, arg_params, aux_params)
    logging.info('Saved checkpoint to "%s"', fname)


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Load the parameters of a checkpoint.

    Returns
    -------
    arg_params, aux_params : dict of str to NDArray

    Raises
    ------
    MXNetError
        If the file is missing or is not the parameter file of a checkpoint; the text names the file and the reason.
    """
    return read_params(params_file(prefix, epoch))


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Load a network and its parameters, written by `save_checkpoint` or by MXNet up to 1.9.1.

    Returns
    -------
    symbol : Symbol
    arg_params, aux_params : dict of str to NDArray
    """
    symbol = sym.load(f"{prefix}-symbol.json")
    return (symbol, *load_params(prefix, epoch))


def save_optimizer_states(fname: str, updater: Updater, dump_optimizer: bool = False) -> None:
    """Save an `Updater`'s states atomically, and with `dump_optimizer` the optimizer itself."""
    files.write_bytes(fname, updater.get_states(dump_optimizer))


def load_optimizer_states(fname: str, updater: Updater) -> None:
    """Load the states of an `Updater` from a file.

    Raises
    ------
    MXNetError
        If the file is missing, damaged, or holds anything but optimizer states.
    """
    content = files.read_bytes(fname)
    try:
        updater.set_states(content)
    except MXNetError as error:
        raise MXNetError(f"cannot load the optimizer states {fname}: {error}") from error
