"""What the tests of metrics share: data, and the checks that each metric passes."""
import math

import pytest

import mxnet as mx
from mxnet import metric

PROBABILITIES = [[[0.1, 0.7, 0.2], [0.5, 0.25, 0.25], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]], [[0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]]
CLASSES = [[1, 2, 2, 0], [0, 1]]
TWO = [[[0.3, 0.7], [0.6, 0.4], [0.2, 0.8], [0.9, 0.1], [0.45, 0.55]], [[0.2, 0.8], [0.7, 0.3]]]
TWO_CLASSES = [[1, 1, 0, 0, 1], [1, 0]]
PREDICTED = [[[0.5, 1.0], [2.0, -1.0], [0.0, 4.0]], [[1.0, 0.0]]]
ACTUAL = [[[0.0, 1.5], [1.0, 1.0], [0.5, 3.0]], [[2.0, 2.0]]]


def updated(m, labels, predictions, dtype="float32"):
    for label, prediction in zip(labels, predictions):
        m.update([mx.nd.array(label)], [mx.nd.array(prediction, dtype=dtype)])
    return m


def check_value(klass, kwargs, labels, predictions, name, value):
    """Name and value, also in half precision, and of a metric made again from its configuration."""
    got = updated(klass(**kwargs), labels, predictions).get()
    assert got == (name, pytest.approx(value, rel=1e-6)) and type(got[1]) is float
    assert updated(klass(**kwargs), labels, predictions, "float16").get()[1] == pytest.approx(value, rel=5e-3)
    again = metric.create(klass(**kwargs).get_config())
    assert type(again) is klass and updated(again, labels, predictions).get() == (name, pytest.approx(value, rel=1e-6))


def check_local_and_global(klass, kwargs, labels, predictions, name, value):
    """`reset_local` forgets the local value only, `reset` both."""
    m = updated(klass(**kwargs), labels, predictions)
    m.reset_local()
    assert math.isnan(m.get()[1])
    assert m.get_global() == (name, pytest.approx(value, rel=1e-6))
    assert m.get_global_name_value() == [(name, pytest.approx(value, rel=1e-6))]
    updated(m, labels, predictions)
    assert m.get()[1] == pytest.approx(value, rel=1e-6)
    assert m.get_global()[1] == pytest.approx(value, rel=1e-6)
    m.reset()
    assert math.isnan(m.get()[1]) and math.isnan(m.get_global()[1])


def check_refused(m, labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        m.update([mx.nd.array(x) for x in labels], [mx.nd.array(x) for x in predictions])
