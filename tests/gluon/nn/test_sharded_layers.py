"""Split layers as blocks; what they compute is in `test_sharded_softmax` and `test_sharded_lookup`."""
import pytest

import mxnet as mx
from mxnet.gluon.utils import UsageError

nn = mx.gluon.nn


def test_the_first_batch_settles_the_number_of_inputs():
    layer = nn.ShardedDense(4)
    layer.initialize(mx.init.One())
    assert repr(layer) == "ShardedDense(None -> 4, split by units)"
    assert layer(mx.nd.ones((2, 3, 2))).gather().asnumpy().tolist() == [[6] * 4] * 2
    assert repr(layer) == "ShardedDense(6 -> 4, split by units)"
    with pytest.raises(UsageError, match=r"features of shape \(batch, 6\) expected, received \(2, 5\)"):
        layer(mx.nd.ones((2, 5)))
    with pytest.raises(UsageError, match=r"features of shape \(batch, in_units\) expected, received \(2, 3, 2\)"):
        nn.ShardedDense(4, flatten=False)(mx.nd.ones((2, 3, 2)))
    assert repr(nn.ShardedEmbedding(5, 3)) == "ShardedEmbedding(5 -> 3, split by rows)"


def test_arguments():
    with pytest.raises(UsageError, match="cosines have no bias; pass use_bias=False with normalize=True"):
        nn.ShardedDense(4, normalize=True)
    for sampled in 0, 1.5:
        with pytest.raises(UsageError, match=f"sampled is a fraction above 0 and at most 1, received {sampled}"):
            nn.ShardedDense(4, sampled=sampled)
