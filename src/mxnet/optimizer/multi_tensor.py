"""Updates of dense weights on a GPU, collected during a step and started together: one kernel for each rule with its numbers.

An optimizer opens a `collected` block, and `steps.apply` adds its updates to it. Outside of such blocks each update starts at once. Where the kernel
does not run, the updates run one after another in torch's operators.
"""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from ..kernels.nn import updates_on_gpu
from ..kernels.nn.updates_on_gpu import Step
from ..ndarray import NDArray, memory_format

_PACKAGE = __name__.rpartition(".")[0]
_METHODS = ("update", "update_multi_precision", "step", "fused_step", "_update_one", "_update_each", "_update_several", "_begin",
            "_get_lr", "_get_lrs", "_get_wd", "_get_wds", "_update_count")  # of a step


class _Update(NamedTuple):
    run: Callable[..., Any]  # updates tensors by torch's operators
    weight: torch.Tensor
    grad: torch.Tensor
    states: Sequence[torch.Tensor]
    copy: torch.Tensor | None  # of half precision: receives the new weight


class _Collection:
    """The updates that wait for their start."""

    def __init__(self) -> None:
        self._groups: dict[tuple, list[_Update]] = {}  # the updates of one start
        self._places: set[int] = set()  # addresses of all that they write
        self.half: NDArray | None = None  # the weight whose master is being updated, until an update contains it

    def add(self, step: Step, update: _Update) -> None:
        """Add an update; start those before that write the same memory."""
        written = [t.data_ptr() for t in (update.weight, *update.states, *([] if update.copy is None else [update.copy])) if t.numel()]
        if not self._places.isdisjoint(written):
            self.start()
        self._places.update(written)
        types = update.weight.device, update.grad.dtype, len(update.states), None if update.copy is None else update.copy.dtype
        self._groups.setdefault((step, *types), []).append(update)

    def start(self) -> None:
        """Start all updates, in the order of each group's first one."""
        self._places = set()
        while self._groups:
            key = next(iter(self._groups))
            _start(key[0], self._groups.pop(key))


class _Current(threading.local):
    collection: _Collection | None = None


_current = _Current()


def _start(step: Step, updates: Sequence[_Update]) -> None:
    weights, grads, states, copies = ([getattr(u, name) for u in updates] for name in ("weight", "grad", "states", "copy"))
    if not updates_on_gpu.start(step, weights, grads, list(zip(*states)), None if copies[0] is None else copies):
        for update in updates:
            _run(update)


def _run(update: _Update) -> None:
    update.run(update.weight, update.grad.to(update.weight.dtype) if update.copy is not None else update.grad, *update.states)
    if update.copy is not None:
        update.copy.copy_(update.weight)


def applies(optimizer: Any, weights: Sequence[Any]) -> bool:
    """Return True if updates of these weights may be collected: those of the package's optimizers, unless a program overrides anything."""
    if not (weights and isinstance(weights[0], NDArray) and updates_on_gpu.on_gpu(weights[0]._data)) or optimizer._as_mxnet2:
        return False
    kind = type(optimizer)
    kinds = kind.__mro__
    for i, user in enumerate(kinds[:-1]):
        if not user.__module__.startswith(_PACKAGE + ".") and any(name in vars(base) for name in vars(user) if not name.startswith("__")
                                                                  for base in kinds[i + 1:]):
            return False
    return unpatched(kind, _METHODS) and not any(callable(getattr(kind, name, None)) for name in vars(optimizer))


def unpatched(kind: type, names: Sequence[str]) -> bool:
    """Return True if these methods of a class of the package are the package's own: no program has assigned another function."""
    return all([getattr(getattr(kind, name), "__module__", "").startswith(_PACKAGE) for name in names])


@contextlib.contextmanager
def collected() -> Iterator[None]:
    """Return a block at whose end the updates in it are started, after exceptions too."""
    if _current.collection is not None:
        yield
        return
    collection = _current.collection = _Collection()
    try:
        yield
    finally:
        _current.collection = None
        collection.start()


def finish() -> None:
    """Start what was collected, before something reads a weight or a state."""
    if _current.collection is not None:
        _current.collection.start()


def takes_half(weight: NDArray, grad: Any, master: Any) -> bool:
    """Return True in a `collected` block if a half-precision weight can be updated by `through_master`."""
    return _current.collection is not None and not any(getattr(array, "_is_sparse", True) for array in (weight, grad, master))


def through_master(weight: NDArray, master: NDArray, update: Callable[[], None]) -> None:
    """Run the update of a weight's float32 master from a gradient of any type, and copy the result to the weight."""
    collection = _current.collection
    memory_format.like(master, weight)
    if collection is not None:
        collection.half = weight
        try:
            update()
        finally:
            half, collection.half = collection.half, None
        if half is not None:
            weight[:] = master


def move(run: Callable[..., Any], step: Step, weight: torch.Tensor, grad: torch.Tensor, states: Sequence[torch.Tensor]) -> None:
    """Update a weight on a GPU by a step, or by ``run(weight, grad, *states)`` in torch's operators; in a `collected` block at its end."""
    step = Step(step.rule, tuple(map(float, step.numbers)), float(step.rescale), None if step.clip is None else float(step.clip), float(step.wd),
                float(step.decay))  # arrays of one number are accepted, too
    collection = _current.collection
    half = None if collection is None else collection.half
    copy = None if half is None else half._writable()
    update = _Update(run, weight, grad, states, copy)
    clip = step.clip
    fits = (clip is None or clip >= 0) and updates_on_gpu.fits(weight, grad, states, copy)
    if fits and memory_format.same(weight, grad, *states, *([] if copy is None else [copy])):
        if collection is None:
            _start(step, [update])
        else:
            collection.half = None
            collection.add(step, update)
        return
    finish()
    run(weight, grad if half is None else grad.to(weight.dtype), *states)
