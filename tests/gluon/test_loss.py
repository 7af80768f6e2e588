"""Losses: values and gradients are those of MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import loss as losses

PRED = [[0.5, -1., 2.], [1.5, 0.25, -0.75]]
LABEL = [[1., 0., 0.5], [0., 1., 0.25]]
SIGN = [[1., -1., 1.], [-1., 1., -1.]]
WEIGHT = [[2.], [0.5]]

CASES = [
    ("L1Loss", {}, (LABEL,), [1.0, 1.083333], [[-0.333333, -0.333333, 0.333333], [0.333333, -0.333333, -0.333333]]),
    ("L2Loss", {}, (LABEL,), [0.583333, 0.635417], [[-0.166667, -0.333333, 0.5], [0.5, -0.25, -0.333333]]),
    ("L2Loss", {"weight": 2}, (LABEL, WEIGHT), [2.333333, 0.635417], [[-0.666667, -1.333333, 2.0], [0.5, -0.25, -0.333333]]),
    ("SigmoidBinaryCrossEntropyLoss", {}, (LABEL,), [0.638089, 0.950575],
     [[-0.125847, 0.089647, 0.126932], [0.272525, -0.145941, 0.023607]]),
    ("SigmoidBCELoss", {}, (LABEL, None, [[1, 2, 3]]), [0.680398, 1.332033],
     [[-0.125847, 0.089647, 0.087198], [0.272525, -0.291882, -0.089589]]),
    ("SoftmaxCrossEntropyLoss", {}, ([2, 0],), [0.241314, 0.330675], [[0.17529, 0.039112, -0.214405], [-0.281562, 0.205836, 0.075723]]),
    ("SoftmaxCELoss", {"sparse_label": False}, (LABEL,), [1.861971, 2.225844],
     [[-0.737065, 0.058669, 0.678392], [0.898048, -0.742705, -0.155346]]),
    ("SoftmaxCELoss", {"from_logits": True}, ([2, 0],), [-2.0, -1.5], [[0, 0, -1], [-1, 0, 0]]),
    ("KLDivLoss", {}, (LABEL,), [-1.846574, -0.409074], [[-1, 0, -0.5], [0, -1, -0.25]]),
    ("KLDivLoss", {"from_logits": False}, (LABEL,), [1.515398, 1.879271],
     [[-0.737065, 0.058669, 0.678392], [0.898048, -0.742705, -0.155346]]),
    ("HuberLoss", {}, (LABEL,), [0.541667, 0.59375], [[-0.166667, -0.333333, 0.333333], [0.333333, -0.25, -0.333333]]),
    ("HuberLoss", {"rho": 0.5}, (LABEL,), [0.75, 0.833333], [[-0.333333, -0.333333, 0.333333], [0.333333, -0.333333, -0.333333]]),
    ("HingeLoss", {}, (SIGN,), [0.166667, 1.166667], [[-0.333333, 0, 0], [0.333333, -0.333333, 0.333333]]),
    ("SquaredHingeLoss", {"margin": 2}, (SIGN,), [1.083333, 5.625], [[-1.0, 0.666667, 0], [2.333334, -1.166667, 0.833333]]),
    ("LogisticLoss", {}, (SIGN,), [0.304756, 0.888075], [[-0.125847, 0.089647, -0.039734], [0.272525, -0.145941, 0.10694]]),
    ("LogisticLoss", {"label_format": "binary"}, ([[1, 0, 1], [0, 1, 0]],), [0.304756, 0.888075],
     [[-0.125847, 0.089647, -0.039734], [0.272525, -0.145941, 0.10694]]),
    ("TripletLoss", {}, (LABEL, SIGN), [3.25, 0.0], [[0, -2, 1], [0, 0, 0]]),
    ("TripletLoss", {"weight": 0.5}, (LABEL, SIGN, [2, 0.5]), [3.25, 0.0], [[0, -2, 1], [0, 0, 0]]),
    ("PoissonNLLLoss", {}, (LABEL,), [2.346873], [[0.10812, 0.061313, 1.148176], [0.746948, 0.047338, 0.037061]]),
    ("CosineEmbeddingLoss", {"margin": 0.1}, (LABEL, [1, -1]), [[0.41446], [0.0]], [[-0.334594, -0.111531, 0.027884], [0, 0, 0]]),
]


def arrays(values):
    return [None if v is None else mx.nd.array(v) for v in values]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name,options,inputs,value,gradient", CASES)
def test_value_and_gradient(name, options, inputs, value, gradient, hybridize):
    loss = getattr(losses, name)(**options)
    if hybridize:
        loss.hybridize()
    pred = mx.nd.array(PRED)
    pred.attach_grad()
    with mx.autograd.record():
        out = loss(pred, *arrays(inputs))
    out.backward()
    np.testing.assert_allclose(out.asnumpy(), value, atol=2e-5)
    np.testing.assert_allclose(pred.grad.asnumpy(), gradient, atol=2e-5)


def test_sigmoid_bce_from_sigmoid_is_the_same():
    pred, label = mx.nd.array(PRED), mx.nd.array(LABEL)
    out = losses.SigmoidBCELoss(from_sigmoid=True)(pred.sigmoid(), label)
    np.testing.assert_allclose(out.asnumpy(), [0.638089, 0.950574], atol=2e-5)


def test_poisson_full():
    loss = losses.PoissonNLLLoss(from_logits=False, compute_full=True)
    pred = mx.nd.array(PRED).abs()
    pred.attach_grad()
    with mx.autograd.record():
        out = loss(pred, mx.nd.array([[1, 2, 3], [0.5, 4, 2]]))
    out.backward()
    np.testing.assert_allclose(out.asnumpy(), [2.7927454], rtol=1e-5)
    np.testing.assert_allclose(pred.grad[0].asnumpy(), (1 - np.array([1, 2, 3]) / np.array([0.5, 1, 2])) / 6, atol=1e-5)


def test_sdml():
    out = losses.SDMLLoss()(mx.nd.array(PRED), mx.nd.array(LABEL))
    np.testing.assert_allclose(out.asnumpy(), [0.554737, 0.879969], atol=2e-5)
    with pytest.raises(mx.MXNetError, match=r"one shape, received \(2, 3\) and \(1, 3\)"):
        losses.SDMLLoss()(mx.nd.ones((2, 3)), mx.nd.ones((1, 3)))


@pytest.mark.parametrize("hybridize", [False, True])
def test_ctc(hybridize):
    pred = mx.nd.sin(mx.nd.arange(40).reshape((2, 5, 4)) / 10 * 7)
    labels = mx.nd.array([[1, 0, 2], [2, 1, 1]])

    def loss(*args, **options):
        block = losses.CTCLoss(**options)
        if hybridize:
            block.hybridize()
        return block(*args).asnumpy()

    padded = mx.nd.array([[1, 0, -1], [2, 1, 1]])
    np.testing.assert_allclose(loss(pred, padded), [3.20079, 5.32592], atol=1e-4)
    np.testing.assert_allclose(loss(pred, labels, mx.nd.array([4, 5]), mx.nd.array([2, 1])), [2.7203, 4.69199], atol=1e-4)
    np.testing.assert_allclose(loss(pred, labels, None, mx.nd.array([2, 1])), [3.20079, 4.69199], atol=1e-4)
    np.testing.assert_allclose(loss(pred.swapaxes(0, 1), padded.T, layout="TNC", label_layout="TN"), [3.20079, 5.32592], atol=1e-4)


def test_errors():
    with pytest.raises(AssertionError, match="layout must be 'NTC' or 'TNC', received 'CTN'"):
        losses.CTCLoss(layout="CTN")
    with pytest.raises(AssertionError, match="label_layout must be 'NT' or 'TN', received 'N'"):
        losses.CTCLoss(label_layout="N")
    with pytest.raises(ValueError, match="label_format must be 'signed' or 'binary', received 'other'"):
        losses.LogisticLoss(label_format="other")
    with pytest.raises(mx.MXNetError, match="weight must be a number, received 'x'"):
        losses._apply_weighting(mx.nd, mx.nd.ones((1,)), weight="x")


def test_repr_and_batch_axis():
    assert repr(losses.L2Loss(batch_axis=1)) == "L2Loss(batch_axis=1, w=1.0)"
    out = losses.L1Loss(batch_axis=1)(mx.nd.array(PRED), mx.nd.zeros((2, 3)))
    np.testing.assert_allclose(out.asnumpy(), [1.0, 0.625, 1.375])


PAIRS = [[1.0, -2.0], [0.5, 3.0]], [[2.0, 1.0], [1.0, 2.0]]
LOSSES_OF_PAIRS = {"CosineEmbeddingLoss": (*PAIRS, [1.0, -1.0]), "SDMLLoss": PAIRS}


@pytest.mark.parametrize("scope", [False, True])
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name, expected", [("CosineEmbeddingLoss", [[1.0], [0.955779]]), ("SDMLLoss", [1.19161, 0.89585])])
def test_losses_of_pairs_take_arrays_of_numpy(name, expected, hybrid, scope):
    with mx.util.np_shape(scope), mx.util.np_array(scope):
        loss = getattr(losses, name)()
        if hybrid:
            loss.hybridize()
        inputs = [mx.np.array(a) for a in LOSSES_OF_PAIRS[name]]
        inputs[0].attach_grad()
        with mx.autograd.record():
            result = loss(*inputs)
        result.backward()
    legacy = [mx.nd.array(a) for a in LOSSES_OF_PAIRS[name]]
    legacy[0].attach_grad()
    with mx.autograd.record():
        total = getattr(losses, name)()(*legacy)
    total.backward()
    assert scope is False or type(result) is mx.np.ndarray
    np.testing.assert_allclose(result.asnumpy(), total.asnumpy(), atol=1e-6)
    np.testing.assert_allclose(result.asnumpy(), expected, atol=1e-5)
    np.testing.assert_allclose(inputs[0].grad.asnumpy(), legacy[0].grad.asnumpy(), atol=1e-6)
