"""Products of 8-bit integers on oneDNN's kernels, which torch brings along: fused nodes run on them where OpenVINO does not run the graph."""
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ... import processor
from ...ndarray import writes
from ...ops.quantization.arithmetic import Quantized
from ..weight_guard import WeightGuard


@functools.cache
def available() -> bool:
    """Whether torch has the kernels, and the processor instructions that add products of 8 bits in 32.

    Without these oneDNN adds two products in 16 bits first, where uint8 times int8 overflows.
    """
    return bool(processor.flags() & {"avx512_vnni", "avx_vnni"}) and torch.backends.mkldnn.is_available() and _agree()


def _agree() -> bool:
    """Whether this torch's kernels take what they are given here, and return what it should be."""
    data = Quantized(torch.full((1, 16, 1, 1), 255, dtype=torch.uint8), torch.zeros(1), torch.full((1,), 255.5))
    weight, one = torch.full((16, 16, 1, 1), 127, dtype=torch.int8), torch.ones(1)
    window = {"kernel": (1, 1), "stride": (), "pad": (), "dilate": (), "num_group": 1, "layout": None}
    try:
        convolved = Packed([weight], window, data, weight, one, None)
        connected = Packed([weight], {"flatten": True}, data, weight.flatten(1), one, None)
        total = 16 * 255 * 127
        return bool((convolved.product(data.values) == total).all() and (connected.product(data.values) == total).all()
                    and (convolved.product(data.values, total / 100, torch.uint8, True, data) == 100).all())
    except (AttributeError, RuntimeError, TypeError):  # another torch's
        return False


def suits(attributes: Mapping[str, Any], data: torch.Tensor) -> bool:
    """Whether a product of such data, with these attributes of ``Convolution`` or ``FullyConnected``, can run here."""
    if not data.is_cpu or torch.compiler.is_compiling() or not available():
        return False
    return "kernel" not in attributes or len(attributes["kernel"]) == 2 and attributes["layout"] in (None, "NCHW")


class Packed:
    """The weights of a product in the order that the kernels read, until one of the arrays that they were made of changes.

    Parameters
    ----------
    made_of : list of torch.Tensor
        What has to stay as it is.
    attributes : dict
        Of ``Convolution`` or ``FullyConnected``.
    data : Quantized
        With the range that the data will have again.
    values, unit, bias : torch.Tensor
        int8 weights, what 1 stands for (one number, or one for each output channel), and a bias of real numbers, or None.
    """

    def __init__(self, made_of: Sequence[torch.Tensor], attributes: Mapping[str, Any], data: Quantized, values: torch.Tensor, unit: torch.Tensor,
                 bias: torch.Tensor | None):
        self._made_of = WeightGuard(made_of) if all(map(writes.may_watch, made_of)) else None
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

    def holds(self, made_of: Sequence[torch.Tensor], data: Quantized) -> bool:
        """Whether these are still the weights, and the data's range is the one that they were made for."""
        return self._made_of is not None and self._made_of.holds(made_of) and data.number == self._data_unit

    @staticmethod
    def _zero(values: torch.Tensor) -> int:
        return 128 if values.dtype is torch.int8 else 0

    def adds(self, added: Quantized, dtype: torch.dtype) -> bool:
        """Whether `product` can add these integers to a result of that type: only to one of the same."""
        return self._convolves and added.values.dtype is dtype

    def product(self, values: torch.Tensor, unit: float = 1.0, dtype: torch.dtype = torch.float32, rectifies: bool = False,
                added: Quantized | None = None) -> torch.Tensor:
        """The product with integer data, and the bias, in `dtype`.

        Parameters
        ----------
        values : torch.Tensor
            uint8 or int8, of the range that the weights were made for.
        unit : float
            What 1 in a result of integers stands for; 1 for real numbers.
        dtype : torch.dtype
            float32, uint8 or int8.
        rectifies : bool
            Whether what is below zero becomes zero, in the end.
        added : Quantized, optional
            What is added before; see `adds`.
        """
        zero = self._zero(values)
        if zero:  # the kernels read uint8 alone
            values = values.view(torch.uint8) ^ 128
        end: tuple = (unit, 0, dtype, "relu" if rectifies else "none", [], "")
        weight = values, self._data_unit, zero, self._weight, self._unit, self._none
        if added is not None:
            total = added.values.clone(memory_format=torch.channels_last)  # which becomes the result
            return torch.ops.onednn.qconv2d_pointwise.binary(*weight, total, self._bias, *self._window, self._groups, *end[:3], added.number, 0,
                                                             "sum", 1.0, *end[3:])
        if self._convolves:
            return torch.ops.onednn.qconv2d_pointwise(*weight, self._bias, *self._window, self._groups, *end)
        rows = values.flatten(1) if self._flattens else values
        return torch.ops.onednn.qlinear_pointwise(rows.contiguous(), *weight[1:], self._bias, *end)
