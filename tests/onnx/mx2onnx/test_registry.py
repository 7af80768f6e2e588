import pytest

from mxnet.onnx.mx2onnx.registry import CONVERTERS, arguments, exports, find
from mxnet.ops import get


def test_one_converter_for_each_operator():
    with pytest.raises(ValueError, match="two converters for Convolution: convolution and again"):
        @exports("Convolution")
        def again(on, x):
            return x


def test_converters_are_found_by_each_name():
    assert find(get("concat"))[0] == "Concat" and find(get("identity"))[1] is CONVERTERS["_copy"]
    assert find(get("CTCLoss")) is None


def test_attributes_that_a_converter_does_not_take_must_have_their_defaults():
    converter = CONVERTERS["Dropout"]
    assert arguments(converter, "Dropout", {"p": 0.1, "mode": "training"}, {}) == ({"mode": "training"}, [])
    assert arguments(converter, "Dropout", {"new": 1, "old": 2}, {"new": 0, "old": 2}) == ({}, ["new"])
    assert arguments(CONVERTERS["log_softmax"], "log_softmax", {"axis": 1}, {})[0] == {"axis": 1, "operator": "log_softmax"}
