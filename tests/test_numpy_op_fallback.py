import numpy as np
import pytest

import mxnet as mx
from mxnet import numpy_op_fallback


def test_an_operator_over_numpy_is_offered_in_both_places():
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.np.array(np.multiply(in_data[0].asnumpy(), 2)))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @numpy_op_fallback.register("twice_fallback")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Twice()

    with mx.np_shape(True), mx.np_array(True):
        x = mx.np.array([1, 2])
        assert mx.nd.np._internal.twice_fallback(x).asnumpy().tolist() == [2, 4]
        graph = mx.sym.np._internal.twice_fallback(mx.sym.var("x").as_np_ndarray())
        assert graph.list_arguments() == ["x"]
    with pytest.raises(ValueError, match="has an operator twice_fallback already"):
        numpy_op_fallback.register("twice_fallback")(TwiceProp)
    for module in (mx.nd.np._internal, mx.sym.np._internal):
        del module.twice_fallback
