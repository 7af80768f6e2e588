"""Each NumPy array of `numpy_inputs.py` at each place that takes one: class, type, shape and values are those that MXNet 1.9.1 recorded."""
import json
import pathlib
import sys
import warnings

import numpy as np
import pytest

import mxnet as mx

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from numpy_inputs import CONSUMERS, SOURCES, described, grid  # noqa: E402

RECORD = json.loads((pathlib.Path(__file__).parent / "numpy_inputs.json").read_text())


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_values_as_recorded(consumer):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of what conversions lose
        for source, number in RECORD["cases"][consumer].items():
            result = described(CONSUMERS[consumer](SOURCES[source]()))
            if result != RECORD["results"][number]:
                wrong.append((source, result, RECORD["results"][number]))
    assert not wrong


def test_there_are_records():
    assert set(RECORD["cases"]) == set(CONSUMERS) and sum(map(len, RECORD["cases"].values())) > 1600
    assert all(cases.keys() <= SOURCES.keys() for cases in RECORD["cases"].values())


@pytest.mark.parametrize("consumer", ["nd.array", "np.array", "all", "np all", "reversed", "advanced", "csr", "set_data", "assign", "arg_dict"])
def test_records_with_fields_are_refused(consumer):
    with pytest.raises((TypeError, ValueError, KeyError)):
        CONSUMERS[consumer](SOURCES["structured"]())


# What MXNet 1.9.1 refuses: wider types than it has.
@pytest.mark.parametrize("source, expected", [("longdouble", "float64"), (">u2", "uint16"), (">u8", "uint64"), ("no axes longdouble", "float64")])
def test_types_that_mxnet_has_not(source, expected):
    for array in (mx.np.array(SOURCES[source]()), mx.nd.from_numpy(SOURCES[source](), zero_copy=False)):
        assert np.dtype(array.dtype).name == expected and array.asnumpy().tolist() == SOURCES[source]().astype("f8").tolist()
    assert CONSUMERS["DataLoader"](grid().astype(np.longdouble)).dtype is np.float64


def test_metrics():
    for make in (SOURCES["negative"], SOURCES["big negative"], SOURCES["longdouble negative"], SOURCES["read-only negative"]):
        metric = mx.metric.MSE()
        metric.update([make()], [mx.nd.array(make()) + 2])
        assert metric.get() == ("mse", 4)


def test_the_sum_of_a_custom_metric_may_be_an_array():
    metric = mx.metric.np(lambda label, pred: np.array([label.sum(), pred.sum()]))
    for _ in range(2):
        metric.update([mx.nd.array([1, 2])], [mx.nd.array([3, 4])])
    assert metric.get()[1].tolist() == [3, 7]


def test_an_encoded_image_in_any_layout():
    import cv2
    content = cv2.imencode(".png", np.full((2, 2, 3), 7, "u1"))[1].ravel()
    for buffer in (content[::-1].copy()[::-1], np.repeat(content, 2)[::2]):
        assert mx.image.imdecode(buffer).asnumpy().tolist() == np.full((2, 2, 3), 7).tolist()


def test_errors_name_types_and_shapes_instead_of_numbers():
    x = mx.nd.zeros((2, 2))
    with pytest.raises(ValueError, match=r"received an array of shape \(2, 2\) and type object of type .*: could not convert string to float: 'a'"):
        x[:] = np.array([["a", 1], [2, 3]], object)
    with pytest.raises(TypeError, match="numbers and arrays can be assigned to an NDArray, received 'a' of type <class 'str'>"):
        x[:] = "a"
    with pytest.raises(ValueError, match="an NDArray is indexed by integers, .*, received an array of shape .* and type object"):
        x[np.array([None])]
    with pytest.raises(ValueError, match="zero_copy needs numbers of a native type that MXNet knows, received an array of shape .* and type >f4"):
        mx.nd.from_numpy(np.ones(3, ">f4"))
    with pytest.raises(TypeError, match="real numbers expected, received 3j"):
        mx.nd.array(3j)
    with pytest.raises(MXNetError := mx.base.MXNetError,
    match=r"CSRNDArray: values that broadcast to shape \(2, 2\) expected, received shape \(3,\)"):
        mx.nd.sparse.zeros("csr", (2, 2))[:] = np.ones(3)
    with pytest.raises(MXNetError, match="concatenate: at least one NDArray among the arrays expected"):
        mx.nd.concatenate([np.ones(2), np.ones(2)])


def test_integers_beyond_64_bits():
    x = mx.nd.zeros(2)
    x[:] = 2**70
    assert x.asnumpy().tolist() == [2.0**70] * 2
    assert mx.nd.full(2, 2**64 + 5, dtype="int32").asnumpy().tolist() == [5, 5]
    with pytest.raises(TypeError, match="too large"):
        mx.nd.array(2**70, dtype="int32")


def test_where_takes_arrays_of_one_number():
    assert mx.np.where(mx.np.array([1, 0]), np.array(3, ">f4"), mx.np.zeros(2)).tolist() == [3, 0]
    assert mx.np.where(mx.np.array([1, 0]), mx.np.zeros(2), np.array([[3.5]])).tolist() == [0, 3.5]
