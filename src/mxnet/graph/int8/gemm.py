"""Matrix products and convolutions of 8-bit integers on torch's oneDNN kernels, for fused nodes of graphs that OpenVINO does not run."""
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ... import processor
from ...ndarray import mutation_tracking
from ...ops.quantization.arithmetic import Quantized
from ..weight_guard import WeightGuard


@functools.cache
def available() -> bool:
    """Return True if torch has the kernels, and the processor has instructions that accumulate 8-bit products in 32 bits.

    Without these oneDNN first adds two products in 16 bits, where uint8 times int8 overflows.
    """
    return bool(processor.flags() & {"avx512_vnni", "avx_vnni"}) and torch.backends.mkldnn.is_available() and _agree()


def _agree() -> bool:
    """Return True if this torch's kernels accept the arguments used here, and return right results."""
    data = Quantized(torch.full((1, 16, 1, 1), 255, dtype=torch.uint8), torch.zeros(1), torch.full((1,), 255.5))
    weight, one = torch.full((16, 16, 1, 1), 127, dtype=torch.int8), torch.ones(1)
    window = {"kernel": (1, 1), "stride": (), "pad": (), "dilate": (), "num_group": 1, "layout": None}
    try:
        convolved = Packed([weight], window, data, weight, one, None)
        connected = Packed([weight], {"flatten": True}, data, weight.flatten(1), one, None)
        total = 16 * 255 * 127
        return bool((convolved.product(data.values) == total).all() and (connected.product(data.values) == total).all()
                    and (convolved.product(data.values, total / 100, torch.uint8, True, data) == 100).all())
    except (AttributeError, RuntimeError, TypeError):  # another version of torch
        return False


def suits(attributes: Mapping[str, Any], data: torch.Tensor) -> bool:
    """Return True if a product of such data, with these attributes of ``Convolution`` or ``FullyConnected``, can run here."""
    if not data.is_cpu or torch.compiler.is_compiling() or not available():
        return False
    return "kernel" not in attributes or len(attributes["kernel"]) == 2 and attributes["layout"] in (None, "NCHW")


class Packed:
    """The weights of a product, packed for the kernels, until one of their source arrays changes.

    Parameters
    ----------
    sources : list of torch.Tensor
        The source arrays, which are guarded.
    attributes : dict
        Of ``Convolution`` or ``FullyConnected``.
    data : Quantized
        Example data with the range of later data.
    values, unit, bias : torch.Tensor
        int8 weights, their scale (one number, or one for each output channel), and a bias of real numbers, or None.
    """

    def __init__(self, sources: Sequence[torch.Tensor], attributes: Mapping[str, Any], data: Quantized, values: torch.Tensor, unit: torch.Tensor,
                 bias: torch.Tensor | None):
        self._sources = WeightGuard(sources) if all(map(mutation_tracking.may_watch, sources)) else None
        self._data_unit = data.number
        self._unit = unit.detach().float().contiguous()
        self._bias = None if bias is None else bias.detach().float().contiguous()
        self._none = torch.zeros(self._unit.numel(), dtype=torch.int32)
        self._convolves = "kernel" in attributes
        self._flattens = attributes.get("flatten", False)
        if self._convolves:
            self._window = [list(attributes[name] or (default,) * 2) for name, default in (("stride", 1), ("pad", 0), ("dilate", 1))]
            self._groups = attributes["num_group"]
            self._weight = torch.ops.onednn.qconv_prepack(values, self._unit, self._data_unit, self._zero(data.values), *self._window, self._groups,
                                                          list(data.values.shape))
        else:
            self._weight = torch.ops.onednn.qlinear_prepack(values, None)

    def holds(self, sources: Sequence[torch.Tensor], data: Quantized) -> bool:
        """Return True if these are the same weights, and the data has the range of the packing."""
        return self._sources is not None and self._sources.holds(sources) and data.number == self._data_unit

    @staticmethod
    def _zero(values: torch.Tensor) -> int:
        return 128 if values.dtype is torch.int8 else 0

    def adds(self, added: Quantized, dtype: torch.dtype) -> bool:
        """Return True if `product` can add these integers to a result of that type: the types must be equal."""
        return self._convolves and added.values.dtype is dtype

    def product(self, values: torch.Tensor, unit: float = 1.0, dtype: torch.dtype = torch.float32, relu: bool = False,
                added: Quantized | None = None) -> torch.Tensor:
        """Return the product with integer data, plus the bias, in `dtype`.

        Parameters
        ----------
        values : torch.Tensor
            uint8 or int8, of the range of the packing.
        unit : float
            The scale of an integer result; 1 for real numbers.
        dtype : torch.dtype
            float32, uint8 or int8.
        relu : bool
            If True, ReLU is applied at the end.
        added : Quantized, optional
            An array that is added before ReLU; see `adds`.
        """
        zero = self._zero(values)
        if zero:  # the kernels read only uint8
            values = values.view(torch.uint8) ^ 128
        end: tuple = (unit, 0, dtype, "relu" if relu else "none", [], "")
        weight = values, self._data_unit, zero, self._weight, self._unit, self._none
        if added is not None:
            total = added.values.clone(memory_format=torch.channels_last)  # the kernel's output array
            return torch.ops.onednn.qconv2d_pointwise.binary(*weight, total, self._bias, *self._window, self._groups, *end[:3], added.number, 0,
                                                             "sum", 1.0, *end[3:])
        if self._convolves:
            return torch.ops.onednn.qconv2d_pointwise(*weight, self._bias, *self._window, self._groups, *end)
        rows = values.flatten(1) if self._flattens else values
        return torch.ops.onednn.qlinear_pointwise(rows.contiguous(), *weight[1:], self._bias, *end)
