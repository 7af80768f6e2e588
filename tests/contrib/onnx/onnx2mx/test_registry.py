import numpy as np
import pytest
from onnx import helper

from mxnet import MXNetError
from mxnet.contrib.onnx.onnx2mx import _import_helper
from mxnet.contrib.onnx.onnx2mx.registry import FOLDS, TRANSLATIONS, Rule, operator_name


def example(g, data, axes=None, *, keepdims=1):
    return data


def test_an_attribute_stands_for_an_input_of_its_name():
    rule = Rule(example)
    assert rule.arguments(["x"], {"axes": (1,), "keepdims": 0}, np.asarray) == (["x", np.array([1])], {"keepdims": 0})
    assert rule.arguments(["x", "y"], {"axes": (1,)}, np.asarray) == (["x", "y"], {})
    assert rule.arguments(["x"], {"consumed_inputs": (0,)}, np.asarray) == (["x"], {})


@pytest.mark.parametrize("inputs, attributes, text", [
    (["x", "y", "z"], {}, "expected at most 2 inputs, received 3"), ([], {}, "the input `data` is missing"),
    ([None], {}, "the input `data` is missing"),
    (["x"], {"other": 3}, r"the attribute 'other' \(= 3\) is not known; known are: keepdims")])
def test_what_does_not_fit_is_refused(inputs, attributes, text):
    with pytest.raises(MXNetError, match=text):
        Rule(example).arguments(inputs, attributes, np.asarray)


def test_any_number_of_inputs():
    rule = Rule(lambda g, *data, axis=0: data)
    assert rule.arguments(["a", None, "b"], {}, np.asarray) == (["a", "b"], {})
    with pytest.raises(MXNetError, match="expected at least one input"):
        rule.arguments([None], {}, np.asarray)


def test_names_have_their_domain():
    assert operator_name(helper.make_node("Gelu", [], [])) == "Gelu"
    assert operator_name(helper.make_node("Gelu", [], [], domain="com.microsoft")) == "com.microsoft.Gelu"


def test_the_tables():
    assert len(TRANSLATIONS) > 150 and set(FOLDS) <= set(TRANSLATIONS) | {"Range"}
    assert _import_helper._convert_map is TRANSLATIONS
