import numpy as np
import pytest

import mxnet as mx
from mxnet import nd


class Scale(mx.operator.CustomOp):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * self.factor)
        aux[0][:] += 1
        self.was_recording = mx.autograd.is_recording()

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor)


@mx.operator.register("test_scale")
class ScaleProp(mx.operator.CustomOpProp):
    def __init__(self, factor="2"):
        super().__init__()
        self.factor = float(factor)

    def list_arguments(self):
        return ["x"]

    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Scale(self.factor)


def test_imperative_with_gradient_and_auxiliary_state():
    x, count = nd.array([1, 2]), nd.zeros((1,))
    x.attach_grad()
    with mx.autograd.record():
        y = nd.Custom(x=x, count=count, op_type="test_scale", factor=5)
    y.backward()
    assert y.asnumpy().tolist() == [5, 10]
    assert x.grad.asnumpy().tolist() == [5, 5]
    assert count.asscalar() == 1


def test_symbolic():
    net = mx.sym.Custom(mx.sym.var("data"), op_type="test_scale", name="scale", factor=3)
    assert (net.list_arguments(), net.list_auxiliary_states()) == (["data"], ["scale_count"])
    assert net.infer_shape(data=(4,))[1] == [(4,)]
    again = mx.sym.load_json(net.tojson())
    assert again.attr("factor") == "3"
    exe = again.simple_bind(mx.cpu(), data=(2,))
    exe.forward(is_train=True, data=nd.array([1, 2]))
    exe.backward(nd.ones((2,)))
    assert exe.outputs[0].asnumpy().tolist() == [3, 6]
    assert exe.grad_dict["data"].asnumpy().tolist() == [3, 3]


def test_errors():
    x = nd.ones((2,))
    with pytest.raises(mx.MXNetError, match="no operator is registered as 'nothing'"):
        nd.Custom(x, op_type="nothing")
    with pytest.raises(mx.MXNetError, match="`op_type`.* is missing"):
        nd.Custom(x)
    with pytest.raises(mx.MXNetError, match="ScaleProp cannot be made from"):
        nd.Custom(x, op_type="test_scale", wrong=1)
    with pytest.raises(mx.MXNetError, match=r"expects 2 inputs \(x, count\), received 1"):
        nd.Custom(x, op_type="test_scale")
    with pytest.raises(TypeError, match="decorates a subclass of CustomOpProp"):
        mx.operator.register("x")(int)


class NumpySoftmax(mx.operator.NumpyOp):
    """The output layer of MXNet's old example."""

    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]]

    def forward(self, in_data, out_data):
        e = np.exp(in_data[0] - in_data[0].max(1, keepdims=True))
        out_data[0][:] = e / e.sum(1, keepdims=True)

    def backward(self, out_grad, in_data, out_data, in_grad):
        assert out_grad == []
        in_grad[0][:] = out_data[0]
        in_grad[0][np.arange(len(in_data[1])), in_data[1].astype(int)] -= 1


class Square(mx.operator.NDArrayOp):
    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] * in_data[0]

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = 2 * in_data[0] * out_grad[0]


def test_numpy_op():
    with pytest.warns(UserWarning, match="deprecated. Please use CustomOp"):
        net = NumpySoftmax()(data=mx.sym.var("x"), name="sm")
    assert (net.list_arguments(), net.list_outputs()) == (["x", "sm_label"], ["sm_output"])
    exe = net.simple_bind(mx.cpu(), x=(2, 3))
    out = exe.forward(is_train=True, x=nd.array([[1, 2, 3], [0, 0, 0]]), sm_label=nd.array([0, 2]))[0]
    np.testing.assert_allclose(out.asnumpy()[0], [0.09003057, 0.24472846, 0.66524094], rtol=1e-6)
    exe.backward()
    np.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), [[-0.90996945, 0.24472846, 0.66524094], [1 / 3, 1 / 3, -2 / 3]], rtol=1e-6)


def test_ndarray_op():
    with pytest.warns(UserWarning):
        operator = Square()
    assert operator.declare_backward_dependency([1], [2], [3]) == [1, 2, 3]
    exe = (3 * operator(mx.sym.var("x"))).simple_bind(mx.cpu(), x=(2,))
    assert exe.forward(is_train=True, x=nd.array([3, 4]))[0].asnumpy().tolist() == [27, 48]
    exe.backward(nd.ones((2,)))
    assert exe.grad_dict["x"].asnumpy().tolist() == [18, 24]


def test_python_op_alone_is_no_symbol():
    with pytest.warns(UserWarning), pytest.raises(NotImplementedError, match="must be a NumpyOp or an NDArrayOp"):
        mx.operator.PythonOp()(mx.sym.var("x"))


def test_arguments_are_described_in_mxnets_words():
    found = mx.operator.get_operator_arguments("Activation")
    assert found.types == ["NDArray-or-Symbol", "{'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'}, required"]
    types = dict(zip(*mx.operator.get_operator_arguments("Convolution")[1:]))
    assert types["kernel"] == "Shape(tuple), required" and types["no_bias"] == "boolean, optional, default=0"
    assert types["cudnn_tune"] == "{None, 'fastest', 'limited_workspace', 'off'},optional, default='None'"


def test_arrays_are_of_the_kind_that_was_on_at_registration():
    kinds = []

    class Kind(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            kinds.append((type(in_data[0]), type(out_data[0])))
            self.assign(out_data[0], req[0], in_data[0])

    def prop():
        class KindProp(mx.operator.CustomOpProp):
            def create_operator(self, ctx, in_shapes, in_dtypes):
                return Kind()
        return KindProp

    with mx.np_array(True):
        mx.operator.register("kind_of_numpy")(prop())
    mx.operator.register("kind_of_nd")(prop())
    for name in ("kind_of_numpy", "kind_of_nd"):
        mx.nd.Custom(mx.nd.ones(2), op_type=name)
    assert kinds == [(mx.np.ndarray,) * 2, (mx.nd.NDArray,) * 2]


@pytest.mark.parametrize("how", ["imperative", "executor", "hybrid"])
def test_backward_may_write_to_the_gradients_it_gets(how):
    class Clears(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            gradient = out_grad[0]
            gradient[:, 1] = 0
            self.assign(in_grad[0], req[0], gradient)

    @mx.operator.register("test_clears")
    class ClearsProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Clears()

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.sum(F.Custom(x, op_type="test_clears"))

    data = nd.array([[1, 2], [3, 4]])
    if how == "executor":
        exe = mx.sym.sum(mx.sym.Custom(mx.sym.var("x"), op_type="test_clears")).bind(mx.cpu(), {"x": data}, args_grad={"x": nd.zeros((2, 2))})
        exe.forward(is_train=True)
        exe.backward(nd.ones((1,)))
        assert exe.grad_dict["x"].asnumpy().tolist() == [[1, 0], [1, 0]]
        return
    net = Net()
    if how == "hybrid":
        net.hybridize()
    data.attach_grad()
    with mx.autograd.record():
        y = net(data)
    y.backward()
    assert data.grad.asnumpy().tolist() == [[1, 0], [1, 0]]


@mx.operator.register("test_scaled_by_a_column")
class ScaledByAColumnProp(mx.operator.CustomOpProp):
    """The product of `data` and a column of `scale`; its shape rule indexes the shapes of both inputs."""

    def __init__(self):
        super().__init__(need_top_grad=True)

    def list_arguments(self):
        return ["data", "scale"]

    def infer_shape(self, in_shape):
        if in_shape[0][0] != in_shape[1][0] or in_shape[1][1] != 2:
            raise ValueError("rows differ")
        return in_shape, [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return ScaledByAColumn()


class ScaledByAColumn(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[1][:, 1:])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * in_data[1][:, 1:])


@pytest.mark.parametrize("scale, expected", [
    (mx.sym.zeros((3, 2)), 0), (mx.sym.ones((3, 2)) * 2, 2), (mx.sym.tile(mx.sym.var("s"), reps=(1, 2)), 1)], ids=["zeros", "ones", "tile"])
def test_a_shape_rule_of_a_program_may_index_the_shapes_of_all_inputs(scale, expected):
    net = mx.sym.Custom(data=mx.sym.relu(mx.sym.var("x")), scale=scale, op_type="test_scaled_by_a_column")
    shapes = {"x": (3, 4)} | {name: (3, 1) for name in scale.list_arguments()}
    exe = net.simple_bind(mx.cpu(), **shapes)
    exe.copy_params_from({name: nd.ones(shape) for name, shape in shapes.items()})
    assert exe.forward(is_train=True)[0].asnumpy().tolist() == [[expected] * 4] * 3
    exe.backward(nd.ones((3, 4)))
    assert exe.grad_dict["x"].asnumpy().tolist() == [[expected] * 4] * 3


class OtherNames(mx.operator.CustomOp):
    """Arguments come by name, so `x` is unknown."""

    def forward(self, is_train, req, x, out_data, aux):
        pass


class FailsInBackward(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        raise KeyError("nothing of that name")


@pytest.mark.parametrize("operator, text", [
    (OtherNames, r"^Custom: OtherNames fails with TypeError: .*unexpected keyword argument 'in_data' \[inputs: input 0: float32\(2,\); attributes: "
                 r"op_type=test_failing\]$"),
    (FailsInBackward, "FailsInBackward fails with KeyError: 'nothing of that name'")])
def test_errors_of_the_programs_own_code_name_its_class_and_their_kind(operator, text):
    @mx.operator.register("test_failing")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return operator()
    x = nd.ones(2)
    x.attach_grad()
    with pytest.raises(mx.base.MXNetError, match=text), mx.autograd.record():
        nd.Custom(x, op_type="test_failing").backward()
