"""Recurrent cells as Symbols: the base class, and the plain, LSTM and GRU cells."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import initializer as init
from .. import ndarray, symbol
from ..base import MXNetError
from ..ops.nn.rnn_layout import GATES

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from ..symbol import Symbol

__all__ = ["BaseRNNCell", "GRUCell", "LSTMCell", "RNNCell", "RNNParams"]


def as_steps(length: int, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None) -> tuple[Any, int]:
    """Convert a sequence to a list of steps (``merge=False``) or one Symbol (``True``); ``None`` leaves it unchanged.

    Returns
    -------
    sequence : Symbol or list of Symbol
    axis : int
        The time axis of `layout`.
    """
    if inputs is None:
        raise MXNetError("unroll needs inputs, received None: make input variables and pass them")
    axis = layout.find("T")
    in_axis = axis if in_layout is None else in_layout.find("T")
    if isinstance(inputs, symbol.Symbol):
        if merge is False:
            if len(inputs.list_outputs()) != 1:
                raise MXNetError("unroll takes one symbol that holds the whole sequence, or a list with a symbol per step; received a "
                                 f"group of {len(inputs.list_outputs())}: pass list(inputs)")
            return list(symbol.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=1)), axis
    else:
        if length is not None and len(inputs) != length:
            raise MXNetError(f"unroll: expected {length} steps, received {len(inputs)} inputs")
        if not merge:
            return inputs, axis
        inputs = symbol.Concat(*[symbol.expand_dims(step, axis=axis) for step in inputs], dim=axis)
        in_axis = axis
    if axis != in_axis:
        inputs = symbol.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis


class RNNParams:
    """Variables by name; cells with the same `RNNParams` share them.

    Parameters
    ----------
    prefix : str
        The prefix of the names.

    Example
    -------
    >>> params = mx.rnn.RNNParams('shared_')
    >>> params.get('i2h_weight').name
    'shared_i2h_weight'
    """

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """Return the variable of this name; the first call makes it with ``symbol.Variable(prefix + name, **kwargs)``."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = symbol.Variable(name, **kwargs)
        return self._params[name]


class BaseRNNCell:
    """The base class of all cells.

    A cell called as ``cell(inputs, states)`` adds one step to the network, and returns its output and the next states.

    Parameters
    ----------
    prefix : str
        The prefix of the names of its operators and parameters.
    params : RNNParams, optional
        Variables to share with other cells.

    Example
    -------
    >>> cell = mx.rnn.GRUCell(num_hidden=4)
    >>> isinstance(cell, mx.rnn.BaseRNNCell), cell.state_shape
    (True, [(0, 4)])
    """

    _not_stepped: str | None = None  # the error text of cells without single steps: the reason and the alternative

    def __init__(self, prefix: str = "", params: RNNParams | None = None):
        self._own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self._prefix = prefix
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Reset the count of steps, before another network is made with the cell."""
        self._init_counter = -1
        self._counter = -1
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Add one step to the network.

        Parameters
        ----------
        inputs : Symbol
            (batch, features).
        states : list of Symbol
            From `begin_state`, or from the previous step.

        Returns
        -------
        output : Symbol
        states : list of Symbol
        """
        raise NotImplementedError()

    def _step_name(self) -> str:
        """Return the prefix of the next step's names."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    @property
    def params(self) -> RNNParams:
        """The variables of the cell."""
        self._own_params = False
        return self._params

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """The shapes of the states."""
        return [info["shape"] for info in self.state_info]

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """For each state a dict with its shape (0: the batch size) and layout."""
        raise NotImplementedError(f"{type(self).__name__} does not define state_info")

    @property
    def _gate_names(self) -> Sequence[str]:
        return ()

    def _refuse_modified(self) -> None:
        if self._modified:
            raise MXNetError(f"{type(self).__name__} is inside of a modifier cell (ZoneoutCell, ResidualCell, ...): call that one")

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Symbol]:
        """Return the initial states.

        Parameters
        ----------
        func : callable
            Makes a state from ``name``, ``shape`` and `kwargs`: `symbol.zeros`, `symbol.Variable`, ...

        Returns
        -------
        list of Symbol
        """
        self._refuse_modified()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**kwargs, **(info or {})}))
        return states

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return a copy of a parameter dict with an array per gate instead of the cell's packed ones.

        Example
        -------
        >>> import mxnet as mx
        >>> cell = mx.rnn.LSTMCell(2)
        >>> args = {'lstm_i2h_weight': mx.nd.ones((8, 3)), 'lstm_i2h_bias': mx.nd.ones((8,)),
        ...         'lstm_h2h_weight': mx.nd.ones((8, 2)), 'lstm_h2h_bias': mx.nd.ones((8,))}
        >>> cell.unpack_weights(args)['lstm_i2h_i_weight'].shape
        (2, 3)
        """
        args = dict(args)
        h: int = getattr(self, "_num_hidden", 0)  # 0 for cells without gates
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                packed = args.pop(f"{self._prefix}{group}_{kind}")
                for j, gate in enumerate(self._gate_names):
                    args[f"{self._prefix}{group}{gate}_{kind}"] = packed[j * h:(j + 1) * h].copy()
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return a copy of a parameter dict with the packed arrays again; the inverse of `unpack_weights`."""
        args = dict(args)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                gates = [args.pop(f"{self._prefix}{group}{gate}_{kind}") for gate in self._gate_names]
                args[f"{self._prefix}{group}_{kind}"] = ndarray.concatenate(gates)
        return args

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None) -> tuple[Any, Any]:
        """Add `length` steps to the network.

        Parameters
        ----------
        length : int
        inputs : Symbol or list of Symbol
            The whole sequence, in `layout`, or a symbol per step.
        begin_state : list of Symbol, optional
        layout : str
            ``'NTC'`` or ``'TNC'``: batch, time, features.
        merge_outputs : bool, optional
            True: one symbol; False: one per step; None: the form that needs no conversion.

        Returns
        -------
        outputs : Symbol or list of Symbol
        states : list of Symbol
            After the last step.
        """
        self.reset()
        inputs, _ = as_steps(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for step in inputs[:length]:
            output, states = self(step, states)
            outputs.append(output)
        return as_steps(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        """Apply an activation given by name or as a function."""
        if callable(activation):
            return activation(inputs, **kwargs)
        return symbol.Activation(inputs, act_type=activation, **kwargs)


class _GatedCell(BaseRNNCell):
    """The base class of cells that multiply inputs and states by one packed matrix each for all gates."""

    _states = 1

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, i2h_bias_init: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        self._iW = self.params.get("i2h_weight")
        self._iB = self.params.get("i2h_bias", **({} if i2h_bias_init is None else {"init": i2h_bias_init}))
        self._hW = self.params.get("h2h_weight")
        self._hB = self.params.get("h2h_bias")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """For each state its shape, (batch, hidden), and layout."""
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"} for _ in range(self._states)]

    def _project(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        """Return the packed gates before activation, from the inputs and from the state."""
        size = self._num_hidden * len(self._gate_names)
        i2h = symbol.FullyConnected(data=inputs, weight=self._iW, bias=self._iB, num_hidden=size, name=f"{name}i2h")
        h2h = symbol.FullyConnected(data=state, weight=self._hW, bias=self._hB, num_hidden=size, name=f"{name}h2h")
        return i2h, h2h


class RNNCell(_GatedCell):
    """The plain recurrent cell: ``h' = activation(W x + U h + b)``.

    Parameters
    ----------
    num_hidden : int
    activation : str or callable
    prefix : str
    params : RNNParams, optional

    Example
    -------
    >>> cell = mx.rnn.RNNCell(num_hidden=4)
    >>> outputs, states = cell.unroll(3, inputs=mx.sym.var('data'), merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 3, 5))[1], len(states)
    ([(2, 3, 4)], 1)
    """

    def __init__(self, num_hidden: int, activation: str = "tanh", prefix: str = "rnn_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES["rnn_tanh"]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._project(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


def lstm_step(gates: Symbol, cell_state: Symbol, name: str, activate: Callable[..., Symbol], axis: int = 1) -> tuple[Symbol, Symbol]:
    """Compute one LSTM step from the packed gates before activation, and return the next h and c; `activate` is the activation of values."""
    gate_in, gate_forget, value, gate_out = symbol.SliceChannel(gates, num_outputs=4, axis=axis, name=f"{name}slice")
    gate_in = symbol.Activation(gate_in, act_type="sigmoid", name=f"{name}i")
    gate_forget = symbol.Activation(gate_forget, act_type="sigmoid", name=f"{name}f")
    value = activate(value, name=f"{name}c")
    gate_out = symbol.Activation(gate_out, act_type="sigmoid", name=f"{name}o")
    next_c = symbol._internal._plus(gate_forget * cell_state, gate_in * value, name=f"{name}state")
    next_h = symbol._internal._mul(gate_out, activate(next_c), name=f"{name}out")
    return next_h, next_c


def gru_step(i2h: Symbol, h2h: Symbol, state: Symbol, name: str, activate: Callable[..., Symbol], axis: int = 1) -> Symbol:
    """Compute one GRU step from the packed gates before activation, and return the next h; `activate` is the activation of values."""
    i2h_r, i2h_z, i2h = symbol.SliceChannel(i2h, num_outputs=3, axis=axis, name=f"{name}_i2h_slice")
    h2h_r, h2h_z, h2h = symbol.SliceChannel(h2h, num_outputs=3, axis=axis, name=f"{name}_h2h_slice")
    reset = symbol.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{name}_r_act")
    update = symbol.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{name}_z_act")
    value = activate(i2h + reset * h2h, name=f"{name}_h_act")
    return symbol._internal._plus((1.0 - update) * value, update * state, name=f"{name}out")


class LSTMCell(_GatedCell):
    """The long short-term memory cell; its states are h and c.

    Parameters
    ----------
    num_hidden : int
    prefix : str
    params : RNNParams, optional
    forget_bias : float
        The initial bias of the forget gate.

    Example
    -------
    >>> cell = mx.rnn.LSTMCell(num_hidden=4)
    >>> outputs, states = cell.unroll(3, inputs=mx.sym.var('data'), merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 3, 5))[1], len(states)
    ([(2, 3, 4)], 2)
    """

    _states = 2

    def __init__(self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0):
        super().__init__(num_hidden, prefix, params, init.LSTMBias(forget_bias=forget_bias))

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES["lstm"]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._project(inputs, states[0], name)
        next_h, next_c = lstm_step(i2h + h2h, states[1], name, _tanh)
        return next_h, [next_h, next_c]


class GRUCell(_GatedCell):
    """The gated recurrent unit.

    Parameters
    ----------
    num_hidden : int
    prefix : str
    params : RNNParams, optional

    Example
    -------
    >>> cell = mx.rnn.GRUCell(num_hidden=4)
    >>> outputs, states = cell.unroll(3, inputs=mx.sym.var('data'), merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 3, 5))[1], len(states)
    ([(2, 3, 4)], 1)
    """

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES["gru"]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._project(inputs, states[0], f"{name}_")
        next_h = gru_step(i2h, h2h, states[0], name, _tanh)
        return next_h, [next_h]


def _tanh(x: Symbol, **kwargs: Any) -> Symbol:
    return symbol.Activation(x, act_type="tanh", **kwargs)
