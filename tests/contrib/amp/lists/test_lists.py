"""The lists hold exactly what MXNet 1.9.1's `list_...` functions return: the digests are made from those."""
import hashlib
from collections import Counter

import pytest

from mxnet.contrib import amp
from mxnet.ops.dtypes import BFLOAT16_BITS

MXNET = {
    ("float16", "lp16_ops"): (4, "351b304589f0185c"),
    ("float16", "lp16_fp32_ops"): (318, "6a67cf9ffc549e03"),
    ("float16", "fp32_ops"): (136, "9488f1176242221b"),
    ("float16", "widest_type_cast"): (113, "30c74974bb42dc5c"),
    ("float16", "loss_output_functions"): (4, "74dade6be68d7316"),
    ("bfloat16", "lp16_ops"): (2, "220e497e0a544ca2"),
    ("bfloat16", "lp16_fp32_ops"): (15, "19dcba5d3062f352"),
    ("bfloat16", "fp32_ops"): (438, "88654344d40146e6"),
    ("bfloat16", "widest_type_cast"): (109, "e61b52be6eec5715"),
    ("bfloat16", "loss_output_functions"): (4, "74dade6be68d7316"),
}


@pytest.mark.parametrize("dtype, name", MXNET)
def test_same_operators_as_mxnet(dtype, name):
    names = getattr(amp, f"list_{name}")(dtype)
    assert (len(names), hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]) == MXNET[dtype, name]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_operator_is_in_one_list(dtype):
    names = [*amp.list_lp16_ops(dtype), *amp.list_lp16_fp32_ops(dtype), *amp.list_fp32_ops(dtype), *amp.list_widest_type_cast(dtype),
             *(item[0] for item in amp.list_conditional_fp32_ops(dtype))]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_low_precision():
    assert amp.list_lp16_ops("float16") == ["Convolution", "Deconvolution", "FullyConnected", "RNN"]
    assert amp.list_lp16_ops(BFLOAT16_BITS) == amp.list_lp16_ops("bfloat16") == ["Convolution", "FullyConnected"]


def test_conditional():
    expected = [("Activation", "act_type", ["softrelu"]), ("LeakyReLU", "act_type", ["elu", "selu"])]
    assert amp.list_conditional_fp32_ops("float16") == amp.list_conditional_fp32_ops("bfloat16") == expected


def test_inputs_that_stay_float32():
    assert amp.list_lp16_use_fp32_params("float16") is None
    inputs = ["", "gamma", "beta", "moving_mean", "moving_var"]
    assert amp.list_lp16_use_fp32_params("bfloat16") == {"BatchNorm": inputs, "BatchNormWithReLU": inputs}


def test_other_type():
    with pytest.raises(AssertionError, match="target_dtype must be 'float16' or 'bfloat16', received 'int8'"):
        amp.list_fp32_ops("int8")
