import pytest
import torch

from mxnet.interop.from_torch import layers
from mxnet.interop.from_torch.registry import converter, converts, writes

aten = torch.ops.aten


def test_operators_are_found_by_name_and_overload():
    assert converter(aten.conv2d.default) is layers.conv
    assert converter(aten.relu_.default) is converter(aten.relu.default) is not None
    assert converter(aten.index.Tensor) is not None and converter(aten._linalg_svd.default) is None


def test_a_name_stands_once():
    with pytest.raises(ValueError, match="torch's operator conv2d is registered twice"):
        converts("conv2d")(layers.conv)


def test_what_writes():
    assert writes(aten.relu_.default) and not writes(aten.relu.default)
