"""Initializers of parameters.

An initializer is called with the description of a parameter and its array. The parameter's name selects the values: biases and betas become 0,
gammas 1, and weights are set by the class. A variable's own ``__init__`` attribute takes precedence.
"""
from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from . import random, registry
from .base import MXNetError
from .ndarray import NDArray, load, norm
from .ops.nn.rnn_layout import GATES, layout_of_vector
from .suggestions import shortened

__all__ = ["Bilinear", "Constant", "FusedRNN", "InitDesc", "Initializer", "LSTMBias", "Load", "MSRAPrelu", "Mixed", "Normal", "One", "Orthogonal",
           "Uniform", "Xavier", "Zero", "alias", "create", "register"]


class InitDesc(str):
    """The name of a parameter, with its attributes and the network's initializer.

    Parameters
    ----------
    name : str
    attrs : dict of str to str, optional
        The variable's attributes, as in ``Symbol.attr_dict``.
    global_init : Initializer, optional
        The initializer of the whole network.

    Example
    -------
    >>> description = mx.init.InitDesc('fc_weight', attrs={'__init__': '["one", {}]'})
    >>> weight = mx.nd.zeros(2)
    >>> mx.init.Uniform()(description, weight)   # the attribute's initializer has precedence
    >>> weight.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __new__(cls, name: str, attrs: dict[str, str] | None = None, global_init: Initializer | None = None) -> InitDesc:
        self = super().__new__(cls, name)
        self.attrs, self.global_init = attrs or {}, global_init
        return self


# The suffixes of names, and the methods that initialize such parameters. The first match counts.
_BY_SUFFIX = (("weight", "_init_weight"), ("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"), ("min", "_init_zero"),
              ("max", "_init_one"), ("weight_quantize", "_init_quantized_weight"), ("bias_quantize", "_init_quantized_bias"))
# The same for names without attributes, which may be those of 0.x networks.
_BY_LEGACY_SUFFIX = (("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"), ("weight", "_init_weight"),
                     ("moving_mean", "_init_zero"), ("moving_var", "_init_one"), ("moving_inv_var", "_init_zero"), ("moving_avg", "_init_zero"),
                     ("min", "_init_zero"), ("max", "_init_one"))


class Initializer:
    """The base class of initializers. Derive from it and define ``_init_weight(self, name, array)``.

    Parameters
    ----------
    **kwargs
        The arguments that `dumps` writes, from which `create` makes the initializer again.

    Example
    -------
    >>> import mxnet as mx
    >>> @mx.init.register
    ... class Tenth(mx.init.Initializer):
    ...     def _init_weight(self, name, array):
    ...         array[:] = 0.1
    >>> weight = mx.nd.empty((2,))
    >>> mx.init.create('tenth')(mx.init.InitDesc('fc_weight'), weight)
    >>> weight.asnumpy()
    array([0.1, 0.1], dtype=float32)
    """

    def __init__(self, **kwargs: Any):
        self._kwargs, self._verbose, self._print_func = kwargs, False, None

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> Initializer:
        """Log every array that is initialized.

        Parameters
        ----------
        verbose : bool
        print_func : callable, optional
            Returns the text to log for an array; by default its norm over the root of its size.
        """
        self._verbose = verbose
        self._print_func = print_func or (lambda array: str((norm(array) / sqrt(array.size)).asscalar()))
        return self

    def dumps(self) -> str:
        """Return the initializer as JSON, for `create` and for the ``__init__`` attribute of variables.

        Example
        -------
        >>> import mxnet as mx
        >>> mx.init.Normal(0.5).dumps()
        '["normal", {"sigma": 0.5}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Initialize the array `arr` of the parameter described by `desc`, an InitDesc.

        Raises
        ------
        ValueError
            If the kind of the parameter can't be derived from its name.
        AttributeInitializerError
            If the parameter's own initializer, which may come from a file, is invalid, or does not support its shape.
        """
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__", "")
        if own:
            try:
                create(own)._init_weight(desc, arr)
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
                raise AttributeInitializerError(f"parameter {desc}: its own initializer, {own[:200]}, can't be used: {error}") from error
            self._verbose_print(desc, own, arr)
            return
        for suffix, method in _BY_SUFFIX:
            if desc.endswith(suffix):
                getattr(self, method)(desc, arr)
                self._verbose_print(desc, suffix, arr)
                return
        self._init_default(desc, arr)

    def _verbose_print(self, desc, init, arr):
        if self._verbose and self._print_func:
            logging.info("Initialized %s as %s: %s", desc, init, self._print_func(arr))

    def _legacy_init(self, name, arr):
        warnings.warn("init(str, NDArray) is the old form; "
                      "call init(mx.init.InitDesc(name), array)", DeprecationWarning, stacklevel=3)
        if not isinstance(name, str):
            raise TypeError(f"name must be string, received {shortened(name)}")
        if not isinstance(arr, NDArray):
            raise TypeError(f"arr must be NDArray, received {type(arr).__name__}")
        if name.startswith("upsampling"):
            self._init_bilinear(name, arr)
        elif name.startswith("stn_loc") and name.endswith("weight"):
            self._init_zero(name, arr)
        elif name.startswith("stn_loc") and name.endswith("bias"):
            self._init_loc_bias(name, arr)
        else:
            method = next((m for suffix, m in _BY_LEGACY_SUFFIX if name.endswith(suffix)), "_init_default")
            getattr(self, method)(name, arr)

    def _init_bilinear(self, _, arr):
        _fill_bilinear(arr)

    def _init_loc_bias(self, _, arr):
        if arr.shape[0] != 6:
            raise ValueError(f"the bias of a spatial transformer's localisation has 6 numbers, received shape {arr.shape}")
        arr[:] = np.array([1.0, 0, 0, 0, 1.0, 0])

    def _init_zero(self, _, arr):
        arr[:] = 0

    def _init_one(self, _, arr):
        arr[:] = 1

    _init_bias = _init_beta = _init_quantized_bias = _init_zero
    _init_gamma = _init_one

    def _init_weight(self, name, arr):
        raise NotImplementedError(f"{type(self).__name__} must define _init_weight(name, array)")

    def _init_quantized_weight(self, _, arr):
        arr[:] = random.randint(-127, 127, dtype="int32").asscalar()

    def _init_default(self, name, _):
        raise ValueError(f"Unknown initialization pattern for {name}. Names that end in weight, bias, gamma (1.0) or beta (0.0) are known; for "
                         "others say how with mx.sym.Variable(init=mx.init.*)")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None


_register = registry.get_register_func(Initializer, "initializer")
alias = registry.get_alias_func(Initializer, "initializer")
alias.__doc__ = """Register a class as initializer under several names.

    Example
    -------
    >>> @mx.init.alias('seven', '7')
    ... class Sevens(mx.init.Initializer):
    ...     def _init_weight(self, name, array):
    ...         array[:] = 1 / 7
    >>> type(mx.init.create('7')).__name__
    'Sevens'
    """
class AttributeInitializerError(MXNetError, ValueError):
    """The ``__init__`` attribute of a variable is no valid initializer of its array."""


create = registry.get_create_func(Initializer, "initializer")
create.__doc__ = """Create an initializer from its name and arguments, from JSON or a configuration; one that is ready is returned as it is.

    Example
    -------
    >>> mx.init.create('normal', sigma=0.1).sigma
    0.1
    >>> type(mx.init.create('["constant", {"value": 3}]')).__name__
    'Constant'
    """


def register(klass: type[Any]) -> type[Any]:
    """Register a class derived from `Initializer` under its name in lower case, for `create`.

    Example
    -------
    >>> @mx.init.register
    ... class Sevenths(mx.init.Initializer):
    ...     def _init_weight(self, name, array):
    ...         array[:] = 1 / 7
    >>> layer = mx.gluon.nn.Dense(1, in_units=2, weight_initializer='sevenths')
    >>> layer.initialize()
    >>> layer.weight.data().asnumpy()
    array([[0.14285715, 0.14285715]], dtype=float32)
    """
    return _register(klass)


class Load:
    """Initializes parameters from a file or dict.

    Parameters
    ----------
    param : str or dict of str to NDArray
        Names may begin with ``arg:`` or ``aux:``.
    default_init : Initializer, optional
        The initializer of parameters that are missing there.
    verbose : bool
        Log the source of each parameter.

    Example
    -------
    >>> init = mx.init.Load({'arg:fc_weight': mx.nd.ones((2, 2))}, default_init=mx.init.Zero())
    >>> weight = mx.nd.zeros((2, 2))
    >>> init('fc_weight', weight)
    >>> weight.asnumpy()
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """

    def __init__(self, param: str | Mapping[str, NDArray], default_init: Initializer | None = None, verbose: bool = False):
        if isinstance(param, str):
            param = load(param)
        if not isinstance(param, dict):
            raise TypeError(f"Load: expected a dict of parameters or the name of a file that holds one, received {type(param).__name__}")
        self.param = {name[4:] if name.startswith(("arg:", "aux:")) else name: array for name, array in param.items()}
        self.default_init, self.verbose = default_init, verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        """Initialize `arr`.

        Raises
        ------
        MXNetError
            If the parameter is missing and there is no default, or has another shape.
        """
        if name in self.param:
            source = self.param[name]
            if arr.shape != source.shape:
                raise MXNetError(f"Parameter {name} cannot be initialized from loading: its shape is {arr.shape}, the loaded one has {source.shape}")
            arr[:] = source
        elif self.default_init is None:
            raise MXNetError(f"Cannot Initialize {name}. Not found in loaded param and no default Initializer is provided.")
        else:
            self.default_init(name, arr)
        if self.verbose:
            logging.info("Initialized %s by %s", name, "loading" if name in self.param else "default")


class Mixed:
    """Chooses an initializer by the name of the parameter.

    Parameters
    ----------
    patterns : list of str
        Regular expressions; the first that matches the start of the name counts.
    initializers : list of Initializer

    Example
    -------
    >>> import mxnet as mx
    >>> init = mx.init.Mixed(['bias', '.*'], [mx.init.Zero(), mx.init.Uniform(0.1)])
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Initializer]):
        if len(patterns) != len(initializers):
            raise ValueError(f"Mixed: as many initializers as patterns are needed, received {len(initializers)} and {len(patterns)}")
        self.map = [(re.compile(p), init) for p, init in zip(patterns, initializers)]

    def __call__(self, name: str, arr: NDArray) -> None:
        """Initialize `arr`.

        Raises
        ------
        ValueError
            If no pattern matches.
        """
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ValueError(f"no pattern of Mixed fits the parameter {name}; end with '.*' and an initializer for all others")


@register
@alias("zeros")
class Zero(Initializer):
    """Weights of 0.

    Example
    -------
    >>> weight = mx.nd.ones(3)
    >>> mx.init.Zero()(mx.init.InitDesc('fc_weight'), weight)
    >>> weight.asnumpy()
    array([0., 0., 0.], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name, arr):
        arr[:] = 0


@register
@alias("ones")
class One(Initializer):
    """Weights of 1.

    Example
    -------
    >>> weight = mx.nd.zeros(3)
    >>> mx.init.One()(mx.init.InitDesc('fc_weight'), weight)
    >>> weight.asnumpy()
    array([1., 1., 1.], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _, arr):
        arr[:] = 1


@register
class Constant(Initializer):
    """Weights of one value, or those of an array of the same shape.

    Example
    -------
    >>> layer = mx.gluon.nn.Dense(2, in_units=2)
    >>> layer.initialize(mx.init.Constant(0.5))
    >>> layer.weight.data().asnumpy()
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """

    def __init__(self, value: Any):
        plain = value.asnumpy() if isinstance(value, NDArray) else value
        super().__init__(value=plain.tolist() if isinstance(plain, (np.ndarray, np.generic)) else plain)
        self.value = value

    def _init_weight(self, _, arr):
        arr[:] = self.value


@register
class Uniform(Initializer):
    """Weights uniformly distributed between ``-scale`` and ``scale``.

    Example
    -------
    >>> weight = mx.nd.zeros((100, 200))
    >>> mx.init.Uniform(0.5)(mx.init.InitDesc('fc_weight'), weight)
    >>> round(float(weight.asnumpy().max()), 1), round(float(weight.asnumpy().min()), 1)
    (0.5, -0.5)
    """

    def __init__(self, scale: float = 0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _, arr):
        random.uniform(-self.scale, self.scale, arr.shape, out=arr)


@register
class Normal(Initializer):
    """Normally distributed weights with mean 0 and standard deviation `sigma`.

    Example
    -------
    >>> mx.random.seed(7)
    >>> weight = mx.nd.zeros((100, 200))
    >>> mx.init.Normal(sigma=0.5)(mx.init.InitDesc('fc_weight'), weight)
    >>> round(float(weight.asnumpy().std()), 2)
    0.5
    """

    def __init__(self, sigma: float = 0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _, arr):
        random.normal(0, self.sigma, arr.shape, out=arr)


@register
class Orthogonal(Initializer):
    """A random matrix whose rows (or columns, whichever are fewer) are orthogonal, times `scale`.

    For axes beyond the second the weight counts as a matrix with one row for each entry of the first. After Saxe et al., arXiv:1312.6120.

    Parameters
    ----------
    scale : float
    rand_type : str
        ``'uniform'`` or ``'normal'``: the numbers that the matrix is made from.

    Example
    -------
    >>> weight = mx.nd.zeros((2, 2))
    >>> mx.init.Orthogonal(scale=1)(mx.init.InitDesc('fc_weight'), weight)
    >>> abs(mx.nd.dot(weight, weight.T)).asnumpy().round(3)
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale, self.rand_type = scale, rand_type

    def _init_weight(self, _, arr):
        shape = arr.shape[0], int(np.prod(arr.shape[1:]))
        if self.rand_type == "uniform":
            start = random.uniform(-1.0, 1.0, shape)
        elif self.rand_type == "normal":
            start = random.normal(0.0, 1.0, shape)
        else:
            raise ValueError(f"Orthogonal: rand_type must be 'uniform' or 'normal', received {shortened(self.rand_type)}")
        u, _, v = np.linalg.svd(start.asnumpy(), full_matrices=False)
        arr[:] = self.scale * (u if u.shape == shape else v).reshape(arr.shape)


@register
class Xavier(Initializer):
    """Random weights with a scale that keeps the magnitude of gradients similar in all layers.

    The scale is ``sqrt(magnitude / factor)``, the bound of a uniform or the standard deviation of a normal distribution; the factor is the number
    of inputs of a unit (fan-in), the number of outputs (fan-out), or the mean of both.

    Parameters
    ----------
    rnd_type : str
        ``'uniform'`` or ``'gaussian'``.
    factor_type : str
        ``'in'``, ``'out'`` or ``'avg'``.
    magnitude : float

    Example
    -------
    >>> weight = mx.nd.zeros((100, 200))
    >>> mx.init.Xavier()(mx.init.InitDesc('fc_weight'), weight)
    >>> round(float(weight.asnumpy().max()), 2)   # sqrt(3 / ((100 + 200) / 2))
    0.14
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name, arr):
        shape = arr.shape
        if len(shape) < 2:
            raise ValueError(f"Xavier: at least two axes expected, received shape {shape} for {name}; give vectors another initializer")
        area = float(np.prod(shape[2:]))
        rows = getattr(name, "attrs", {}).get("rows", shape[0])  # of the whole weight, where `arr` has some of them
        fan_in, fan_out = shape[1] * area, rows * area
        factors = {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}
        if self.factor_type not in factors:
            raise ValueError(f"Incorrect factor type {self.factor_type!r}; expected 'in', 'out' or 'avg'")
        scale = sqrt(self.magnitude / factors[self.factor_type])
        if self.rnd_type == "uniform":
            random.uniform(-scale, scale, shape, out=arr)
        elif self.rnd_type == "gaussian":
            random.normal(0, scale, shape, out=arr)
        else:
            raise ValueError(f"Unknown random type {self.rnd_type!r}; expected 'uniform' or 'gaussian'")


@register
class MSRAPrelu(Xavier):
    """`Xavier` with normal numbers and the scale for ReLU; see https://arxiv.org/abs/1502.01852.

    Parameters
    ----------
    factor_type : str
        ``'in'``, ``'out'`` or ``'avg'``.
    slope : float
        The initial negative slope of the PReLU layers; 0 for ReLU.

    Example
    -------
    >>> mx.random.seed(7)
    >>> weight = mx.nd.zeros((100, 200))
    >>> mx.init.MSRAPrelu(factor_type='in', slope=0)(mx.init.InitDesc('fc_weight'), weight)
    >>> round(float(weight.asnumpy().std()), 2)   # sqrt(2 / 200)
    0.1
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25):
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope ** 2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


def _fill_bilinear(arr):
    rows, columns = arr.shape[2:]
    f = np.ceil(columns / 2.0)
    c = (2 * f - 1 - f % 2) / (2.0 * f)

    def ramp(n):
        return 1 - np.abs(np.arange(n) / f - c)

    arr[:] = np.outer(ramp(rows), ramp(columns)).astype("float32")


@register
class Bilinear(Initializer):
    """Weights (outputs, inputs, height, width) with which a deconvolution interpolates linearly.

    Example
    -------
    >>> layer = mx.gluon.nn.Conv2DTranspose(1, 4, strides=2, padding=1, in_channels=1, use_bias=False)
    >>> layer.initialize(mx.init.Bilinear())
    >>> layer(mx.nd.array([[[[1, 3]]]])).asnumpy()
    array([[[[0.5625, 1.125 , 1.875 , 1.6875],
             [0.5625, 1.125 , 1.875 , 1.6875]]]], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _, arr):
        _fill_bilinear(arr)


@register
class LSTMBias(Initializer):
    """Biases of an LSTM cell: `forget_bias` for the forget gate, the second of the four, and 0 for the others.

    Example
    -------
    >>> bias = mx.nd.ones(4 * 2)
    >>> mx.init.LSTMBias(forget_bias=1)._init_weight('lstm_i2h_bias', bias)
    >>> bias.asnumpy()
    array([0., 0., 1., 1., 0., 0., 0., 0.], dtype=float32)
    """

    def __init__(self, forget_bias: float = 1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name, arr):
        arr[:] = 0.0
        gate, rows = GATES["lstm"].index("_f"), arr.shape[0] // len(GATES["lstm"])
        arr[gate * rows:(gate + 1) * rows] = self.forget_bias


@register
class FusedRNN(Initializer):
    """Initializes the single parameter array of a fused RNN layer part by part, each by its own name.

    Parameters
    ----------
    init : Initializer or str
        The initializer of the parts; None for that of the whole network.
    num_hidden, num_layers, mode, bidirectional, forget_bias
        Those of `mx.rnn.FusedRNNCell`.

    Example
    -------
    >>> init = mx.init.FusedRNN(mx.init.One(), num_hidden=2, num_layers=1, mode='lstm', forget_bias=1.0)
    >>> parameters = mx.nd.zeros(4 * 2 * (3 + 2) + 2 * 4 * 2)
    >>> init(mx.init.InitDesc('lstm_parameters', {'__init__': init.dumps()}), parameters)
    >>> sorted(set(parameters.asnumpy().tolist()))
    [0.0, 1.0]
    """

    def __init__(self, init: Initializer | str | None, num_hidden: int, num_layers: int, mode: str, bidirectional: bool = False,
                 forget_bias: float = 1.0):
        if isinstance(init, str):
            init = create(init)
        super().__init__(init=init.dumps() if init is not None else None, num_hidden=num_hidden, num_layers=num_layers, mode=mode,
                         bidirectional=bidirectional, forget_bias=forget_bias)
        self._init, self._forget_bias = init, forget_bias
        self._layers = mode, num_hidden, num_layers, 2 if bidirectional else 1

    def _init_weight(self, desc, arr):
        global_init = getattr(desc, "global_init", None)
        init = self._init or global_init
        if init is None:
            raise MXNetError(f"FusedRNN: no initializer is given for the parts of {desc}, and there is none of the whole network")
        for part, place in layout_of_vector(arr.size, *self._layers).by_gate():
            view = arr[place].reshape(part.shape)
            if part.kind == "bias" and part.gate == "_f":
                view[:] = self._forget_bias
            else:
                init(InitDesc(part.name, global_init=global_init), view)
