"""Static plans of compiled graphs: a launch list of kernels with prepared arguments, and a memory plan.

A layer of a small network takes 20 µs; allocating memory, selecting the kernel and checking its arguments take as long again. So after the
first run, in which layers select their algorithms, the kernel calls are recorded with their arguments. Arrays that only kernels read
and write share one block of memory, in which each has a fixed offset for its lifetime. Other functions are called in between.
"""
import bisect
import contextlib
import ctypes
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ....kernels.runtime.denormals import HEAVY, zeroed
from ....kernels.runtime.strided_output import Bindable, Bound
from ....ops.shape.reshaping import flatten
from ...instrumentation import instrumented
from ...passes import layout
from ...program import FxNode, Program, calls
from .batch_tiling import BatchTiles
from .concat_in_place import ConcatBuffer, complete

_LAST = torch.channels_last
_LINE = 64  # bytes of a cache line, to which arrays are aligned


class PlannedArray:
    """An array of the graph.

    Attributes
    ----------
    shape : tuple of int or None
        None if unknown, or if the type is not float32.
    order : torch.memory_format or None
        The memory format that kernels expect; None before a kernel reads it.
    by_kernel : bool
        True if a kernel computes it; else it is an input, or the result of another function.
    visible : bool
        True if other functions than kernels use it, so that it needs a tensor.
    first, last : int
        The first and the last step that use it.
    """

    def __init__(self, shape: Sequence[int] | None, by_kernel: bool = False):
        self.shape = None if shape is None else tuple(shape)
        self.order = _order(self.shape or ()) if by_kernel else None
        self.by_kernel, self.visible, self.first, self.last = by_kernel, not by_kernel, -1, -1

    @property
    def bytes(self) -> int:
        return 4 * math.prod(self.shape or ())

    def used(self, step: int) -> None:
        self.first, self.last = step if self.first < 0 else self.first, step


class _Ref(NamedTuple):
    """A range of an array's images, from `start` on; all images if `images` is None. `view` is another shape for images of one pixel."""

    array: PlannedArray
    start: int = 0
    images: int | None = None
    view: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        if self.view is not None:
            return self.view
        shape = self.array.shape
        return shape if shape is None or self.images is None else (self.images, *shape[1:])

    @property
    def offset(self) -> int:
        """Bytes from the beginning of the array."""
        return self.start * 4 * math.prod((self.array.shape or ())[1:])

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.view is not None:
            return tensor.view(self.view)
        return tensor if self.images is None else tensor.narrow(0, self.start, self.images)


class _Call(NamedTuple):
    """A kernel's call; its arrays are parts of the graph's arrays, or constant tensors."""

    bound: Bound
    arrays: tuple[_Ref | torch.Tensor | None, ...]


class OtherCall(NamedTuple):
    """A call of another function."""

    target: Callable
    args: tuple
    kwargs: dict[str, Any]
    result: PlannedArray


class StaticPlan:
    """A function that runs a graph, from inputs of one set of shapes to the tuple of its outputs.

    Parameters
    ----------
    program : Program
        The program that the backend compiled.

    Several threads may call it at once: each uses a launch list of its own.

    Attributes
    ----------
    idle : dict of int to list
        The launch lists that no thread is running, by the number of threads of a kernel.
    """

    def __init__(self, program: Program):
        self._module, self._program = program.module, program
        self._steps: dict[int, _Steps] = {}  # by the number of threads, as is what follows
        self.idle: dict[int, list[_Run]] = {}

    def __call__(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        threads = torch.get_num_threads()
        steps = self._steps.get(threads)
        if steps is None:
            outputs = self._module.forward(*inputs)
            self.idle.setdefault(threads, [])  # another thread may have set it
            self._steps[threads] = _Steps(self._program)
            return outputs
        idle = self.idle[threads]
        try:
            run = idle.pop()
        except IndexError:  # the first run, or all others are in use
            run = _Run(steps, threads)
        try:
            return run(inputs)
        finally:
            idle.append(run)

    @property
    def instrumented(self) -> Callable:
        """The graph's function layer by layer, each of which is reported."""
        return instrumented(self._module.forward)


class _Steps:
    """The steps of a graph: its calls, in order, after its layers have selected their algorithms."""

    def __init__(self, program: Program):
        self.steps: list[_Call | OtherCall] = []
        self.inputs: list[PlannedArray] = []
        self.outputs: list[_Ref] = []
        env: dict[FxNode, _Ref] = {}
        for node in program.graph.nodes:
            value = program.values.get(node)
            shape = value.shape if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else None
            if node.op == "placeholder":
                env[node] = _Ref(PlannedArray(shape))
                self.inputs.append(env[node].array)
            elif node.op == "output":
                self.outputs = [env[n] for n in node.args[0]]
            else:
                self._add(node, env, shape)
        for ref in self.outputs:
            ref.array.visible = True
            ref.array.used(len(self.steps))

    def _add(self, node: FxNode, env: dict[FxNode, _Ref], shape: Sequence[int] | None) -> None:
        """Add the steps of a node."""
        target = node.target
        if isinstance(target, ConcatBuffer):
            env[node] = _Ref(PlannedArray(target.shape, by_kernel=True))
        elif target is complete:
            env[node] = env[node.args[0]]
        elif (target is layout.standard or calls(node, flatten)) and (viewed := _viewed(env[node.args[0]], shape)) is not None:
            env[node] = viewed
        elif isinstance(target, BatchTiles) and target.writes:
            env[node] = self._add_tiles(target, env[node.args[0]])
        elif not (isinstance(target, Bindable) and self._add_kernel(node, target, env)):
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), functools.partial(self._seen, env))
            function = target if node.op == "call_function" else _method(target)
            result = PlannedArray(shape)
            result.used(len(self.steps))
            self.steps.append(OtherCall(function, args, kwargs, result))
            env[node] = _Ref(result)

    def _add_tiles(self, target: BatchTiles, data: _Ref) -> _Ref:
        """Add the steps of a tiled layer, tile by tile."""
        out = PlannedArray(target.shape, by_kernel=True)
        for start in range(0, target.shape[0], target.images):
            env: dict[FxNode, _Ref] = {}
            places = iter([_Ref(data.array, start, target.images), _Ref(out, start, target.images)])
            for node in target.module.graph.nodes:
                if node.op == "placeholder":
                    env[node] = next(places)
                elif node.op != "output":
                    self._add(node, env, node.meta.get("shape"))
        return _Ref(out)

    def _seen(self, env: dict[FxNode, _Ref], node: FxNode) -> Any:
        """Return a node's array as an argument of a function that is no kernel."""
        ref = env[node]
        ref.array.visible = True
        ref.array.used(len(self.steps))
        return ref

    def _add_kernel(self, node: FxNode, layer: Bindable, env: dict[FxNode, _Ref]) -> bool:
        """Add the call of a layer's kernel; return False if no kernel computes it."""
        data, residual = env[node.args[0]], env[node.args[1]] if len(node.args) > 1 else None
        given = node.kwargs.get("into")
        if any(ref is not None and (ref.shape is None or not (ref.array.order in (None, order) or _single(ref.array.shape)))
               for ref, order in ((data, layer.order), (residual, _LAST))):
            return False
        out = _Ref(PlannedArray(layer.sizes(data.shape or ()), by_kernel=True)) if given is None else env[given]
        like_data, like_out = _like(data, layer.order), _like(out)
        like_residual = None if residual is None else _like(residual)
        bound = layer.bound(like_data, like_residual, like_out, node.kwargs.get("first", 0))
        if bound is None:
            return False
        refs = {id(like_data): data, id(like_residual): residual, id(like_out): out}
        arrays: list[_Ref | torch.Tensor | None] = [None if a is None else refs.get(id(a), a) for a in bound.arrays]
        for make in bound.plan.makers[layer.makes:]:  # the kernel's workspace
            arrays.append(None if make is None else _Ref(PlannedArray(make().shape, by_kernel=True)))
        if layer.makes:
            arrays.insert(len(bound.arrays), out)
        for array in arrays:
            if isinstance(array, _Ref):
                array.array.used(len(self.steps))
        data.array.order = data.array.order or layer.order
        if residual is not None:
            residual.array.order = _LAST
        self.steps.append(_Call(bound, tuple(arrays)))
        env[node] = out
        return True


class _Run:
    """A launch list: the steps with their pointers, for one thread at a time.

    Attributes
    ----------
    items : list
        Lists of functions with their arguments, and functions of the tensors that are visible.
    """

    def __init__(self, steps: _Steps, threads: int):
        self.items: list[list[tuple[Callable, tuple]] | Callable] = []
        self._pointers: dict[tuple[PlannedArray, int], ctypes.c_void_p] = {}
        self._constants = [a for step in steps.steps if isinstance(step, _Call) for a in step.arrays if isinstance(a, torch.Tensor)]
        self._heavy = any(step.bound.plan.heavy for step in steps.steps if isinstance(step, _Call))
        self._inputs = [(i, array) for i, array in enumerate(steps.inputs) if array.first >= 0]
        self._outputs = steps.outputs
        begun, over = _by_step(steps)
        self._point(steps.inputs)
        for number, step in enumerate(steps.steps):
            self._make(a for a in begun.get(number, ()) if a.by_kernel and a.visible)
            if isinstance(step, _Call):
                pointers = [self._pointer(a) for a in step.arrays]
                self._calls().append(step.bound.plan.bound(pointers, step.bound.numbers, threads))
            else:
                self.items.append(_otherwise(step))
                self._point([step.result])
            self._drop([a for a in over.get(number, ()) if a.visible])
        self._places = assign_places([a for _, arrays in sorted(begun.items()) for a in arrays if not a.visible], over)
        self._size = max((at + a.bytes for a, at in self._places.items()), default=0) + _LINE
        self._moving = [(p, self._places[a] + offset) for (a, offset), p in self._pointers.items() if a in self._places]
        self._base = -1

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        memory = torch.empty(self._size, dtype=torch.uint8, device="cpu")  # for this call only, so that it is free between calls
        base = memory.data_ptr()
        if base != self._base:
            self._base = -1  # an interrupt may come while pointers move
            first = -(-base // _LINE) * _LINE
            for pointer, offset in self._moving:
                pointer.value = first + offset
            self._base = base
        env: dict[PlannedArray, torch.Tensor] = {array: inputs[i] for i, array in self._inputs}
        with zeroed(HEAVY) if self._heavy else contextlib.nullcontext():
            for item in self.items:
                if isinstance(item, list):
                    for function, arguments in item:
                        function(*arguments)
                else:
                    item(env)
        return tuple([env[array] if view is None else env[array].view(view) for array, _, _, view in self._outputs])

    def _calls(self) -> list[tuple[Callable, tuple]]:
        """Return the current list of kernel calls; start one after another function."""
        last = self.items[-1] if self.items else None
        if not isinstance(last, list):
            self.items.append(last := [])
        return last

    def _pointer(self, array: _Ref | torch.Tensor | None) -> ctypes.c_void_p | None:
        if not isinstance(array, _Ref):
            return None if array is None else ctypes.c_void_p(array.data_ptr())
        return self._pointers.setdefault((array.array, array.offset), ctypes.c_void_p())

    def _make(self, arrays: Iterable[PlannedArray]) -> None:
        """Add an item that allocates a tensor for each array."""
        for array in arrays:
            moved = _moved(self._pointers, array)
            self.items.append(lambda env, array=array, moved=moved: moved(env, _new(array.shape, array.order)))

    def _point(self, arrays: Iterable[PlannedArray]) -> None:
        """Add an item that sets the kernels' pointers to these arrays, which other functions have computed."""
        for array in arrays:
            if array.order is not None:
                moved = _moved(self._pointers, array)
                self.items.append(lambda env, array=array, moved=moved: moved(env, env[array].contiguous(memory_format=array.order)))

    def _drop(self, arrays: list[PlannedArray]) -> None:
        """Add an item that releases these arrays."""
        if arrays:
            def drop(env: dict[PlannedArray, torch.Tensor]) -> None:
                for array in arrays:
                    env.pop(array, None)
            self.items.append(drop)


def _order(shape: Sequence[int]) -> torch.memory_format:
    """Return the memory format of kernel results of that shape."""
    return _LAST if len(shape) == 4 else torch.contiguous_format


def _new(shape: Sequence[int], order: torch.memory_format) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float32, device="cpu", memory_format=order)


def _like(ref: _Ref, order: torch.memory_format = _LAST) -> torch.Tensor:
    shape = ref.shape or ()
    return _new(shape, order if len(shape) == 4 else torch.contiguous_format)


def _single(shape: Sequence[int] | None) -> bool:
    """Return True for images of one pixel, whose memory layout is the same in each format."""
    return shape is not None and len(shape) == 4 and shape[2] == shape[3] == 1


def _viewed(ref: _Ref, shape: Sequence[int] | None) -> _Ref | None:
    """Return images of one pixel, computed by a kernel, as an array of that shape with the same elements; None for others."""
    if shape is None or ref.images is not None or not (ref.array.by_kernel and _single(ref.array.shape)):
        return None
    return ref._replace(view=None if tuple(shape) == ref.array.shape else tuple(shape))


def _method(name: str) -> Callable:
    return lambda data, *args, **kwargs: getattr(data, name)(*args, **kwargs)


def _moved(pointers: dict[tuple[PlannedArray, int], ctypes.c_void_p], array: PlannedArray) -> Callable:
    """Return a function that sets an array's tensor and all pointers to it, including pointers that are created later."""
    targets: list[tuple[ctypes.c_void_p, int]] | None = None

    def moved(env: dict[PlannedArray, torch.Tensor], tensor: torch.Tensor) -> None:
        nonlocal targets
        if targets is None:
            targets = [(p, offset) for (a, offset), p in pointers.items() if a is array]
        env[array] = tensor
        begin = tensor.data_ptr()
        for pointer, offset in targets:
            pointer.value = begin + offset
    return moved


def _otherwise(step: OtherCall) -> Callable:
    """Return a step that is no kernel call, as a function of the visible tensors."""
    target, args, kwargs, result = step
    if not kwargs and all(isinstance(a, _Ref) and a.images is a.view is None for a in args):
        arrays = [a.array for a in args]
        return lambda env: env.__setitem__(result, target(*[env[a] for a in arrays]))

    def run(env: dict[PlannedArray, torch.Tensor]) -> None:
        found_args, found_kwargs = _resolved(args, env), _resolved(kwargs, env)
        env[result] = target(*found_args, **found_kwargs)
    return run


def _resolved(value: Any, env: dict[PlannedArray, torch.Tensor]) -> Any:
    """Return arguments with tensors in place of `_Ref` objects."""
    if isinstance(value, _Ref):
        return value.of(env[value.array])
    if isinstance(value, (tuple, list)):
        return tuple([_resolved(v, env) for v in value])
    return {k: _resolved(v, env) for k, v in value.items()} if isinstance(value, dict) else value


def _by_step(steps: _Steps) -> tuple[dict[int, list[PlannedArray]], dict[int, list[PlannedArray]]]:
    """Return the arrays by their first step, and by their last step."""
    arrays: dict[PlannedArray, None] = {}
    for step in steps.steps:
        refs = step.arrays if isinstance(step, _Call) else _refs((step.args, step.kwargs, _Ref(step.result)))
        arrays.update((a.array, None) for a in refs if isinstance(a, _Ref))
    begun: dict[int, list[PlannedArray]] = {}
    over: dict[int, list[PlannedArray]] = {}
    for array in arrays:
        begun.setdefault(array.first, []).append(array)
        over.setdefault(array.last, []).append(array)
    return begun, over


def _refs(value: Any) -> list[_Ref]:
    if isinstance(value, _Ref):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [ref for v in value for ref in _refs(v)] if isinstance(value, (tuple, list)) else []


def assign_places(arrays: list[PlannedArray], over: dict[int, list[PlannedArray]]) -> dict[PlannedArray, int]:
    """Return the offset of each array in the shared memory: best fit, in the order of first use."""
    places: dict[PlannedArray, int] = {}
    free: list[tuple[int, int]] = []  # begin and size, in order
    end, step = 0, 0
    for array in arrays:
        for done in [a for s in range(step, array.first) for a in over.get(s, ()) if a in places]:
            _give(free, places[done], _rounded(done))
        step = array.first
        size = _rounded(array)
        fitting = [block for block in free if block[1] >= size]
        if fitting:
            begin, room = min(fitting, key=lambda block: block[1])
            free.remove((begin, room))
            if room > size:
                bisect.insort(free, (begin + size, room - size))
        else:
            begin, end = end, end + size
        places[array] = begin
    return places


def _rounded(array: PlannedArray) -> int:
    return -(-array.bytes // _LINE) * _LINE


def _give(free: list[tuple[int, int]], begin: int, size: int) -> None:
    """Add a block to the free list, merged with its neighbours."""
    at = bisect.bisect(free, (begin, size))
    if at < len(free) and begin + size == free[at][0]:
        size += free.pop(at)[1]
    if at and sum(free[at - 1]) == begin:
        begin, before = free.pop(at - 1)
        size += before
        at -= 1
    free.insert(at, (begin, size))
