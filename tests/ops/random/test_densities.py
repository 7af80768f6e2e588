"""Probability densities. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

CASES = [
    ("uniform", [[0.5, 2]], ([0], [2]), [[0.5, 0.5]]),
    ("normal", [[0.5, 2], [1, 1]], ([0, 1], [2, 1]), [[0.19333406, 0.12098536], [0.3989423, 0.3989423]]),
    ("gamma", [[0.5, 2]], ([2], [3]), [[1.0040858, 0.04461754]]),
    ("exponential", [[0.5, 2]], ([2],), [[0.73575890, 0.03663128]]),
    ("poisson", [[0, 2, 3]], ([2],), [[0.13533528, 0.27067056, 0.18044704]]),
    ("negative_binomial", [[0, 2, 3]], ([2], [0.3]), [[0.09, 0.1323, 0.12348]]),
    ("generalized_negative_binomial", [[0, 2, 3]], ([2], [0.3]), [[0.20873730, 0.21199873, 0.14133248]]),
    ("dirichlet", [[[0.2, 0.8], [0.5, 0.5]]], ([[2, 3]],), [[1.536, 1.5]]),
    ("dirichlet", [0.2, 0.8], ([2, 3],), [1.536])]


@pytest.mark.parametrize("name, sample, parameters, values", CASES, ids=[f"{c[0]}{i}" for i, c in enumerate(CASES)])
def test_densities(name, sample, parameters, values):
    density = getattr(mx.nd, f"random_pdf_{name}")
    arrays = [mx.nd.array(sample), *[mx.nd.array(p) for p in parameters]]
    np.testing.assert_allclose(density(*arrays).asnumpy(), values, rtol=2e-5)
    np.testing.assert_allclose(density(*arrays, is_log=True).asnumpy(), np.log(values), rtol=1e-4)


def test_gradients():
    x, mu, sigma = mx.nd.array([[1, 3]]), mx.nd.array([0]), mx.nd.array([2])
    for a in (x, mu, sigma):
        a.attach_grad()
    with mx.autograd.record():
        y = mx.nd.random_pdf_normal(x, mu, sigma, is_log=True)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [[-0.25, -0.75]], rtol=1e-6)
    np.testing.assert_allclose(mu.grad.asnumpy(), [1], rtol=1e-6)
    np.testing.assert_allclose(sigma.grad.asnumpy(), [(1 + 9) / 8 - 1], rtol=1e-5)


def test_shapes_that_do_not_fit():
    with pytest.raises(MXNetError, match=r"_random_pdf_normal: the parameters must have one shape, with which that of `sample` begins; "
                                         r"received sample \(1,\), parameters \(2,\), \(2,\)"):
        mx.nd.random_pdf_normal(mx.nd.ones((1,)), mx.nd.ones((2,)), mx.nd.ones((2,)))
    with pytest.raises(MXNetError, match="`sample` must begin and end with the sizes of `alpha`"):
        mx.nd.random_pdf_dirichlet(mx.nd.ones((1, 3)), mx.nd.ones((1, 2)))


def test_shape_inference():
    s = mx.sym.random_pdf_uniform(mx.sym.Variable("x"), mx.sym.Variable("low"), mx.sym.Variable("high"))
    assert s.infer_shape(x=(2, 5), low=(2,))[0] == [(2, 5), (2,), (2,)]
