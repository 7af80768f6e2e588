"""SGD updates of many weights on a GPU in one kernel, which reads and writes each number once; torch's takes up to six passes.

The kernel is in Triton (`sgd_triton`).
"""
import functools
import logging
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import torch

from ..runtime.triton_kernels import installed, on, runs_on

_log = logging.getLogger(__name__)
_PIECE, _BLOCK = 1 << 14, 1 << 12  # elements of a program, and of one round of its loop
_WARPS = 8
_ALIGNED = 16  # multiple of addresses, in bytes, for which Triton vectorizes
_MOST_TABLES = 16  # cached, for sets of weights that train in turns
_HALVES = torch.float16, torch.bfloat16
_failed: set[torch.device] = set()
_tables: dict[tuple, tuple[torch.Tensor, bool]] = {}


def _kernels() -> Any:
    """Return the module of the kernels, or None without triton."""
    if not installed():
        return None
    from . import sgd_triton

    return sgd_triton


@functools.cache
def available(device: torch.device) -> bool:
    """Return True if the kernel may run on a device."""
    return runs_on(device)


def move(weights: Sequence[torch.Tensor], grads: Sequence[torch.Tensor], moms: Optional[Sequence[torch.Tensor]],
         copies: Optional[Sequence[torch.Tensor]], lr: float, wd: float, momentum: float, rescale: float, clip: Optional[float]) -> bool:
    """Move weights in place: ``mom = momentum * mom - lr * (clip(rescale * grad) + wd * weight)``, ``weight += mom``.

    Parameters
    ----------
    weights, moms : list of torch.Tensor
        float32; `moms` is None for SGD without momentum.
    grads : list of torch.Tensor
        float32; with `copies`, of the same type as these.
    copies : list of torch.Tensor or None
        float16 or bfloat16: targets for rounded copies of the new weights.
    lr, wd, momentum, rescale : float
    clip : float or None
        None or 0 for no clipping.

    The tensors of a weight are dense and have one memory order. Returns False where the kernel does not fit; then nothing has changed.
    """
    device, kind = weights[0].device, grads[0].dtype
    if type(weights[0]) is not torch.Tensor or kind not in (_HALVES if copies else (torch.float32,)) or device in _failed or not available(device):
        return False
    sizes = tuple([t.numel() for t in weights])
    groups = (weights, torch.float32), (grads, kind), (moms or weights, torch.float32), (copies or grads, kind)
    if not all(t.dtype is dtype and t.device == device and t.numel() == size for group, dtype in groups for t, size in zip(group, sizes)):
        return False
    places = [tuple([t.data_ptr() for t in group]) for group, _ in groups]
    key = device, kind, sizes, *places
    kernels = _kernels()
    try:
        if key not in _tables:
            if len(_tables) >= _MOST_TABLES:
                _tables.pop(next(iter(_tables)))
            _tables[key] = _table(sizes, places, kind.itemsize, device)
        table, aligned = _tables[key]
        if len(table):
            with on(device):
                kernels.move[(len(table),)](
                    table, momentum, lr * (1 if clip else rescale), lr * wd, rescale if clip else 1.0, clip or 0.0,
                    GRADIENT=getattr(kernels.tl, str(kind).removeprefix("torch.")), REMEMBERS=moms is not None, COPIES=copies is not None,
                    CLIPS=bool(clip), DECAYS=bool(wd), ALIGNED=aligned, PIECE=_PIECE, BLOCK=_BLOCK, num_warps=_WARPS)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # of the compiler, the assembler or the driver, before anything has run
        _log.warning("SGD takes torch's kernels, as Triton's fails on %s: %s", device, str(error).strip()[:300])
        _failed.add(device)
        return False
    return True


def _table(sizes: Sequence[int], places: Sequence[Sequence[int]], itemsize: int, device: torch.device) -> tuple[torch.Tensor, bool]:
    """Return the kernel's table, with a row for each piece of a weight, and True if all addresses are multiples of 16 bytes."""
    widths, rows = np.array([4, itemsize, 4, itemsize]), []
    for size, *addresses in zip(sizes, *places):
        starts = np.arange(0, size, _PIECE)[:, None]
        rows.append(np.hstack([np.array(addresses) + starts * widths, np.minimum(size - starts, _PIECE)]))
    table = torch.from_numpy(np.concatenate(rows)).to(device)
    return table, all(address % _ALIGNED == 0 for group in places for address in group)
