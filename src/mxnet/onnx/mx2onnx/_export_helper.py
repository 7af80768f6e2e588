"""Reading the files of a network."""
import os
from typing import Any

from ...checkpoint import read_params
from ...symbol import Symbol, load


def load_module(sym_filepath: str, params_filepath: str) -> tuple[Symbol, dict[str, Any]]:
    """Load the Symbol and the parameters (arguments and auxiliary states in one dict) from two files.

    Raises
    ------
    ValueError
        If one of them does not exist.
    MXNetError
        If one of them is damaged.
    """
    missing = [path for path in (sym_filepath, params_filepath) if not os.path.isfile(path)]
    if missing:
        raise ValueError(f"no such file: {', '.join(missing)}; HybridBlock.export and Module.save_checkpoint write both")
    arguments, states = read_params(params_filepath)
    return load(sym_filepath), {**arguments, **states}
