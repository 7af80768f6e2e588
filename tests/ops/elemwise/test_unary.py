"""Operators on one array. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

nan, inf = float("nan"), float("inf")
DOMAINS = {"default": [-1.5, -0.5, 0.0, 0.5, 2.5], "unit": [-0.5, 0.0, 0.25, 0.9], "pos": [0.25, 0.5, 1.0, 4.0],
           "ge1": [1.0, 1.25, 4.0], "pole": [-1.5, -0.5, 0.5, 4.0]}
# operator, inputs, values, gradients
CASES = [
    ("abs", "default", [1.5, 0.5, 0, 0.5, 2.5], [-1, -1, 0, 1, 1]),
    ("negative", "default", [1.5, 0.5, 0, -0.5, -2.5], [-1, -1, -1, -1, -1]),
    ("sign", "default", [-1, -1, 0, 1, 1], [0, 0, 0, 0, 0]),
    ("square", "default", [2.25, 0.25, 0, 0.25, 6.25], [-3, -1, 0, 1, 5]),
    ("exp", "default", [0.22313, 0.606531, 1, 1.64872, 12.1825], [0.22313, 0.606531, 1, 1.64872, 12.1825]),
    ("expm1", "default", [-0.77687, -0.393469, 0, 0.648721, 11.1825], [0.22313, 0.606531, 1, 1.64872, 12.1825]),
    ("sin", "default", [-0.997495, -0.479426, 0, 0.479426, 0.598472], [0.0707372, 0.877583, 1, 0.877583, -0.801144]),
    ("cos", "default", [0.0707372, 0.877583, 1, 0.877583, -0.801144], [0.997495, 0.479426, 0, -0.479426, -0.598472]),
    ("tan", "default", [-14.1014, -0.546302, 0, 0.546302, -0.747022], [199.85, 1.29845, 1, 1.29845, 1.55804]),
    ("arctan", "default", [-0.982794, -0.463648, 0, 0.463648, 1.19029], [0.307692, 0.8, 1, 0.8, 0.137931]),
    ("sinh", "default", [-2.12928, -0.521095, 0, 0.521095, 6.0502], [2.35241, 1.12763, 1, 1.12763, 6.13229]),
    ("cosh", "default", [2.35241, 1.12763, 1, 1.12763, 6.13229], [-2.12928, -0.521095, 0, 0.521095, 6.0502]),
    ("tanh", "default", [-0.905148, -0.462117, 0, 0.462117, 0.986614], [0.180707, 0.786448, 1, 0.786448, 0.0265923]),
    ("arcsinh", "default", [-1.19476, -0.481212, 0, 0.481212, 1.64723], [0.5547, 0.894427, 1, 0.894427, 0.371391]),
    ("degrees", "default", [-85.9437, -28.6479, 0, 28.6479, 143.239], [57.2958, 57.2958, 57.2958, 57.2958, 57.2958]),
    ("radians", "default", [-0.0261799, -0.00872665, 0, 0.00872665, 0.0436332], [0.0174533, 0.0174533, 0.0174533, 0.0174533, 0.0174533]),
    ("round", "default", [-2, -1, 0, 1, 3], [0, 0, 0, 0, 0]),
    ("rint", "default", [-2, -1, 0, 0, 2], [0, 0, 0, 0, 0]),
    ("floor", "default", [-2, -1, 0, 0, 2], [0, 0, 0, 0, 0]),
    ("ceil", "default", [-1, 0, 0, 1, 3], [0, 0, 0, 0, 0]),
    ("trunc", "default", [-1, 0, 0, 0, 2], [0, 0, 0, 0, 0]),
    ("fix", "default", [-1, 0, 0, 0, 2], [0, 0, 0, 0, 0]),
    ("relu", "default", [0, 0, 0, 0.5, 2.5], [0, 0, 0, 1, 1]),
    ("sigmoid", "default", [0.182426, 0.377541, 0.5, 0.622459, 0.924142], [0.149146, 0.235004, 0.25, 0.235004, 0.0701037]),
    ("softsign", "default", [-0.6, -0.333333, 0, 0.333333, 0.714286], [0.16, 0.444444, 1, 0.444444, 0.0816327]),
    ("erf", "default", [-0.966105, -0.5205, 0, 0.5205, 0.999593], [0.11893, 0.878783, 1.12838, 0.878783, 0.00217828]),
    ("logical_not", "default", [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]),
    ("cbrt", "default", [-1.14471, -0.793701, 0, 0.793701, 1.35721], [0.254381, 0.529134, inf, 0.529134, 0.180961]),
    ("sqrt", "pos", [0.5, 0.707107, 1, 2], [1, 0.707107, 0.5, 0.25]),
    ("rsqrt", "pos", [2, 1.41421, 1, 0.5], [-4, -1.41421, -0.5, -0.0625]),
    ("reciprocal", "pos", [4, 2, 1, 0.25], [-16, -4, -1, -0.0625]),
    ("rcbrt", "pos", [1.5874, 1.25992, 1, 0.629961], [-2.11653, -0.839947, -0.333333, -0.0524967]),
    ("log", "pos", [-1.38629, -0.693147, 0, 1.38629], [4, 2, 1, 0.25]),
    ("log2", "pos", [-2, -1, 0, 2], [5.77078, 2.88539, 1.4427, 0.360674]),
    ("log10", "pos", [-0.60206, -0.30103, 0, 0.60206], [1.73718, 0.868589, 0.434294, 0.108574]),
    ("log1p", "pos", [0.223144, 0.405465, 0.693147, 1.60944], [0.8, 0.666667, 0.5, 0.2]),
    ("arcsin", "unit", [-0.523599, 0, 0.25268, 1.11977], [1.1547, 1, 1.0328, 2.29416]),
    ("arccos", "unit", [2.0944, 1.5708, 1.31812, 0.451027], [-1.1547, -1, -1.0328, -2.29416]),
    ("arctanh", "unit", [-0.549306, 0, 0.255413, 1.47222], [1.33333, 1, 1.06667, 5.26316]),
    ("erfinv", "unit", [-0.476936, 0, 0.225312, 1.16309], [1.11258, 0.886227, 0.932378, 3.42804]),
    ("arccosh", "ge1", [0, 0.693147, 2.06344], [inf, 1.33333, 0.258199]),
    ("gamma", "pole", [2.36327, -3.54491, 1.77245, 6], [1.66175, -0.129353, -3.48023, 7.53671]),
    ("gammaln", "pole", [0.860047, 1.26551, 0.572365, 1.79176], [0.703157, 0.0364899, -1.96351, 1.25612]),
]


@pytest.mark.parametrize("name, domain, values, gradients", CASES, ids=[c[0] for c in CASES])
def test_value_and_gradient(name, domain, values, gradients):
    x = mx.nd.array(DOMAINS[domain])
    x.attach_grad()
    with mx.autograd.record():
        y = getattr(mx.nd, name)(x)
        loss = (y + 0 * x).sum()
    loss.backward()
    np.testing.assert_allclose(y.asnumpy(), values, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("name, domain, values, _", CASES, ids=[c[0] for c in CASES])
def test_other_precisions(name, domain, values, _, dtype):
    y = getattr(mx.nd, name)(mx.nd.array(DOMAINS[domain], dtype=dtype))
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_allclose(y.asnumpy(), values, rtol=3e-3 if dtype == "float16" else 1e-5, atol=2e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("name, expected", [
    ("exp", [0, 1, 2, 22026]), ("sqrt", [None, 0, 1, 3]), ("gamma", [None, None, 1, 362880]), ("cbrt", [-1, 0, 1, 2]), ("square", [4, 0, 1, 100]),
    ("reciprocal", [0, None, 1, 0]), ("sigmoid", [0, 0, 0, 0]), ("round", [-2, 0, 1, 10]), ("logical_not", [0, 1, 0, 0]),
    ("degrees", [-114, 0, 57, 572])])
def test_integers_are_truncated(name, expected):
    y = getattr(mx.nd, name)(mx.nd.array([-2, 0, 1, 10], dtype="int32"))
    assert y.dtype == np.int32
    assert all(e is None or v == e for v, e in zip(y.asnumpy().tolist(), expected)), y


def test_rounding_at_the_border():
    below_half = np.nextafter(np.float32(0.5), np.float32(0))
    x = mx.nd.array([below_half, -below_half, 8388609, -inf, inf, 1.5, -2.5])
    assert mx.nd.round(x).asnumpy().tolist() == [0, 0, 8388609, -inf, inf, 2, -3]
    assert mx.nd.rint(x).asnumpy().tolist() == [0, 0, 8388609, -inf, inf, 1, -3]


def test_outside_of_the_domain():
    assert np.isnan(mx.nd.sqrt(mx.nd.array([-1])).asscalar())
    assert np.isnan(mx.nd.gamma(mx.nd.array([-2])).asscalar())
    assert mx.nd.gamma(mx.nd.array([0, 35.5])).asnumpy().tolist() == [inf, inf]
    assert mx.nd.log(mx.nd.array([0])).asscalar() == -inf


def test_second_derivative():
    x = mx.nd.array([0.5, 8])
    x.attach_grad()
    with mx.autograd.record():
        first, = mx.autograd.grad(mx.nd.cbrt(x), [x], create_graph=True)
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), -2 / 9 * np.array([0.5, 8]) ** (-5 / 3), rtol=1e-4)


def test_sparse_and_numpy_names():
    assert mx.nd.sparse.sqrt(mx.nd.array([4])).asscalar() == 2
    assert mx.nd._internal._npx_erf(mx.nd.array([0])).asscalar() == 0


def test_names_in_json():
    x = mx.sym.Variable("x")
    for make, name in [(mx.sym.identity, "_copy"), (mx.sym.stop_gradient, "BlockGrad"), (mx.sym.relu, "relu"), (mx.sym.gammaln, "gammaln")]:
        assert f'"op": "{name}"' in make(x).tojson()
    assert '"op": "Cast"' in mx.sym.cast(x, dtype="float16").tojson()


def test_identity_is_a_copy():
    x = mx.nd.ones((2,))
    for make in (mx.nd.identity, mx.nd.BlockGrad, mx.nd.make_loss):
        y = make(x)
        y[:] = 5
        assert x.asnumpy().tolist() == [1, 1]


def test_block_grad():
    x = mx.nd.array([3, 4])
    x.attach_grad()
    with mx.autograd.record():
        y = x * mx.nd.stop_gradient(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [3, 4]


def test_make_loss_ignores_what_arrives():
    x = mx.nd.array([3, 4])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.make_loss(x * 2)
    y.backward(mx.nd.array([10, 20]))
    assert x.grad.asnumpy().tolist() == [2, 2]


def test_like():
    x = mx.nd.array([[1, 2]], dtype="int32")
    assert mx.nd.zeros_like(x).asnumpy().tolist() == [[0, 0]]
    ones = mx.nd.ones_like(x)
    assert ones.asnumpy().tolist() == [[1, 1]] and ones.dtype == np.int32


def test_identity_with_attr_like_rhs():
    x, y = mx.nd.array([1, 2]), mx.nd.zeros((2,))
    assert mx.nd._internal._identity_with_attr_like_rhs(x, y).asnumpy().tolist() == [1, 2]
    s = mx.sym._internal._identity_with_attr_like_rhs(mx.sym.Variable("a"), mx.sym.Variable("b"))
    assert s.infer_shape(b=(3, 4))[0] == [(3, 4), (3, 4)]


class TestCast:
    def test_values(self):
        x = mx.nd.array([-1.5, 300, 0.9])
        assert mx.nd.Cast(x, dtype="uint8").asnumpy().tolist() == [255, 44, 0]
        assert mx.nd.cast(x, dtype="bool").asnumpy().tolist() == [True, True, True]
        assert mx.nd.cast(x, dtype=np.float64).dtype == np.float64

    def test_is_a_copy(self):
        x = mx.nd.ones((2,))
        mx.nd.cast(x, dtype="float32")[:] = 7
        assert x.asnumpy().tolist() == [1, 1]

    def test_gradient_returns_in_the_old_type(self):
        x = mx.nd.array([1, 2])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.cast(x, dtype="float16") * 3
        y.backward()
        assert x.grad.dtype == np.float32 and x.grad.asnumpy().tolist() == [3, 3]

    def test_type_inference(self):
        types = mx.sym.Cast(mx.sym.Variable("x"), dtype="int8").infer_type(x="float64")
        assert types[0] == [np.float64] and types[1] == [np.int8]

    def test_unknown_type(self):
        with pytest.raises(MXNetError, match="`dtype` must be the name of a data type, received 'float7'"):
            mx.nd.Cast(mx.nd.ones((1,)), dtype="float7")


class TestMixedPrecision:
    def test_amp_cast(self):
        assert mx.nd.amp_cast(mx.nd.ones((2,)), dtype="float16").dtype == np.float16
        assert mx.nd.amp_cast(mx.nd.ones((2,), dtype="int32"), dtype="float16").dtype == np.int32

    def test_amp_multicast(self):
        single, half, integer = mx.nd.ones((2,)), mx.nd.ones((3,), dtype="float16"), mx.nd.ones((1,), dtype="int32")
        assert [o.dtype for o in mx.nd.amp_multicast(single, half, integer, num_outputs=3)] == [np.float32, np.float32, np.int32]
        assert [o.dtype for o in mx.nd.amp_multicast(single, half, num_outputs=2, cast_narrow=True)] == [np.float16, np.float16]

    def test_amp_multicast_wrong_count(self):
        with pytest.raises(MXNetError, match="`num_outputs` must be the number of inputs, 2; received 3"):
            mx.nd.amp_multicast(mx.nd.ones((2,)), mx.nd.ones((2,)), num_outputs=3)


class TestClip:
    def test_borders_let_the_gradient_through(self):
        x = mx.nd.array([-1, 0, 0.5, 1, 2])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.clip(x, 0, 1)
        y.backward()
        assert y.asnumpy().tolist() == [0, 0, 0.5, 1, 1]
        assert x.grad.asnumpy().tolist() == [0, 1, 1, 1, 0]

    def test_integers(self):
        y = mx.nd.clip(mx.nd.array([1, 2, 3, 200], dtype="uint8"), -5.0, 2.5)
        assert y.dtype == np.uint8 and y.asnumpy().tolist() == [1, 2, 2, 2]

    def test_missing_border(self):
        with pytest.raises(MXNetError, match="required argument `a_max`"):
            mx.nd.clip(mx.nd.ones((1,)), a_min=0)


def test_smooth_l1():
    x = mx.nd.array([-2, -0.2, 0, 0.25, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.smooth_l1(x, scalar=2)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), [1.875, 0.08, 0, 0.125, 2.875], rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), [-1, -0.8, 0, 1, 1], rtol=1e-5)
    assert mx.nd.smooth_l1(mx.nd.array([-3, 1], dtype="int32")).asnumpy().tolist() == [2, 0]
    assert mx.nd.smooth_l1(x, scalar=0).asnumpy().tolist() == [0, 0, 0, 0, 0]


def test_shapes_go_backwards():
    x = mx.sym.Variable("x")
    y = mx.sym.exp(x) + mx.sym.Variable("y")
    assert y.infer_shape(y=(2, 3))[0] == [(2, 3), (2, 3)]


def test_the_gradient_of_gamma_functions_at_their_poles():
    for name, expected in (("gamma", [np.inf, -np.inf, np.nan]), ("gammaln", [np.inf, np.inf, np.inf])):
        x = mx.nd.array([0., -0., -1.])
        x.attach_grad()
        with mx.autograd.record():
            y = getattr(mx.nd, name)(x)
        y.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), np.array(expected, "float32"))


def test_clip_with_crossed_borders_asks_for_the_upper_one_first():
    x = mx.nd.array([-2, 0, 0.5, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.clip(x, 2, 1)
    y.backward()
    assert y.asnumpy().tolist() == [2, 2, 2, 1]
    assert x.grad.asnumpy().tolist() == [0, 0, 0, 0]
    whole = mx.nd.clip(mx.nd.array([-2, 0, 1, 3], dtype="int32"), 2, 1)
    assert whole.dtype == np.int32 and whole.asnumpy().tolist() == [2, 2, 2, 1]


def test_identity_like_refuses_another_shape():
    with pytest.raises(MXNetError, match="both inputs must have one shape, received \\(2, 3\\) and \\(3,\\)"):
        mx.nd._internal._identity_with_attr_like_rhs(mx.nd.ones((2, 3)), mx.nd.ones((3,)))


def test_digamma_and_its_derivative():
    x = mx.nd.array([1, 5, 0.5])
    x.attach_grad()
    with mx.autograd.record():
        out = mx.nd.digamma(x)
    out.backward()
    np.testing.assert_allclose(out.asnumpy(), [-0.5772157, 1.5061177, -1.9635100], rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), [1.6449341, 0.2213230, 4.9348022], rtol=1e-5)
