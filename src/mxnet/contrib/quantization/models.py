"""Quantizing a Symbol and its parameters."""
from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ... import environment, ndarray
from ...base import MXNetError
from ...context import Context, cpu
from ...graph.int8 import quantize as passes
from ...io import DataIter
from ...module import Module
from ...ndarray import NDArray
from ...suggestions import shortened
from ...symbol import Symbol
from . import checks
from .collectors import _LayerHistogramCollector, _LayerOutputMinMaxCollector, ranges_of

Params = Mapping[str, NDArray]
_log = logging.getLogger(__name__)


def chosen_logger(logger: logging.Logger | None) -> logging.Logger | None:
    """Return the caller's logger, or the module's own if ``MXNET_QUANTIZATION_VERBOSE`` is set."""
    return logger or (_log if environment.get_bool("MXNET_QUANTIZATION_VERBOSE") else None)


def _quantize_symbol(sym: Symbol, ctx: Context, excluded_symbols: list[str] | None = None, excluded_operators: list[str] | None = None,
                     offline_params: Collection[str] | None = None, quantized_dtype: str = "int8", quantize_mode: str = "smart",
                     quantize_granularity: str = "tensor-wise", logger: logging.Logger | None = None) -> tuple[Symbol, list[str]]:
    """Return the quantized graph and the names of the layers whose ranges it needs; see `quantize_graph`.

    `offline_params` are the parameters whose integers are computed ahead.
    """
    excluded, operators = checks.names("excluded_sym_names", excluded_symbols), checks.names("excluded_op_names", excluded_operators)
    checks.one_of("quantized_dtype", quantized_dtype, checks.DTYPES)
    checks.one_of("quantize_mode", quantize_mode, checks.MODES)
    checks.one_of("quantize_granularity", quantize_granularity, checks.GRANULARITIES)
    operators = checks.excluded(sym, excluded, operators)
    if checks.context(ctx).device_type == "gpu" and quantize_granularity == "channel-wise":
        raise MXNetError(f"quantize_granularity `{quantize_granularity}` is for CPUs, received {ctx}; on a GPU choose `tensor-wise`")
    outputs, layers = passes.quantize(sym._outputs, offline_params or (), quantized_dtype, excluded, operators, quantize_mode == "smart",
                                      quantize_granularity == "channel-wise")
    made = Symbol(outputs)
    if logger:
        count = sum(passes.is_quantized(n) and n.name.startswith(passes.PREFIX) for n in made._nodes())
        logger.info("quantization: %d of %d operators run on integers", count, sum(n.op is not None for n in sym._nodes()))
    return made, layers


def _quantize_params(qsym: Symbol, params: Params, th_dict: Mapping[str, Any]) -> dict[str, NDArray]:
    """Return the parameters that a quantized graph takes: int8 ones with their ranges, and the others as they are."""
    quantized: dict[str, NDArray] = {}
    for name in qsym.list_arguments():
        source = name[:-len(checks.SUFFIX)]
        if name in params:
            quantized[name] = params[name]
        elif name.endswith(checks.SUFFIX) and source in params:
            ends = checks.trained(source, params[source])
            if ends[0] == ends[1] == 0:
                ends = -1., 1.  # all zeros, which any range has
            low, high = (ndarray.array([end], ctx=params[source].context) for end in ends)
            quantized[name], quantized[name + "_min"], quantized[name + "_max"] = ndarray.contrib.quantize(params[source], low, high, out_type="int8")
        elif name[-4:] in ("_min", "_max") and name[:-4] in th_dict:
            quantized[name] = ndarray.array([th_dict[name[:-4]][name.endswith("_max")]])
    return quantized


def _calibrate_quantized_sym(qsym: Symbol, th_dict: Mapping[str, Any] | None) -> Symbol:
    """Return a quantized graph with the ranges of its layers, (low, high) by name."""
    if not th_dict:
        return qsym
    made = Symbol(passes.calibrate(qsym._outputs, th_dict))
    checks.lost(made)
    return made


def collect_statistics(mod: Module, data: DataIter, collector: Any, max_num_examples: int | None = None,
                       logger: logging.Logger | None = None) -> int:
    """Run a bound module on calibration data, pass its layers' inputs and outputs to a collector; return the number of examples.

    Raises
    ------
    ValueError
        If `data` is no DataIter.
    MXNetError
        If it has no batch.
    """
    if not isinstance(data, DataIter):
        raise ValueError(f"calibration data must be of DataIter type, received {type(data).__name__}")
    from tqdm import tqdm
    mod._exec_group.execs[0].set_monitor_callback(collector.collect, monitor_all=True)
    batches = 0
    with tqdm(desc="calibration", unit="batch", file=sys.stderr, disable=None) as bar:
        for batch in data:
            mod.forward(data_batch=batch, is_train=False)
            batches += 1
            bar.update()
            if max_num_examples is not None and batches * data.batch_size >= max_num_examples:
                break
    mod._exec_group.execs[0].set_monitor_callback(None)
    if not batches:
        raise MXNetError(f"calibration: at least one batch expected, received {batches}; reset the iterator, or give one that has some")
    if logger:
        logger.info("calibration: %d batches of %d examples", batches, data.batch_size)
    return batches * data.batch_size


def quantize_model(sym: Symbol, arg_params: Params, aux_params: Params, data_names: Iterable[str] = ("data",),
                   label_names: Iterable[str] | None = ("softmax_label",), ctx: Context = cpu(), excluded_sym_names: list[str] | None = None,
                   excluded_op_names: list[str] | None = None, calib_mode: str = "entropy", calib_data: DataIter | None = None,
                   num_calib_examples: int | None = None, quantized_dtype: str = "int8", quantize_mode: str = "smart",
                   quantize_granularity: str = "tensor-wise",
                   logger: logging.Logger | None = None) -> tuple[Symbol, dict[str, NDArray], Params]:
    """Quantize a trained network to 8-bit integers.

    Parameters
    ----------
    sym : Symbol
        On real numbers.
    arg_params, aux_params : dict of str to NDArray
    data_names, label_names : list of str
        The names of the arrays in `calib_data`, as for `Module`.
    ctx : Context
        Where calibration runs.
    excluded_sym_names, excluded_op_names : list of str, optional
        Names of nodes, and of operators, that stay on real numbers.
    calib_mode : {'none', 'naive', 'entropy'}
        Where the ranges of layers come from: none are fixed, so that each run looks for them; the least and largest value for the
        calibration data; the range that loses least information (see ``mx.nd.contrib.calibrate_entropy``).
    calib_data : DataIter, optional
        Needed unless `calib_mode` is ``'none'``.
    num_calib_examples : int, optional
        By default all of `calib_data`.
    quantized_dtype : {'int8', 'uint8', 'auto'}
        ``'auto'`` is uint8 where calibration has found nothing negative.
    quantize_mode : {'smart', 'full'}
        Quantize convolutions, fully connected layers and the operators between two of these, or all operators that can be.
    quantize_granularity : {'tensor-wise', 'channel-wise'}
        One range for each weight, or for each output of fully connected layers (fused: see `quantize_model_mkldnn`). Fused convolutions always do.
    logger : logging.Logger, optional

    Returns
    -------
    Symbol, dict of str to NDArray, dict of str to NDArray
        The quantized network, its parameters and auxiliary states.

    Raises
    ------
    ValueError
        If an argument is not one of these, or calibration data are missing.
    MXNetError
        If the network is quantized already, the data have no batch or another shape, or values are infinite or no numbers.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=4, name='fc')
    >>> params = {'fc_weight': mx.nd.ones((4, 3)), 'fc_bias': mx.nd.zeros(4)}
    >>> data = mx.io.NDArrayIter(mx.nd.ones((2, 3)), batch_size=2)
    >>> qnet, qparams, _ = mx.contrib.quantization.quantize_model(net, params, {}, label_names=None, calib_mode='naive', calib_data=data)
    >>> qnet.list_arguments()[:3]
    ['data', 'fc_weight_quantize', 'fc_bias_quantize']
    >>> qparams['fc_weight_quantize'].dtype
    <class 'numpy.int8'>
    """
    logger = chosen_logger(logger)
    checks.model(sym, arg_params)
    checks.examples(num_calib_examples)
    qsym, layers = _quantize_symbol(sym, ctx, excluded_sym_names, excluded_op_names, list(arg_params), quantized_dtype, quantize_mode,
                                    quantize_granularity, logger)
    checks.quantized_parameters(qsym, {**arg_params, **(aux_params or {})})
    ranges: Mapping[str, Any] = {}
    if calib_mode is not None and calib_mode != "none":
        collector = _collector(calib_mode, quantized_dtype, layers, None, logger)
        if calib_data is None:
            raise ValueError(f"`calib_data` must be given when calib_mode={calib_mode}, received None")
        if not isinstance(calib_data, DataIter):
            raise ValueError(f"calib_mode={calib_mode} takes a DataIter as `calib_data`, received {type(calib_data).__name__}")
        mod = Module(symbol=sym, data_names=data_names, label_names=label_names, context=ctx)
        mod.bind(for_training=False, data_shapes=calib_data.provide_data, label_shapes=calib_data.provide_label or None)
        mod.set_params(arg_params, aux_params)
        collect_statistics(mod, calib_data, collector, num_calib_examples, logger)
        ranges = ranges_of(collector, calib_mode, quantized_dtype, logger) if layers else {}
        qsym = _calibrate_quantized_sym(qsym, ranges)
    return qsym, _quantize_params(qsym, arg_params, ranges), aux_params


def quantize_model_mkldnn(sym: Symbol, arg_params: Params, aux_params: Params, data_names: Iterable[str] = ("data",),
                          label_names: Iterable[str] | None = ("softmax_label",), ctx: Context = cpu(),
                          excluded_sym_names: list[str] | None = None, excluded_op_names: list[str] | None = None, calib_mode: str = "entropy",
                          calib_data: DataIter | None = None, num_calib_examples: int | None = None, quantized_dtype: str = "int8",
                          quantize_mode: str = "smart", quantize_granularity: str = "tensor-wise",
                          logger: logging.Logger | None = None) -> tuple[Symbol, dict[str, NDArray], Params]:
    """`quantize_model`, of a network whose convolutions and fully connected layers are fused with the operators after them, on the CPU.

    Batch norms, sums and activations become parts of these layers, which return integers at once: the fastest form.

    Raises
    ------
    ValueError
        If `ctx` is no CPU; or as in `quantize_model`.
    """
    checks.model(sym, arg_params)
    if checks.context(ctx).device_type != "cpu":
        raise ValueError(f"quantize_model_mkldnn makes networks for the CPU, received ctx={ctx}; quantize_model makes them for others")
    qsym, params, aux = quantize_model(sym.get_backend_symbol("MKLDNN_QUANTIZE"), arg_params, aux_params, data_names, label_names, ctx,
                                       excluded_sym_names, excluded_op_names, calib_mode, calib_data, num_calib_examples, quantized_dtype,
                                       quantize_mode, quantize_granularity, logger)
    return qsym.get_backend_symbol("MKLDNN_QUANTIZE"), params, aux


def _collector(calib_mode: str, quantized_dtype: str, layers: list[str], own: Any, logger: logging.Logger | None) -> Any:
    if calib_mode == "entropy":
        return _LayerHistogramCollector(include_layer=set(layers), logger=logger)
    if calib_mode == "naive":
        return _LayerOutputMinMaxCollector(quantized_dtype, set(layers), logger)
    if calib_mode == "customize" and own is not None:
        if not callable(getattr(own, "collect", None)):
            raise ValueError(f"a collector has a method `collect(name, array)`, received {shortened(own)} of type "
                             f"{type(own).__name__}, which has none")
        return own
    raise ValueError(f"unknown calibration mode {calib_mode} received: expected `none`, `naive`, `entropy`, or `customize` with a collector")


def quantize_graph(sym: Symbol, arg_params: Params, aux_params: Params, ctx: Context = cpu(), excluded_sym_names: list[str] | None = None,
                   excluded_op_names: list[str] | None = None, calib_mode: str = "entropy", quantized_dtype: str = "int8",
                   quantize_mode: str = "full", quantize_granularity: str = "tensor-wise", LayerOutputCollector: Any = None,
                   logger: logging.Logger | None = None) -> tuple[Symbol, dict[str, NDArray], Params, Any]:
    """Return a quantized network, and a collector for the calibration data: the first half of `quantize_model`.

    Parameters
    ----------
    calib_mode : {'none', 'naive', 'entropy', 'customize'}
    LayerOutputCollector : object, optional
        For ``'customize'``: its ``collect(name, array)`` is called for all outputs, and its ``min_max_dict`` has (low, high) by name at the end.

    The other arguments are those of `quantize_model`.

    Returns
    -------
    Symbol, dict of str to NDArray, dict of str to NDArray, object
        The quantized network, its parameters and auxiliary states, and the collector (None for ``'none'``), whose ``collect`` is a
        callback for ``Executor.set_monitor_callback(..., monitor_all=True)`` of the network on real numbers. `calib_graph` goes on from here.
    """
    logger = chosen_logger(logger)
    checks.model(sym, arg_params)
    qsym, layers = _quantize_symbol(sym, ctx, excluded_sym_names, excluded_op_names, list(arg_params), quantized_dtype,
                                    quantize_mode, quantize_granularity, logger)
    checks.quantized_parameters(qsym, {**arg_params, **(aux_params or {})})
    collector = None if calib_mode in (None, "none") else _collector(calib_mode, quantized_dtype, layers, LayerOutputCollector, logger)
    return qsym, _quantize_params(qsym, arg_params, {}), aux_params, collector


def calib_graph(qsym: Symbol, arg_params: Params, aux_params: Params, collector: Any, calib_mode: str = "entropy",
                quantized_dtype: str = "int8", logger: logging.Logger | None = None) -> tuple[Symbol, dict[str, NDArray], Params]:
    """Return the network of `quantize_graph` with the ranges of its collector: the second half of `quantize_model`.

    Parameters
    ----------
    arg_params : dict of str to NDArray
        The parameters on real numbers.

    Returns
    -------
    Symbol, dict of str to NDArray, dict of str to NDArray

    Raises
    ------
    ValueError
        If `calib_mode` is ``'none'``, or unknown.
    MXNetError
        If the collector has seen nothing, or values that are infinite or no numbers.
    """
    checks.model(qsym, arg_params)
    checks.one_of("quantized_dtype", quantized_dtype, checks.DTYPES)
    if calib_mode is None or calib_mode == "none":
        raise ValueError(f"calib_graph needs calib_mode `naive`, `entropy` or `customize`, received {calib_mode}: quantize_graph has done all "
                         "there is to do")
    ranges = ranges_of(collector, calib_mode, quantized_dtype, chosen_logger(logger))
    qsym = _calibrate_quantized_sym(qsym, ranges)
    return qsym, _quantize_params(qsym, arg_params, ranges), aux_params
