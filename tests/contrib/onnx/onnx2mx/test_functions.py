import numpy as np
import pytest
from onnx import TensorProto, helper

from mxnet.contrib.onnx.onnx2mx.functions import builtin_function
from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(2)


def real(*shape):
    return R.randn(*shape).astype("float32")


def test_bodies_and_defaults():
    made = helper.make_node("CausalConvWithState", ["x", "w"], ["y", "s"])
    assert builtin_function(made, 26) is None or builtin_function(made, 28) is True
    assert builtin_function(node("Add", "x x"), 13) is None and builtin_function(node("Wiggle", "x"), 13) is None
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])
    body, defaults = builtin_function(node("Attention", "q k v"), 23, [kind] * 3)
    assert len(body.node) > 10 and {"is_causal", "softcap"} <= {attribute.name for attribute in defaults.attribute}


@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"scale": 0.3, "softcap": 2.0}])
def test_attention(attributes):
    inputs = {"q": real(2, 3, 4, 8), "k": real(2, 3, 6, 8), "v": real(2, 3, 6, 8)}
    agrees(node("Attention", "q k v", **attributes), inputs, opset=23, rtol=1e-4, atol=1e-5)


def test_attention_of_an_open_length():
    shapes = dict.fromkeys("qkv", ("batch", 3, "length", 8))
    agrees(node("Attention", "q k v"), {name: real(2, 3, 5, 8) for name in "qkv"}, opset=23, shapes=shapes, rtol=1e-4, atol=1e-5)


def test_rotated_positions():
    agrees(node("RotaryEmbedding", "x c s"), {"x": real(2, 3, 4, 8), "c": real(2, 4, 4), "s": real(2, 4, 4)}, opset=23, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(reduction):
    inputs = {"x": real(3, 5, 2), "t": np.array([[0, 1], [4, 2], [3, 3]])}
    agrees(node("SoftmaxCrossEntropyLoss", "x t", "y p", reduction=reduction, ignore_index=2), inputs, outputs="y p", opset=13, rtol=1e-4, atol=1e-5)


def test_bodies_are_those_of_the_versions_of_the_file():
    model = model_of([node("Attention", "q k v")], dict.fromkeys("qkv", (1, 1, 2, 2)), opset=13)
    with pytest.raises(NotImplementedError, match=r"compute these of the file: Attention"):
        run(model)
