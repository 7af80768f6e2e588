"""Quantizing a Gluon network."""
from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

from ... import ndarray
from ... import symbol as _symbol
from ...base import MXNetError
from ...context import Context, cpu
from ...gluon import HybridBlock, SymbolBlock
from ...graph.int8.quantize import is_quantized
from ...io import DataBatch, DataDesc, DataIter
from ...module import Module
from ...suggestions import shortened
from . import checks
from .collectors import ranges_of
from .models import _calibrate_quantized_sym, _quantize_params, chosen_logger, collect_statistics, quantize_graph

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Batches(DataIter):
    """The batches of a Gluon DataLoader, or of any iterable, as a DataIter; `count` is the number of their arrays that are data."""

    def __init__(self, source: Iterable) -> None:
        try:
            first = next(iter(source))
        except TypeError as error:
            raise TypeError(f"`calib_data` is not a valid iterator: {error}") from None
        except StopIteration:
            raise MXNetError("calibration: at least one batch expected, received none") from None
        arrays = self._arrays(first)
        if not arrays or not all(hasattr(a, "shape") for a in arrays):
            raise MXNetError(f"calibration: a batch of the data is an array, or a list of arrays, received {shortened(first)}")
        super().__init__(arrays[0].shape[0])
        self._source, self.count = source, len(arrays)
        names = ["data", *(f"data{i}" for i in range(len(arrays) - 1))] if len(arrays) < 3 else [f"data{i}" for i in range(len(arrays))]
        self.provide_data = [DataDesc(name, array.shape, array.dtype) for name, array in zip(names, arrays)]
        self.provide_label = []
        self.reset()

    @staticmethod
    def _arrays(batch: Any) -> list:
        arrays = list(batch) if isinstance(batch, (list, tuple)) else [batch]
        # Crops of one image, or the shards of a batch, are examples too.
        return [a.reshape((-1, *a.shape[2:])) if i == 0 and len(getattr(a, "shape", ())) > 4 else a for i, a in enumerate(arrays)]

    def reset(self) -> None:
        self._iterator = iter(self._source)

    def next(self) -> DataBatch:
        return DataBatch(data=self._arrays(next(self._iterator))[:self.count])


def quantize_net_v2(network: HybridBlock, quantized_dtype: str = "auto", quantize_mode: str = "full", quantize_granularity: str = "tensor-wise",
                    exclude_layers: list[str] | None = None, exclude_layers_match: list[str] | None = None,
                    exclude_operators: list[str] | None = None, calib_data: DataIter | Iterable | None = None,
                    data_shapes: list[DataDesc] | None = None, calib_mode: str = "none", num_calib_examples: int | None = None,
                    ctx: Context = cpu(), LayerOutputCollector: Any = None, logger: logging.Logger | None = None) -> SymbolBlock:
    """Quantize a trained Gluon network to 8-bit integers.

    Parameters
    ----------
    network : HybridBlock
        With parameters. It is hybridized.
    exclude_layers, exclude_operators : list of str, optional
        Names of nodes of its graph, and of operators, that stay on real numbers.
    exclude_layers_match : list of str, optional
        Texts: nodes whose names contain one stay on real numbers.
    calib_data : DataIter, gluon.data.DataLoader or other iterable, optional
        Batches of data, and perhaps labels behind them, which are ignored. Needed unless `calib_mode` is ``'none'``.
    data_shapes : list of DataDesc, optional
        Needed without `calib_data`.
    calib_mode : {'none', 'naive', 'entropy', 'customize'}
    ctx : Context
        Where the network is calibrated, and its parameters go. On the CPU layers are fused, as in `quantize_model_mkldnn`.
    LayerOutputCollector : object, optional
        See `quantize_graph`.

    The other arguments are those of `quantize_model`.

    Returns
    -------
    SymbolBlock

    Raises
    ------
    ValueError
        If an argument is unknown, or neither data nor their shapes are given.
    MXNetError
        As in `quantize_model`.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.gluon.nn.Dense(4, in_units=3)
    >>> net.initialize()
    >>> data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((8, 3)), mx.nd.zeros(8)), batch_size=4)
    >>> mx.contrib.quantization.quantize_net_v2(net, calib_data=data, calib_mode='naive')(mx.nd.ones((2, 3))).shape
    (2, 4)
    """
    logger = chosen_logger(logger)
    if not isinstance(network, HybridBlock):
        raise ValueError(f"`network` must be a HybridBlock, whose graph is known, received {type(network).__name__}")
    checks.context(ctx)
    checks.examples(num_calib_examples)
    layers, parts = checks.names("exclude_layers", exclude_layers), checks.names("exclude_layers_match", exclude_layers_match)
    operators = checks.names("exclude_operators", exclude_operators)
    batches = calib_data if isinstance(calib_data, DataIter) or calib_data is None else _Batches(calib_data)
    shapes = list(data_shapes or (batches.provide_data if batches is not None else ()))
    if not shapes:
        raise ValueError(f"`data_shapes` must be given where there is no `calib_data`, received {data_shapes}")
    shapes = _called(network, shapes)
    if isinstance(batches, _Batches):
        batches.count, batches.provide_data = len(shapes), batches.provide_data[:len(shapes)]
    inputs, sym = network._cached_graph
    names = [variable.name for variable in inputs]
    if len(names) != len(shapes):
        raise ValueError(f"the network's graph takes {', '.join(names)}, the data are {len(shapes)}; a recurrent layer whose states are inputs, "
                         "too, is quantized as part of a HybridSequential, where they begin with zeros")
    aux_names = set(sym.list_auxiliary_states())
    needed = set(sym.list_inputs()) - set(names)
    params = {name: parameter._reduce() for name, parameter in network._by_name().items() if name in needed}
    args, aux = ({n: a for n, a in params.items() if (n in aux_names) is wanted} for wanted in (False, True))
    matches = {text: [n.name for n in sym._nodes() if text in n.name] for text in parts}
    for text in (text for text, named in matches.items() if not named):
        warnings.warn(f"quantization: layers with '{text}' in their names are to be excluded, but the network has none", stacklevel=2)
    excluded = [*layers, *(name for named in matches.values() for name in named)]
    if logger and excluded:
        logger.info("quantization: excluded are %s", ", ".join(excluded))
    fused = ctx.device_type == "cpu"
    if fused:
        sym = sym.get_backend_symbol("MKLDNN_QUANTIZE")
    qsym, qargs, _, collector = quantize_graph(sym, args, aux, ctx, excluded, operators, calib_mode, quantized_dtype,
                                               quantize_mode, quantize_granularity, LayerOutputCollector, logger)
    if collector is not None and any(is_quantized(n) for n in qsym._nodes()):
        if batches is None:
            raise ValueError(f"`calib_data` must be given when calib_mode={calib_mode}, received None")
        mod = Module(symbol=sym, context=ctx, data_names=names, label_names=None)
        mod.bind(for_training=False, data_shapes=[DataDesc(n, d.shape) for n, d in zip(names, shapes)])
        mod.set_params(args, aux, force_init=True)
        collect_statistics(mod, batches, collector, num_calib_examples, logger)
        ranges = ranges_of(collector, calib_mode, quantized_dtype, logger)
        qsym = _calibrate_quantized_sym(qsym, ranges)
        qargs = _quantize_params(qsym, args, ranges)
    if fused:
        qsym = qsym.get_backend_symbol("MKLDNN_QUANTIZE")
    made = SymbolBlock(qsym, [_symbol.var(name) for name in names])
    arrays = {**{f"arg:{n}": a for n, a in qargs.items()}, **{f"aux:{n}": a for n, a in aux.items()}}
    for name, parameter in made._by_name().items():
        matches = arrays.get(f"arg:{name}", arrays.get(f"aux:{name}"))
        if matches is not None and parameter.dtype != matches.dtype:
            parameter.cast(matches.dtype)
    made._by_name().load_dict(arrays, ctx=ctx)
    return made


def _called(network: HybridBlock, shapes: list) -> list:
    """Hybridize the network and call it once; returns the shapes that it takes: labels at their end are left off."""
    network.hybridize()
    context = next((p.list_ctx()[0] for p in network.collect_params().values()), cpu())
    for one in shapes:
        if not isinstance(one, tuple) or len(one) < 2:
            raise ValueError(f"`data_shapes` must be a list of DataDesc, or of (name, shape), received {shortened(one)} in it")
    shapes = [s if isinstance(s, DataDesc) else DataDesc(*s) for s in shapes]
    while True:
        try:
            network(*(ndarray.zeros(s.shape, ctx=context, dtype=s.dtype) for s in shapes))
            return shapes
        except (TypeError, ValueError):  # a SymbolBlock is traced already
            if len(shapes) == 1:
                raise
            shapes.pop()


def quantize_net(network: HybridBlock, quantized_dtype: str = "auto", quantize_mode: str = "full", exclude_layers: list[str] | None = None,
                 exclude_layers_match: list[str] | None = None, exclude_operators: list[str] | None = None,
                 calib_data: DataIter | Iterable | None = None, data_shapes: list[DataDesc] | None = None, calib_mode: str = "none",
                 num_calib_examples: int | None = None, ctx: Context = cpu(), logger: logging.Logger | None = None) -> SymbolBlock:
    """Call `quantize_net_v2` with one range for each weight. Deprecated (with a warning) in favour of that function."""
    warnings.warn("quantize_net is the older form of quantize_net_v2, which is to be called instead", stacklevel=2)
    return quantize_net_v2(network, quantized_dtype, quantize_mode, "tensor-wise", exclude_layers, exclude_layers_match, exclude_operators,
                           calib_data, data_shapes, calib_mode, num_calib_examples, ctx, None, logger)
