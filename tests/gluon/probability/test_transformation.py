import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import probability as mgp

X = np.array([0.3, 1.2])
CASES = [(mgp.ExpTransform(), np.exp), (mgp.SigmoidTransform(), lambda x: 1 / (1 + np.exp(-x))), (mgp.PowerTransform(-1.5), lambda x: x ** -1.5),
         (mgp.AffineTransform(1.0, -2.0), lambda x: 1 - 2 * x),
         (mgp.ComposeTransform([mgp.AffineTransform(1.0, 2.0), mgp.ExpTransform()]), lambda x: np.exp(1 + 2 * x))]


@pytest.mark.parametrize("transform, function", CASES, ids=lambda v: repr(v)[:12])
def test_values_inverses_and_derivatives(transform, function):
    x = mx.np.array(X, dtype="float32")
    y = transform(x)
    np.testing.assert_allclose(y.asnumpy(), function(X), rtol=1e-5)
    np.testing.assert_allclose(transform.inv(y).asnumpy(), X, rtol=1e-4)
    slope = (function(X + 1e-6) - function(X - 1e-6)) / 2e-6
    np.testing.assert_allclose(transform.log_det_jacobian(x, y).asnumpy(), np.log(np.abs(slope)), rtol=1e-3)
    np.testing.assert_allclose(transform.inv.log_det_jacobian(y, x).asnumpy(), -np.log(np.abs(slope)), rtol=1e-3)
    assert float(transform.sign) == np.sign(slope[0]) and transform.bijective and transform.inv.bijective
    if not isinstance(transform, mgp.ComposeTransform):
        assert transform.inv.inv is transform and repr(transform.inv).endswith("Transform().inv")


def test_those_without_an_inverse_of_their_own():
    x = mx.np.array([-1.0, 2.0])
    assert mgp.AbsTransform()(x).asnumpy().tolist() == [1, 2]
    shares = mgp.SoftmaxTransform()(x)
    np.testing.assert_allclose(mgp.SoftmaxTransform()(mgp.SoftmaxTransform().inv(shares)).asnumpy(), shares.asnumpy(), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="neither rises nor falls"):
        mgp.AbsTransform().sign
    with pytest.raises(NotImplementedError, match="AbsTransform has no log_det_jacobian"):
        mgp.AbsTransform().log_det_jacobian(x, x)


def test_transformations_for_constraints():
    x = mx.np.array([-3.0, 0.0, 4.0])
    for wanted in (mgp.constraint.real, mgp.constraint.positive, mgp.constraint.unit_interval):
        wanted.check(mgp.biject_to(wanted)(x))
        wanted.check(mgp.transform_to(wanted)(x))
    mgp.constraint.simplex.check(mgp.transform_to(mgp.constraint.simplex)(x))
    with pytest.raises(NotImplementedError, match="no transformation is registered for <0 or 1>"):
        mgp.biject_to(mgp.constraint.boolean)
    own = mgp.domain_map()
    own.register(mgp.constraint.boolean)(lambda wanted: mgp.AbsTransform())
    assert isinstance(own(mgp.constraint.boolean), mgp.AbsTransform)


def test_a_layer_of_a_flow_learns():
    class Stretch(mgp.TransformBlock):
        bijective = True

        def __init__(self):
            super().__init__()
            self.scale = mx.gluon.Parameter(shape=(1,), init="ones")

        def _forward_compute(self, x):
            return x * self.scale.data()

        def _inverse_compute(self, y):
            return y / self.scale.data()

        def log_det_jacobian(self, x, y):
            return mx.np.log(mx.np.abs(self.scale.data())) + 0 * x

    layer = Stretch()
    layer.initialize()
    trainer = mx.gluon.Trainer(layer.collect_params(), "adam", {"learning_rate": 0.1})
    data = mx.np.random.normal(0, 3, size=(500,))
    for _ in range(60):
        with mx.autograd.record():
            loss = -mgp.TransformedDistribution(mgp.Normal(0, 1), layer).log_prob(data).mean()
        loss.backward()
        trainer.step(1)
    assert abs(float(layer.scale.data()) - 3) < 0.3 and layer(mx.np.ones(1)) == layer.scale.data()
