"""NaN shows in the results of operators that compare numbers, where MXNet drops it or sorts around it (docs/differences.md)."""
import numpy as np
import pytest

import mxnet as mx

NAN = float("nan")
ROWS = [[2, NAN, 3, 1], [NAN, 1, NAN, 0]]
RESULTS = {
    "maximum of a window": (lambda x: mx.nd.Pooling(x.reshape((1, 1, 2, 4)), kernel=(2, 2), stride=(2, 2)), [[NAN, NAN]]),
    "maximum of a window of numbers": (lambda x: mx.nd.Pooling(x.reshape((1, 1, 2, 4)), kernel=(1, 1), stride=(1, 2)), [[2, 3], [NAN, NAN]]),
    "maximum of an image": (lambda x: mx.nd.Pooling(x.reshape((2, 1, 1, 4)), global_pool=True), [NAN, NAN]),
    "maximum of a region": (lambda x: mx.nd.ROIPooling(x.reshape((1, 1, 2, 4)), mx.nd.array([[0, 0, 0, 3, 1]]), pooled_size=(1, 1), spatial_scale=1),
                            [NAN]),
    "relu": (lambda x: mx.nd.Activation(x, act_type="relu"), ROWS),
    "softmax": (mx.nd.softmax, [[NAN] * 4, [NAN] * 4]),
    "sort": (mx.nd.sort, [[1, 2, 3, NAN], [0, 1, NAN, NAN]]),
    "sort, largest first": (lambda x: mx.nd.sort(x, is_ascend=False), [[NAN, 3, 2, 1], [NAN, NAN, 1, 0]]),
    "argsort": (mx.nd.argsort, [[3, 0, 2, 1], [3, 1, 0, 2]]),
    "topk": (lambda x: mx.nd.topk(x, k=2, ret_typ="value"), [[NAN, 3], [NAN, NAN]]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_nan_shows(name):
    function, expected = RESULTS[name]
    np.testing.assert_array_equal(np.squeeze(function(mx.nd.array(ROWS)).asnumpy()), np.squeeze(expected))
