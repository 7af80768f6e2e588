"""Split layers as blocks; what they compute is in `test_sharded_softmax` and `test_sharded_lookup`."""
import numpy as np
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
    for sampled in 0, 1.5, "a", None:
        with pytest.raises(UsageError, match=f"sampled is a fraction above 0 and at most 1, received {sampled!r}"):
            nn.ShardedDense(4, sampled=sampled)
    for options, text in (({"units": 0}, "units is a whole number from 1 on, received 0"),
                          ({"units": "a"}, "units is a whole number from 1 on, received 'a'"),
                          ({"in_units": -3}, "in_units is a whole number from -1 on, received -3"),
                          ({"dtype": "int32"}, "dtype is float16, bfloat16, float32 or float64, received 'int32'")):
        with pytest.raises(UsageError, match=f"ShardedDense: {text}"):
            nn.ShardedDense(**{"units": 4, **options})
    for arguments, text in (((0, 3), "input_dim is a whole number from 1 on, received 0"),
                            ((3, "a"), "output_dim is a whole number from 1 on, received 'a'"),
                            ((3, 3, "floats"), "dtype is a type of arrays, received 'floats'")):
        with pytest.raises(UsageError, match=f"ShardedEmbedding: {text}"):
            nn.ShardedEmbedding(*arguments)
    assert repr(nn.ShardedDense(np.int64(4), in_units=np.int32(2))) == "ShardedDense(2 -> 4, split by units)"


def test_features_are_arrays_of_the_layers_type():
    layer = nn.ShardedDense(4, in_units=3, prefix="head_")
    layer.initialize()
    for dtype in "float64", "int32":
        text = f"head: dense features of the layer's type float32 expected, received {dtype}; convert them with astype"
        with pytest.raises(UsageError, match=text):
            layer(mx.nd.ones((2, 3), dtype=dtype))
    with pytest.raises(UsageError, match=r"received csr ones of type float32; convert them with tostype\('default'\)"):
        layer(mx.nd.ones((2, 3)).tostype("csr"))
    for x in np.ones((2, 3)), [], [np.ones((2, 3))], None:
        with pytest.raises(UsageError, match="head: an NDArray expected, or a list of them for parts of the batch on several contexts, received"):
            layer(x)
    with pytest.raises(UsageError, match=r"features of shape \(batch, 2\) expected, received \(1, 3\)"):
        nn.ShardedDense(4)([mx.nd.ones((1, 2)), mx.nd.ones((1, 3))])


def test_hybrid_blocks_say_where_split_layers_belong():
    inner = nn.Sequential()
    inner.add(nn.ShardedDense(4))
    for block in inner, nn.ShardedEmbedding(3, 2), mx.gluon.loss.ShardedSoftmaxCELoss():
        with pytest.raises(ValueError, match="split layers and their loss are no parts of graphs: put them into a Sequential or another Block"):
            nn.HybridSequential().add(block)
    with pytest.raises(ValueError, match="in place of Sequential take HybridSequential"):
        nn.HybridSequential().add(nn.Sequential())
