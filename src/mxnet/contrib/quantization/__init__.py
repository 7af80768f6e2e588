"""Quantization of trained networks to 8-bit integers: calibration, and the graphs and parameters that follow. Also called ``mx.contrib.quant``."""
from .collectors import (
    _get_optimal_threshold,
    _get_optimal_thresholds,
    _LayerHistogramCollector,
    _LayerOutputMinMaxCollector,
    _smooth_distribution,
    combine_histogram,
)
from .models import (
    _calibrate_quantized_sym,
    _quantize_params,
    _quantize_symbol,
    calib_graph,
    quantize_graph,
    quantize_model,
    quantize_model_mkldnn,
)
from .networks import quantize_net, quantize_net_v2
from .report import Layer, Report, compare
