"""Recurrent cells whose inputs and states are images."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import symbol
from ..base import MXNetError
from ..ops.nn.rnn_layout import GATES
from .rnn_cell import BaseRNNCell, gru_step, lstm_step

if TYPE_CHECKING:
    from ..symbol import Symbol
    from .rnn_cell import RNNParams

__all__ = ["BaseConvRNNCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]

_leaky = partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """The base class of convolutional cells, in which convolutions replace the matrix products.

    Parameters
    ----------
    input_shape : tuple of int
        The shape with the batch size, in the order of `conv_layout`.
    num_hidden : int
        The channels of the states.
    h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate : tuple of int
        The parameters of the convolutions of states (``h2h``; the kernel must be odd) and inputs (``i2h``).
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer
    activation : str or callable
    prefix : str
    params : RNNParams, optional
    conv_layout : str
        ``'NCHW'`` or ``'NHWC'``.
    """

    _states = 1

    def __init__(self, input_shape: Sequence[int], num_hidden: int, h2h_kernel: Sequence[int], h2h_dilate: Sequence[int],
                 i2h_kernel: Sequence[int], i2h_stride: Sequence[int], i2h_pad: Sequence[int], i2h_dilate: Sequence[int],
                 i2h_weight_initializer: Any, h2h_weight_initializer: Any, i2h_bias_initializer: Any, h2h_bias_initializer: Any,
                 activation: str | Callable[..., Any], prefix: str = "", params: RNNParams | None = None, conv_layout: str = "NCHW"):
        super().__init__(prefix=prefix, params=params)
        if h2h_kernel[0] % 2 == 0 or h2h_kernel[1] % 2 == 0:
            raise MXNetError(f"h2h_kernel must be odd, so that states keep their size; received {h2h_kernel}")
        self._num_hidden = num_hidden
        self._input_shape = input_shape
        self._conv_layout = conv_layout
        self._activation = activation
        self._i2h: dict[str, Any] = {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate, "layout": conv_layout}
        self._h2h: dict[str, Any] = {"kernel": h2h_kernel, "stride": (1, 1), "dilate": h2h_dilate, "layout": conv_layout,
                     "pad": tuple(dilate * (kernel - 1) // 2 for dilate, kernel in zip(h2h_dilate, h2h_kernel))}
        convolved = symbol.Convolution(symbol.Variable("data"), num_filter=num_hidden, **self._i2h)
        self._state_shape = (0,) + tuple(convolved.infer_shape(data=input_shape)[1][0][1:])
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """For each state its shape and layout."""
        return [{"shape": self._state_shape, "__layout__": self._conv_layout} for _ in range(self._states)]

    def _conv_forward(self, inputs: Symbol, states: Sequence[Symbol], name: str) -> tuple[Symbol, Symbol]:
        """Return the packed gates before activation, from the inputs and from the states."""
        filters = self._num_hidden * self._num_gates
        i2h = symbol.Convolution(data=inputs, weight=self._iW, bias=self._iB, num_filter=filters, name=f"{name}i2h", **self._i2h)
        h2h = symbol.Convolution(data=states[0], weight=self._hW, bias=self._hB, num_filter=filters, name=f"{name}h2h", **self._h2h)
        return i2h, h2h

    def _activate(self, x: Symbol, **kwargs: Any) -> Symbol:
        return self._get_activation(x, self._activation, **kwargs)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise NotImplementedError("BaseConvRNNCell is an abstract class; use ConvRNNCell, ConvLSTMCell or ConvGRUCell")


class _ConvCell(BaseConvRNNCell):
    """The base class of the cells below, with defaults of their parameters."""

    _default_prefix: str

    def __init__(self, input_shape: Sequence[int], num_hidden: int, h2h_kernel: Sequence[int] = (3, 3), h2h_dilate: Sequence[int] = (1, 1),
                 i2h_kernel: Sequence[int] = (3, 3), i2h_stride: Sequence[int] = (1, 1), i2h_pad: Sequence[int] = (1, 1),
                 i2h_dilate: Sequence[int] = (1, 1), i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
                 i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", activation: str | Callable[..., Symbol] = _leaky,
                 prefix: str | None = None, params: RNNParams | None = None, conv_layout: str = "NCHW"):
        super().__init__(input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
                         i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, activation,
                         self._default_prefix if prefix is None else prefix, params, conv_layout)


class ConvRNNCell(_ConvCell):
    """The plain recurrent cell with convolutions; for the parameters see `BaseConvRNNCell`."""

    _default_prefix = "ConvRNN_"

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES["rnn_tanh"]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states, name)
        output = self._activate(i2h + h2h, name=f"{name}out")
        return output, [output]


class ConvLSTMCell(_ConvCell):
    """The long short-term memory cell with convolutions; for the parameters see `BaseConvRNNCell`."""

    _default_prefix = "ConvLSTM_"
    _states = 2

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES["lstm"]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states, name)
        next_h, next_c = lstm_step(i2h + h2h, states[1], name, self._activate, axis=self._conv_layout.find("C"))
        return next_h, [next_h, next_c]


class ConvGRUCell(_ConvCell):
    """The gated recurrent unit with convolutions; for the parameters see `BaseConvRNNCell`."""

    _default_prefix = "ConvGRU_"

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES["gru"]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states, name)
        next_h = gru_step(i2h, h2h, states[0], name, self._activate, axis=self._conv_layout.find("C"))
        return next_h, [next_h]
