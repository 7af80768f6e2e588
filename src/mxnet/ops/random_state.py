"""The random generators, seeded by ``mx.random.seed``.

On a CPU each thread has its own, as in MXNet: a `Bank`, which begins with seed 0 and serves ``cpu(0)``, ``cpu(1)``, ... in turn. A GPU has one of
torch's.
"""
import threading
from typing import Any, Optional

import torch

from ..kernels.random import fallback, generators

_MAGIC = 127  # MXNet multiplies a seed by it
_generators: dict = {}
_lock = threading.Lock()
_own = threading.local()


def bank() -> generators.Bank:
    """Return the generators of this thread's CPU operators."""
    try:
        return _own.bank
    except AttributeError:
        _own.bank = generators.Bank() if generators.available() else fallback.PlainBank()
        return _own.bank


def share(other: Any) -> None:
    """Let this thread's CPU operators draw from another's `bank`, while that thread draws nothing."""
    _own.bank = other


def source(device: Optional[torch.device]) -> Optional[generators.Bank]:
    """Return the generators of MXNet's numbers for operators on `device`; None where torch draws the numbers (`generator`)."""
    return bank() if device is None or device.type == "cpu" else None


def generator(device: Optional[torch.device]) -> Any:
    """A torch generator, for what torch draws on `device`; None for the meta device, where nothing is drawn.

    On a CPU it is begun anew each time, by numbers of this thread's single generator.
    """
    if device is None or device.type == "cpu":
        low, high = bank().words(2).tolist()
        return torch.Generator().manual_seed(high << 31 ^ low)
    if device.type == "meta":
        return None
    key = device.type, device.index or 0
    result = _generators.get(key)
    if result is None:
        with _lock:
            result = _generators.get(key)
            if result is None:
                result = _generators[key] = torch.Generator(device=device)
                result.manual_seed(key[1])  # a program without a seed draws the same numbers in each run
    return result


def seed(value: int, device_type: str = "all", index: int = 0) -> None:
    """Seed the generators of one device (torch's name of its type, and its number), or of all of them; the CPU's of this thread always."""
    # For one device MXNet passes the seed on to the single generator as it is.
    bank().seed(value * _MAGIC, value * _MAGIC if device_type == "all" else value)
    if device_type not in ("all", "cpu"):
        generator(torch.device(device_type, index)).manual_seed(value % 2 ** 64)
    if device_type != "all":
        return
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        generator(torch.device("cuda", i))
    for (_, i), g in list(_generators.items()):
        g.manual_seed((value + i) % 2 ** 64)  # devices draw different numbers from one seed


def get_state(device: torch.device) -> Any:
    """Return the state of this thread's generator for a device, for `set_state`."""
    return bank().state() if device.type == "cpu" else generator(device).get_state()


def set_state(device: torch.device, state: Any) -> None:
    """Restore a state that `get_state` returned for the device."""
    if device.type == "cpu":
        bank().restore(state)
    else:
        generator(device).set_state(state)
