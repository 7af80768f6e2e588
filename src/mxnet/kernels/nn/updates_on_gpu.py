"""Updates of many weights on a GPU in one kernel, which reads and writes each number once; torch's operators take up to twenty passes.

The kernel is in Triton (`updates_triton`).
"""
import functools
import logging
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import torch

from ..runtime.triton_kernels import CompiledKernels, installed, on, runs_on

_log = logging.getLogger(__name__)
_PIECE = 1 << 14  # elements of a program
_BLOCK = 1 << 11  # elements of one round of its loop, which are in registers
_WARPS = 8
_ALIGNED = 16  # multiple of addresses, in bytes, for which Triton vectorizes
_NUMBERS, _STATES = 9, 3  # most of a rule
_MOST_ROWS, _MOST_TABLES = 1 << 18, 1 << 10  # of all cached tables, for weights that are updated in turns
_GRADIENTS = torch.float32, torch.float16, torch.bfloat16
_failed: set[torch.device] = set()
_compiled = CompiledKernels()
Tensors = Sequence[torch.Tensor]


class Step(NamedTuple):
    """A rule with its numbers. Weights with equal steps are updated by one start."""

    rule: str  # one of `updates_triton`
    numbers: tuple[float, ...]  # the rule's, in its order, without the decay
    rescale: float
    clip: Optional[float]  # None for no clipping
    wd: float = 0.0  # of the weight decay that is added to the gradient before the clipping
    decay: float = 0.0  # the rule's number for a weight decay that is not


class _Tables:
    """The cached tables, each with True if all of its addresses are aligned; the oldest ones are dropped where there are too many."""

    def __init__(self) -> None:
        self._entries: dict[tuple, tuple[Optional[torch.Tensor], bool]] = {}
        self._rows = 0
        self._lock = threading.Lock()

    def get(self, key: tuple) -> Optional[tuple[Optional[torch.Tensor], bool]]:
        """Return an entry, or None."""
        return self._entries.get(key)

    def add(self, key: tuple, entry: tuple[Optional[torch.Tensor], bool]) -> None:
        """Add an entry."""
        with self._lock:
            while self._entries and (self._rows > _MOST_ROWS or len(self._entries) >= _MOST_TABLES):
                table, _ = self._entries.pop(next(iter(self._entries)))
                self._rows -= 0 if table is None else len(table)
            replaced, _ = self._entries.get(key, (None, False))  # by another thread
            self._rows -= 0 if replaced is None else len(replaced)
            self._entries[key] = entry
            self._rows += 0 if entry[0] is None else len(entry[0])


_tables = _Tables()


def _kernels() -> Any:
    """Return the module of the kernels, or None without triton."""
    if not installed():
        return None
    from . import updates_triton

    return updates_triton


@functools.cache
def available(device: torch.device) -> bool:
    """Return True if the kernel may run on a device."""
    return runs_on(device)


def on_gpu(tensor: torch.Tensor) -> bool:
    """Return True if a tensor is on a GPU, where the kernel is to be tried."""
    return tensor.is_cuda


def fits(weight: torch.Tensor, grad: torch.Tensor, states: Tensors, copy: Optional[torch.Tensor]) -> bool:
    """Return True if the kernel updates a weight of this type with these tensors."""
    if type(weight) is not torch.Tensor or weight.dtype is not torch.float32 or len(states) > _STATES:
        return False
    device, shape = weight.device, weight.shape
    if device in _failed or not available(device) or grad.dtype not in (_GRADIENTS if copy is not None else _GRADIENTS[:1]):
        return False
    if copy is not None and (copy.dtype not in _GRADIENTS[1:] or copy.shape != shape or copy.device != device):
        return False
    if grad.shape != shape or grad.device != device:
        return False
    return all([s.dtype is torch.float32 and s.shape == shape and s.device == device for s in states])


def move(step: Step, weights: Tensors, grads: Tensors, states: Sequence[Tensors], copies: Optional[Tensors] = None) -> bool:
    """Do as `start` does, after the checks of all types and shapes; False if one does not fit."""
    device, kind, copy = weights[0].device, grads[0].dtype, (copies or grads)[0].dtype
    if any([t.device != device for t in weights]) or any([t.dtype is not kind for t in grads]) or any([t.dtype is not copy for t in copies or ()]):
        return False
    if step.clip is not None and step.clip < 0:
        return False
    for i, (weight, grad) in enumerate(zip(weights, grads)):
        if not fits(weight, grad, [state[i] for state in states], copies[i] if copies else None):
            return False
    return start(step, weights, grads, states, copies)


def start(step: Step, weights: Tensors, grads: Tensors, states: Sequence[Tensors], copies: Optional[Tensors] = None) -> bool:
    """Update weights and states in place.

    Parameters
    ----------
    step : Step
    weights : list of torch.Tensor
        float32; each `fits` with its gradient, states and copy, and all are on one device.
    grads : list of torch.Tensor
        float32; with `copies` also float16 or bfloat16, all of one type.
    states : list of lists of torch.Tensor
        For each state of the rule that state of all weights, float32.
    copies : list of torch.Tensor or None
        float16 or bfloat16, all of one type: targets for rounded copies of the new weights.

    The tensors of a weight are dense and have one memory order. Returns False where the kernel does not fit; then nothing has changed.
    """
    device, kind, copy = weights[0].device, grads[0].dtype, (copies or grads)[0].dtype
    sizes = tuple([t.numel() for t in weights])
    places = [tuple([t.data_ptr() for t in group]) for group in (weights, grads, *states, *([copies] if copies else ()))]
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None  # in whose order a table is copied, used and dropped
    key = device, stream, kind, copy, len(states), sizes, *places
    # Floats only: Triton compiles integers anew for some values.
    numbers = [float(n) for n in (step.rescale, step.clip or 0, step.wd, step.decay, *step.numbers)]
    numbers += [0.0] * (_NUMBERS - len(step.numbers))
    try:
        entry = _tables.get(key)
        if entry is None:
            entry = _table(sizes, places, kind.itemsize, copy.itemsize, len(states), device)
            _tables.add(key, entry)
        table, aligned = entry
        if table is None:
            return False
        if len(table):
            _start(step, numbers, table, len(states), kind, copy if copies else None, aligned)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # of the compiler, the assembler or the driver, before anything has run
        _log.warning("optimizers take torch's kernels, as Triton's fails on %s: %s", device, str(error).strip()[:300])
        _failed.add(device)
        return False
    return True


def _start(step: Step, numbers: Sequence[float], table: torch.Tensor, states: int, kind: torch.dtype, copy: Optional[torch.dtype],
           aligned: bool) -> None:
    kernels = _kernels()
    flags = copy is not None, step.clip is not None, bool(step.wd), bool(step.decay), aligned
    constants = (step.rule, states, _type(kernels, kind), _type(kernels, copy or kind), *flags, _PIECE, _BLOCK)
    key = table.device, step.rule, states, kind, copy, *flags
    with on(table.device):
        _compiled.start(key, lambda: kernels.move, (len(table), 1, 1), (table, *numbers, *constants), _WARPS)


def _type(kernels: Any, dtype: torch.dtype) -> Any:
    return getattr(kernels.tl, str(dtype).removeprefix("torch."))


def _table(sizes: Sequence[int], places: Sequence[Sequence[int]], grad_bytes: int, copy_bytes: int, states: int,
           device: torch.device) -> tuple[Optional[torch.Tensor], bool]:
    """Return the kernel's table, with a row for each piece of a weight, and True if all addresses are multiples of 16 bytes.

    The table is None if tensors that would be written overlap.
    """
    bytes_of = [4, grad_bytes, *[4] * states, copy_bytes][:len(places)]
    columns = [*range(2 + states), *[0] * (_STATES - states), len(places) - 1 if len(places) > 2 + states else 0]  # the weight where there is none
    count, addresses = np.array(sizes, dtype=np.int64), np.array(places, dtype=np.int64)
    written = [i for i in range(len(places)) if i != 1]
    if _overlap(np.concatenate([addresses[i] for i in written]), np.concatenate([count * bytes_of[i] for i in written])):
        return None, False
    pieces = -(-count // _PIECE)
    weight_of = np.repeat(np.arange(len(sizes)), pieces)
    starts = (np.arange(len(weight_of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * _PIECE
    rows = [addresses[i][weight_of] + starts * bytes_of[i] for i in columns]
    table = torch.from_numpy(np.stack([*rows, np.minimum(count[weight_of] - starts, _PIECE)], axis=1))
    if device.type == "cuda":
        table = table.pin_memory().to(device, non_blocking=True)  # without waiting for the GPU
    return table, not (addresses % _ALIGNED).any()


def _overlap(begins: Any, lengths: Any) -> bool:
    """Return True if some ranges of addresses overlap."""
    some = lengths > 0
    order = np.argsort(begins[some])
    begins, ends = begins[some][order], (begins + lengths)[some][order]
    return bool((ends[:-1] > begins[1:]).any())
