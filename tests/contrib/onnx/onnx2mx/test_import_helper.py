import pytest

from mxnet.contrib.onnx.onnx2mx import _import_helper
from mxnet.contrib.onnx.onnx2mx.registry import TRANSLATIONS


def test_functions_have_mxnets_names_and_are_those_of_the_table():
    assert _import_helper._convert_map is TRANSLATIONS
    assert _import_helper.conv is TRANSLATIONS["Conv"].function
    assert _import_helper.matrix_multiplication is TRANSLATIONS["MatMul"].function
    assert set(_import_helper._OPERATORS.values()) <= set(TRANSLATIONS)
    with pytest.raises(AttributeError, match="has no attribute 'fold'"):
        _import_helper.fold  # noqa: B018
