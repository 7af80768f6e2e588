"""A network that is served: a Symbol with its parameters, called with NumPy arrays."""
from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import MXNetError
from ..context import Context
from ..gluon.cached_op import CachedOp
from ..ndarray import NDArray
from ..symbol import Symbol
from .tensors import NAMES, TensorSpec

_MOST_SHAPES = 256  # of inputs with free sizes that are remembered
_TRIED_SIZES = (224, 64, 16, 4, 1)  # for free sizes, in the order in which warm-up tries them


class Network:
    """A Symbol with parameters on one device.

    Parameters
    ----------
    symbol : Symbol
    parameters : dict of str to NDArray
        Arguments and auxiliary states; an entry that the Symbol does not have is not used.
    inputs : list of TensorSpec, optional
        The inputs; by default all variables without parameters but labels, with what the Symbol says of their shapes and types.
    ctx : Context
    written_for : list of int
        Sizes of the inputs' first axes in the file that describes them, where that may be the batch that the file was made with: warm-up tries
        whether others run, too. Without it `inputs` are to be taken at their word.

    Attributes
    ----------
    inputs, outputs : list of TensorSpec
        Outputs are known after `warm_up`.
    batched : bool
        Whether requests may be put together along the first axis; known after `warm_up`.

    Raises
    ------
    MXNetError
        If an input's shape is neither given nor inferable, or a parameter is missing.

    Example
    -------
    >>> import numpy as np
    >>> from mxnet.serve.network import Network
    >>> out = mx.sym.FullyConnected(mx.sym.var("data", shape=(1, 3)), num_hidden=2, no_bias=True, name="fc")
    >>> network = Network(out, {"fc_weight": mx.nd.ones((2, 3))}, None, mx.cpu())
    >>> network.inputs[0].shape
    (-1, 3)
    >>> network.warm_up()
    >>> network.run([np.ones((1, 3), np.float32)])
    [array([[3., 3.]], dtype=float32)]
    """

    def __init__(self, symbol: Symbol, parameters: Mapping[str, NDArray], inputs: Sequence[TensorSpec] | None, ctx: Context,
                 written_for: Sequence[int] = ()) -> None:
        self._symbol, self._ctx = symbol, ctx
        self._names = symbol.list_inputs()
        missing = [name for name in self._names if name not in parameters]
        self.inputs = list(inputs) if inputs else _inferred(symbol, parameters, [n for n in missing if not n.endswith("label")])
        wanted = {spec.name for spec in self.inputs}
        unknown = wanted - set(missing)
        if unknown:
            raise MXNetError(f"the network has no input {sorted(unknown)[0]!r}; its variables without parameters are {missing}")
        self._labels = [name for name in missing if name not in wanted]
        absent = [name for name in self._labels if not name.endswith("label")]
        if absent:
            raise MXNetError(f"the parameters {absent} are neither in the files nor declared as inputs")
        self._parameters = {name: parameters[name].as_in_context(ctx) for name in self._names if name in parameters}
        self.outputs: list[TensorSpec] = []
        self.batched = False
        self._written_for = written_for or [spec.shape[0] for spec in self.inputs]
        self._fixed = all(size > 0 for spec in self.inputs for size in spec.shape[1:])
        self._buffers: dict[int, list[tuple[NDArray, np.ndarray]]] = {}  # by number of rows
        self._label_shapes: dict[tuple, dict[str, tuple]] = {}
        self._shapes: set[tuple] = set()
        self._lock = threading.Lock()
        self._free = 1
        self._compile()

    def _compile(self) -> None:
        """Make the graph ready to run, compiled for each shape at its first call where shapes are fixed."""
        flags = {"static_alloc": self._fixed, "static_shape": self._fixed,
                 "param_indices": [i for i, name in enumerate(self._names) if name in self._parameters]}
        self._op = CachedOp(self._symbol, flags)

    def sample(self, rows: int) -> list[np.ndarray]:
        """Return made-up inputs: numbers from 0 to 1, which are good indices, too."""
        rng = np.random.default_rng(0)
        shapes = [(rows if spec.shape[0] < 0 else spec.shape[0], *[self._free if s < 0 else s for s in spec.shape[1:]]) for spec in self.inputs]
        return [(rng.random(shape) if spec.dtype.kind == "f" else rng.integers(0, 2, shape)).astype(spec.dtype)
                for spec, shape in zip(self.inputs, shapes)]

    def warm_up(self, batching: bool = True) -> None:
        """Run the network for the first time, and find out its outputs, and whether a batch's rows depend on one another.

        Raises
        ------
        MXNetError
            If it does not run on inputs of the declared shapes.
        """
        first = self._first_run()
        if batching and all(spec.shape[0] < 0 for spec in self.inputs):
            self.batched = self._rows_are_independent()
        if not self.batched and any(spec.shape[0] < 0 for spec in self.inputs):
            self._take_first_sizes()
            first = self.run(self.sample(1))
        # With free sizes an output's sizes may follow from them.
        self.outputs = [TensorSpec(name, a.dtype, ((-1,) if self.batched else a.shape[:1]) + (a.shape[1:] if self._fixed else (-1,) * (a.ndim - 1)))
                        for name, a in zip(self._symbol.list_outputs(), first)]

    def _take_first_sizes(self) -> None:
        self.inputs = [spec._replace(shape=(max(first, 1), *spec.shape[1:])) for spec, first in zip(self.inputs, self._written_for)]

    def _first_run(self) -> list[np.ndarray]:
        declared = [list(spec.shape) for spec in self.inputs]
        for takes_any in (True, False):
            for size in (1,) if self._fixed else _TRIED_SIZES:
                self._free = size
                try:
                    return self.run(self.sample(1))
                except MXNetError as failure:
                    error = failure
            if takes_any:
                self._take_first_sizes()
        raise MXNetError(f"the network does not run on inputs of the shapes {declared}: {error}")

    def _rows_are_independent(self) -> bool:
        rows = self.sample(2)
        try:
            both = self.run(rows)
            alone = [self.run([array[i:i + 1] for array in rows]) for i in range(2)]
        except MXNetError:
            return False
        for out, one, other in zip(both, *alone):
            if not out.ndim or out.shape[0] != 2 or one.shape != (1, *out.shape[1:]):
                return False
            expected = np.concatenate([one, other])
            # Other batches may run on other algorithms, which round otherwise.
            if not np.allclose(out, expected, rtol=1e-2, atol=1e-3 * float(np.abs(expected).max(initial=0)), equal_nan=True):
                return False
        return True

    def run(self, arrays: Sequence[np.ndarray], size: int | None = None) -> list[np.ndarray]:
        """Return the outputs.

        Parameters
        ----------
        arrays : list of numpy.ndarray
            In the order of `inputs`.
        size : int, optional
            Rows to run; those behind the arrays' are zeros, and cut off the outputs.
        """
        return self.run_together([arrays], arrays[0].shape[0] if self.batched else 1, size)

    def run_together(self, requests: Sequence[Sequence[np.ndarray]], rows: int, size: int | None = None) -> list[np.ndarray]:
        """Return the outputs of several requests' arrays as one batch, in their order; `rows` is the sum of theirs."""
        if self.batched:
            data = self._gathered(requests, rows, size or rows)
        else:
            data = [nd.array(a, ctx=self._ctx, dtype=a.dtype) for a in requests[0]]
        outputs = self._op(*self._with_parameters(data))
        outputs = outputs if isinstance(outputs, list) else [outputs]
        values = [_on_host(out) for out in outputs]
        return [a[:rows] for a in values] if self.batched and size not in (None, rows) else values

    def _gathered(self, requests: Sequence[Sequence[np.ndarray]], rows: int, size: int) -> list[NDArray]:
        data = []
        for k, (array, view) in enumerate(self._buffer(size, [a.shape[1:] for a in requests[0]])):
            at = 0
            for arrays in requests:
                view[at:(at := at + arrays[k].shape[0])] = arrays[k]
            view[rows:] = 0
            data.append(array if array._ctx == self._ctx else array.as_in_context(self._ctx))
        return data

    def _buffer(self, size: int, shapes: Sequence[tuple[int, ...]]) -> list[tuple[NDArray, np.ndarray]]:
        """Arrays on the host for a batch, and NumPy's views of them; kept where all batches of this size are alike.

        Only one thread runs batches. Warm-up runs in another, but before the first batch of a network.
        """
        if self._fixed and size in self._buffers:
            return self._buffers[size]
        arrays = [nd.zeros((size, *shape), dtype=spec.dtype) for spec, shape in zip(self.inputs, shapes)]
        buffer = [(a, a.as_torch().numpy()) for a in arrays]
        if self._fixed:
            self._buffers[size] = buffer
        return buffer

    def keep(self, sizes: Sequence[int]) -> None:
        """Free the buffers of all sizes of batches but these."""
        self._buffers = {size: buffer for size, buffer in self._buffers.items() if size in sizes}

    def _with_parameters(self, data: Sequence[NDArray]) -> list[NDArray]:
        shapes = tuple(a.shape for a in data)
        if not self._fixed:
            with self._lock:
                if len(self._shapes) >= _MOST_SHAPES and shapes not in self._shapes:  # what is remembered of shapes would grow without an end
                    self._shapes.clear()
                    self._label_shapes.clear()
                    self._compile()
                self._shapes.add(shapes)
        given = {**self._parameters, **{spec.name: a for spec, a in zip(self.inputs, data)}}
        if self._labels:
            given.update({name: nd.zeros(shape, ctx=self._ctx) for name, shape in self._shapes_of_labels(shapes).items()})
        return [given[name] for name in self._names]

    def _shapes_of_labels(self, shapes: tuple) -> dict[str, tuple]:
        """Shapes of labels that only training reads: a network of `Module` ends in a layer that has one."""
        known = self._label_shapes.get(shapes)
        if known is None:
            arguments, _, _ = self._symbol.infer_shape(**{spec.name: shape for spec, shape in zip(self.inputs, shapes)})
            by_name = dict(zip(self._symbol.list_arguments(), arguments))
            known = self._label_shapes[shapes] = {name: by_name[name] for name in self._labels}
        return known


def _on_host(array: NDArray) -> np.ndarray:
    values = array.asnumpy()
    return values if values.dtype in NAMES else values.astype(np.float32)


def _inferred(symbol: Symbol, parameters: Mapping[str, NDArray], names: Sequence[str]) -> list[TensorSpec]:
    """Return what a Symbol and the shapes of its parameters say of its inputs."""
    arguments = symbol.list_arguments()
    known = {name: parameters[name].shape for name in arguments if name in parameters}
    shapes, _, _ = symbol.infer_shape_partial(**known)
    types, _, _ = symbol.infer_type(**{name: parameters[name].dtype for name in known})
    by_name: dict[str, Any] = dict(zip(arguments, zip(shapes or [], types or [None] * len(arguments))))
    found = []
    for name in names:
        shape, dtype = by_name.get(name, ((), None))
        if not shape:
            raise MXNetError(f"the network does not say of which shape its input {name!r} is; say it, -1 for free sizes: --input {name}=-1,3,224,224")
        found.append(TensorSpec(name, np.dtype(dtype or np.float32), (-1, *[size if size > 0 else -1 for size in shape[1:]])))
    if not found:
        raise MXNetError("the network has no inputs: all its variables have parameters")
    return found
