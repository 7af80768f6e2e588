"""NumPy operators that draw random numbers."""
import pytest

import mxnet as mx
from mxnet import np
from mxnet.ndarray import dispatch
from mxnet.ops import registry


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_shape(True), mx.util.np_array(True):
        yield


def draw(*arrays, **attributes):
    return set(dispatch.invoke(registry.get("_npi_bernoulli"), list(arrays), {"size": "(50,)", **{k: str(v) for k, v in attributes.items()}},
                               None, np.ndarray).asnumpy().tolist())


def test_bernoulli_takes_the_number_that_is_given_whatever_is_logit_says():
    assert draw(prob=1.0, logit=None, is_logit=True) == {1.0}
    assert draw(prob=0.0, logit=None, is_logit=True) == {0.0}
    assert draw(prob=None, logit=-50.0, is_logit=False) == {0.0}
    assert draw(prob=None, logit=50.0, is_logit=False) == {1.0}
    assert draw(np.array([50.0]), prob=None, logit=None, is_logit=True) == {1.0}
    with pytest.raises(ValueError, match="`prob` must be at least 0 and at most 1, received 2"):
        draw(prob=2.0, logit=0.0, is_logit=True)
