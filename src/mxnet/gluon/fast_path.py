"""The fast path of a traced block's calls: most calls repeat the checks of the call before, whose results are cached here."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.runtime.explicit_gradients import ExplicitCall
from ..graph.tuning.inference_states import Compiled, State
from ..ndarray import NDArray, dispatch, explicit_calls
from ..ndarray.dispatch import mode, wrap
from ..ndarray.explicit_calls import ExplicitNode
from ..ndarray.mutation_tracking import tensor_replacements
from ..util import is_np_array
from .nested import flatten, has_arrays_only, regroup
from .parameter import Parameter, replacements

if TYPE_CHECKING:
    import torch

    from .cached_op import CachedOp

_data, _requires_grad, _first = operator.attrgetter("_data"), operator.attrgetter("requires_grad"), operator.itemgetter(0)
_MOST = 16  # paths of a block: for 8 contexts in training and inference


class Gathered:
    """The inputs of a traced block's graph. The list of parameter arrays is cached, since a run evicts hundreds of parameters from the CPU caches."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs
        self.places = [(k, i) for k, (is_arg, i) in enumerate(inputs) if is_arg]
        self.parameters = [p for is_arg, p in inputs if not is_arg]
        # A user-defined subclass of Parameter may return other arrays.
        self.plain = all(type(p).data is Parameter.data and p._stype == "default" for p in self.parameters)
        self._known: tuple[int, list[NDArray]] = -1, []  # the arrays, and the value of `replacements.count` when they were collected

    def with_data(self, data: Any) -> tuple[list[NDArray], int]:
        """Return all inputs of the graph, and the value of `replacements.count` before the parameters were read."""
        before, known = self._known
        if before == (now := replacements.count):
            arrays = known.copy()
        else:
            lists = list(map(_data, self.parameters))
            if self.plain and None not in lists and set(map(len, lists)) <= {1}:
                arrays = list(map(_first, lists))
                self._known = now, arrays.copy()
            else:  # several contexts, or no values yet
                arrays = [p.data() for p in self.parameters]
        for k, i in self.places:
            arrays.insert(k, data[i])
        return arrays, now


class FastPath:
    """A cached call of a block's graph, which most calls repeat: `InferencePath` or `TrainingPath`.

    Each call of the block tries it first. It returns None where anything differs from the call that it was made after: then the full path runs
    and creates another. A call that fails takes the full path, too, which raises the error.

    Parameters
    ----------
    op : CachedOp
    parameters : list of NDArray
        The inputs of the graph, in order, without the arguments.
    arguments : list of (int, int, NDArray)
        For each input that is one, in order: its position, the argument's number, and the argument.
    in_format, out_format
        The structure of the arguments, of which some may have no influence, and of the result, in the format of `flatten`.
    replaced : int
        The value of `replacements.count` before the parameters were read.

    Copying or pickling it with its block yields None.
    """

    __slots__ = ("_op", "_session", "_parameters", "_replaced", "_likes", "_ctx", "_kind", "_format", "_flattens", "_out_format", "_regroups")

    def __init__(self, op: CachedOp, parameters: list[NDArray], arguments: list[tuple[int, int, NDArray]], in_format: Any, out_format: Any,
                 replaced: int) -> None:
        self._op, self._session, self._parameters, self._replaced = op, op._session, parameters, replaced
        self._format, self._flattens = in_format, any(form != 0 for form in in_format)
        self._out_format, self._regroups = out_format, out_format != 0 and any(form != 0 for form in out_format)
        self._kind, self._ctx = type(arguments[0][2]), arguments[0][2]._ctx
        self._likes = [(k, i, array._data.shape, array._data.dtype) for k, i, array in arguments]

    def __reduce__(self) -> Any:
        return type(None), ()

    @classmethod
    def after(cls, op: CachedOp, inputs: Sequence[NDArray], places: Sequence[tuple[int, int]], in_format: Any, out_format: Any,
              replaced: int, result: Any) -> FastPath | None:
        """Create the fast path for calls like the one just completed; return None if such calls do more than run the graph.

        Parameters
        ----------
        op : CachedOp
        inputs : list of NDArray
            Of the graph.
        places : list of (int, int)
            For each of them that is an argument: its position, and the argument's number.
        in_format, out_format
            The structure of the arguments and of the result, in the format of `flatten`.
        replaced : int
            The value of `replacements.count` before the inputs were gathered.
        result : NDArray or list of NDArray
            What the graph returned.
        """
        if mode.recording is not mode.training or op._hook is not None or op._handed_on or not places:
            return None
        kind = dispatch.numpy_array if is_np_array() else NDArray
        if any(a._is_sparse for a in inputs):  # or hold an error, which is not to be raised yet
            return None
        if mode.training:
            info = (result if isinstance(result, NDArray) else result[0])._autograd
            runs: Any = info.node.call if info is not None and type(info.node) is ExplicitNode else None
        else:
            runs = op._session.decided(list(map(_data, inputs)), inputs[places[0][0]]._ctx)
        if runs is None or not has_arrays_only(in_format) or not has_arrays_only(out_format):
            return None
        if any(type(inputs[k]) is not kind for k, _ in places):
            return None
        taken = {k for k, _ in places}
        path: Any = TrainingPath if mode.training else InferencePath
        return path(runs, op, [a for k, a in enumerate(inputs) if k not in taken], [(k, i, inputs[k]) for k, i in places],
                    in_format, out_format, replaced)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Return the result for these arguments, or None."""
        raise NotImplementedError

    @property
    def replaced(self) -> int:
        """The value of `replacements.count` for which it holds."""
        return self._replaced

    def serves_like(self, other: FastPath) -> bool:
        """Return True if both are for the same mode and context."""
        return type(self) is type(other) and self._ctx is other._ctx

    def _insert(self, arguments: Sequence[Any], tensors: list[torch.Tensor]) -> Sequence[Any] | None:
        """Insert the arguments' tensors into those of the parameters, and return the arguments without structure.

        None if something observes the call, parameters have changed, or an argument has another structure, type, shape or context.
        """
        kind, ctx = self._kind, self._ctx
        if (dispatch.graph_observer is not None or self._op._hook is not None or self._replaced != replacements.count
                or (kind is NDArray) is is_np_array() or len(arguments) != len(self._format)):
            return None
        if self._flattens:
            arguments, found_format = flatten(arguments, "input")
            if found_format != self._format:
                return None
        for place, number, shape, dtype in self._likes:
            array = arguments[number]
            if type(array) is not kind or array._ctx is not ctx:
                return None
            tensor = array._data
            if tensor.shape != shape or tensor.dtype is not dtype:
                return None
            tensors.insert(place, tensor)
        return arguments


class FastPaths(tuple[FastPath, ...]):
    """The paths of a block, for its contexts, in training and inference. Copying or pickling them with the block yields none."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return FastPaths, ()

    def with_path(self, path: FastPath | None) -> FastPaths:
        """Return `path`, if it is one, with those others that are for another context or mode, and whose parameters have not been replaced."""
        others = [other for other in self if other.replaced == replacements.count and (path is None or not other.serves_like(path))]
        return FastPaths([*others, *([] if path is None else [path])][-_MOST:])


class InferencePath(FastPath):
    """The path of a call in inference, which runs a decided `State`."""

    __slots__ = ("_is_frozen", "_known", "_state")

    def __init__(self, state: State, *others: Any) -> None:
        super().__init__(*others)
        self._state = state
        self._is_frozen = type(state) is Compiled  # a compiled graph holds its weights; `_known` would keep those of others alive
        self._known: tuple[int, list[torch.Tensor]] = -1, []

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Return the result for these arguments, or None."""
        if mode.recording or mode.training:
            return None
        before, tensors = self._known
        same = before == (now := tensor_replacements.count)
        tensors = tensors.copy() if same else list(map(_data, self._parameters))
        weights = tensors if same or not self._is_frozen else tensors.copy()
        if self._insert(arguments, tensors) is None:
            return None
        outputs = self._session.run_decided(self._state, tensors, same)
        if outputs is None:
            return None
        if not same and self._is_frozen:
            self._known = now, weights
        kind, ctx = self._kind, self._ctx
        if self._out_format == 0:
            return wrap(kind, outputs[0], ctx)
        arrays = [wrap(kind, t, ctx) for t in outputs]
        return regroup(arrays, self._out_format) if self._regroups else arrays


class TrainingPath(FastPath):
    """The path of a recorded call in training, like an `ExplicitCall` before."""

    __slots__ = ("_differentiable", "_graph", "_requires", "_single_threaded", "_wanted")

    def __init__(self, call: ExplicitCall, *others: Any) -> None:
        super().__init__(*others)
        self._graph, self._single_threaded, self._wanted = call.graph, call.light, tuple([place for place, _ in call.inputs])
        self._requires = [place in self._wanted for place in range(len(self._parameters) + len(self._likes))]
        self._differentiable = [number for place, number, _, _ in self._likes if place in self._wanted]

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Return the result for these arguments, or None."""
        if not (mode.recording and mode.training) or mode.tracing is not None:
            return None
        tensors = list(map(_data, self._parameters))
        flat = self._insert(arguments, tensors)
        if flat is None or list(map(_requires_grad, tensors)) != self._requires:
            return None
        for number in self._differentiable:
            array = flat[number]
            if not explicit_calls.accepts(array._autograd, array._data):
                return None
        inputs = self._parameters.copy()
        for place, number, _, _ in self._likes:
            inputs.insert(place, flat[number])
        self._session.prepare(inputs, tensors, True, True)
        run = self._session.run_explicit(tensors, self._ctx, self._wanted, self._single_threaded, True, self._graph)
        if run is None:
            return None
        arrays = self._op.recorded(run, inputs, self._ctx, self._wanted, self._single_threaded)
        if self._out_format == 0:
            return arrays[0]
        return regroup(arrays, self._out_format) if self._regroups else arrays
