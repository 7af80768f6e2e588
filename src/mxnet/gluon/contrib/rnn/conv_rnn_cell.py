"""Recurrent cells that convolve instead of multiplying: `hidden_channels` states at every position."""
from ....ops.nn.rnn_layout import GATES
from ...nn.conv_layers import as_sizes
from ...rnn import HybridRecurrentCell
from ...utils import UsageError

__all__ = ["Conv1DRNNCell", "Conv2DRNNCell", "Conv3DRNNCell", "Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "Conv1DGRUCell",
           "Conv2DGRUCell", "Conv3DGRUCell"]


_AXES = {1: "one axis", 2: "two axes", 3: "three axes"}
_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _described(what: str, dims: int) -> str:
    """Return the docstring of a cell over `dims` axes."""
    first = _LAYOUTS[dims]
    return f"""{what} over {_AXES[dims]}, with convolutions instead of products.

    Parameters
    ----------
    input_shape : tuple of int
        Of one step of one sample, in the order of `conv_layout` without N.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or tuple of {dims} int
        The sizes of the convolutions of input and state; those of the state are odd.
    i2h_pad, i2h_dilate, h2h_dilate : int or tuple of {dims} int
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer, optional
    conv_layout : str
        The axes: {first!r}, which is the default, or 'N{first[2:]}C'.
    activation : str, block or callable
    prefix, params
        As for `Block`.
    """


def _get_conv_out_size(dimensions, kernels, paddings, dilations):
    """Return the size of each axis after a convolution of stride 1; 0 stays 0, an unknown size."""
    return tuple(x + 2 * p - d * (k - 1) if x else 0 for x, k, p, d in zip(dimensions, kernels, paddings, dilations))


class _BaseConvRNNCell(HybridRecurrentCell):
    """The base of the convolutional cells."""

    _dims = 0
    _gate_names = GATES["rnn_tanh"]

    def __init__(self, input_shape, hidden_channels, i2h_kernel, h2h_kernel, i2h_pad=0, i2h_dilate=1, h2h_dilate=1, i2h_weight_initializer=None,
                 h2h_weight_initializer=None, i2h_bias_initializer="zeros", h2h_bias_initializer="zeros", conv_layout=None, activation="tanh",
                 prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        dims = self._dims
        conv_layout = _LAYOUTS[dims] if conv_layout is None else conv_layout
        self._hidden_channels, self._input_shape, self._conv_layout, self._activation = (hidden_channels, input_shape, conv_layout,
                                                                                         activation)
        self._stride = (1,) * dims
        self._i2h_kernel, self._i2h_pad, self._i2h_dilate, self._h2h_kernel, self._h2h_dilate = (
            tuple(as_sizes(value, dims, f"for {dims}D convolution, {argument}"))
            for argument, value in (("i2h_kernel", i2h_kernel), ("i2h_pad", i2h_pad), ("i2h_dilate", i2h_dilate),
                                    ("h2h_kernel", h2h_kernel), ("h2h_dilate", h2h_dilate)))
        if any(k % 2 == 0 for k in self._h2h_kernel):
            raise UsageError(f"h2h_kernel must be of odd sizes, so that the state keeps its own; received {h2h_kernel}")
        # Such that the state keeps its size.
        self._h2h_pad = tuple(d * (k - 1) // 2 for d, k in zip(self._h2h_dilate, self._h2h_kernel))
        self._channel_axis = conv_layout.find("C")
        first = self._channel_axis == 1
        self._in_channels, space = (input_shape[0], input_shape[1:]) if first else (input_shape[-1], input_shape[:-1])
        space = _get_conv_out_size(space, self._i2h_kernel, self._i2h_pad, self._i2h_dilate)
        self._state_shape = (hidden_channels, *space) if first else (*space, hidden_channels)
        rows = hidden_channels * self._num_gates
        for name, channels, kernel, init in (("i2h_weight", self._in_channels, self._i2h_kernel, i2h_weight_initializer),
                                             ("h2h_weight", hidden_channels, self._h2h_kernel, h2h_weight_initializer)):
            shape = (rows, channels, *kernel) if first else (rows, *kernel, channels)
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))
        for name, init in (("i2h_bias", i2h_bias_initializer), ("h2h_bias", h2h_bias_initializer)):
            setattr(self, name, self.params.get(name, shape=(rows,), init=init, allow_deferred_init=True))

    @property
    def _num_gates(self):
        return len(self._gate_names)

    def __repr__(self):
        shape = self.i2h_weight.shape
        in_channels = shape[1 if self._channel_axis == 1 else -1]
        return f"{type(self).__name__}({in_channels or None} -> {shape[0]}, {self._activation}, {self._conv_layout})"

    def state_info(self, batch_size=0):
        """Return the shape of the hidden state."""
        return [{"shape": (batch_size, *self._state_shape), "__layout__": self._conv_layout}]

    def _conv_forward(self, F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias, prefix):
        """Return the convolutions of the input and of the hidden state, whose sum is the gates' pre-activation."""
        common = {"num_filter": self._hidden_channels * self._num_gates, "stride": self._stride, "layout": self._conv_layout}
        i2h = F.Convolution(data=inputs, weight=i2h_weight, bias=i2h_bias, kernel=self._i2h_kernel, pad=self._i2h_pad,
                            dilate=self._i2h_dilate, name=prefix + "i2h", **common)
        h2h = F.Convolution(data=states[0], weight=h2h_weight, bias=h2h_bias, kernel=self._h2h_kernel, pad=self._h2h_pad,
                            dilate=self._h2h_dilate, name=prefix + "h2h", **common)
        return i2h, h2h


class _ConvRNNCell(_BaseConvRNNCell):
    def _alias(self):
        return "conv_rnn"

    def hybrid_forward(self, F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias):
        """Return the output and the new state."""
        prefix = f"t{self._counter}_"
        i2h, h2h = self._conv_forward(F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias, prefix)
        output = self._get_activation(F, i2h + h2h, self._activation, name=prefix + "out")
        return output, [output]


class _ConvLSTMCell(_BaseConvRNNCell):
    _gate_names = GATES["lstm"]

    def _alias(self):
        return "conv_lstm"

    def state_info(self, batch_size=0):
        """Return the shapes of the hidden state and of the cell state."""
        return super().state_info(batch_size) + super().state_info(batch_size)

    def hybrid_forward(self, F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias):
        """Return the output and the new states."""
        prefix = f"t{self._counter}_"
        i2h, h2h = self._conv_forward(F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias, prefix)
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=prefix + "slice", axis=self._channel_axis)
        in_gate, forget_gate, out_gate = (F.Activation(gates[i], act_type="sigmoid", name=prefix + name)
                                          for i, name in ((0, "i"), (1, "f"), (3, "o")))
        memory = self._get_activation(F, gates[2], self._activation, name=prefix + "c")
        next_c = F.elemwise_add(forget_gate * states[1], in_gate * memory, name=prefix + "state")
        output = F.elemwise_mul(out_gate, self._get_activation(F, next_c, self._activation), name=prefix + "out")
        return output, [output, next_c]


class _ConvGRUCell(_BaseConvRNNCell):
    _gate_names = GATES["gru"]

    def _alias(self):
        return "conv_gru"

    def hybrid_forward(self, F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias):
        """Return the output and the new state."""
        prefix = f"t{self._counter}_"
        i2h, h2h = self._conv_forward(F, inputs, states, i2h_weight, h2h_weight, i2h_bias, h2h_bias, prefix)
        i2h_r, i2h_z, i2h_h = F.SliceChannel(i2h, num_outputs=3, name=prefix + "i2h_slice", axis=self._channel_axis)
        h2h_r, h2h_z, h2h_h = F.SliceChannel(h2h, num_outputs=3, name=prefix + "h2h_slice", axis=self._channel_axis)
        reset = F.Activation(i2h_r + h2h_r, act_type="sigmoid", name=prefix + "r_act")
        update = F.Activation(i2h_z + h2h_z, act_type="sigmoid", name=prefix + "z_act")
        new = self._get_activation(F, i2h_h + reset * h2h_h, self._activation, name=prefix + "h_act")
        output = F.elemwise_add((1. - update) * new, update * states[0], name=prefix + "out")
        return output, [output]


class Conv1DRNNCell(_ConvRNNCell):
    __doc__ = _described("A plain recurrent cell", 1)
    _dims = 1


class Conv2DRNNCell(_ConvRNNCell):
    __doc__ = _described("A plain recurrent cell", 2)
    _dims = 2


class Conv3DRNNCell(_ConvRNNCell):
    __doc__ = _described("A plain recurrent cell", 3)
    _dims = 3


class Conv1DLSTMCell(_ConvLSTMCell):
    __doc__ = _described("Long short-term memory", 1)
    _dims = 1


class Conv2DLSTMCell(_ConvLSTMCell):
    __doc__ = _described("Long short-term memory", 2)
    _dims = 2


class Conv3DLSTMCell(_ConvLSTMCell):
    __doc__ = _described("Long short-term memory", 3)
    _dims = 3


class Conv1DGRUCell(_ConvGRUCell):
    __doc__ = _described("A gated recurrent unit", 1)
    _dims = 1


class Conv2DGRUCell(_ConvGRUCell):
    __doc__ = _described("A gated recurrent unit", 2)
    _dims = 2


class Conv3DGRUCell(_ConvGRUCell):
    __doc__ = _described("A gated recurrent unit", 3)
    _dims = 3
