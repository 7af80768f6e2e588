import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.ops import differentiation


def test_forward_and_backward_by_hand():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    grads = {"x": nd.zeros((2,)), "y": nd.zeros((2,))}
    exe = (x * y).bind(mx.cpu(), {"x": nd.array([1, 2]), "y": nd.array([3, 4])}, args_grad=grads)
    out, = exe.forward(is_train=True)
    exe.backward(nd.array([10, 100]))
    assert out.asnumpy().tolist() == [3, 8]
    assert grads["x"].asnumpy().tolist() == [30, 400]
    assert exe.grad_dict["y"].asnumpy().tolist() == [10, 200]


def test_backward_after_a_forward_for_inference():
    x = mx.sym.var("x")
    exe = (x * x).bind(mx.cpu(), [nd.array([3])], args_grad=[nd.zeros((1,))])
    exe.forward()
    exe.backward(nd.ones((1,)))
    assert exe.grad_arrays[0].asscalar() == 6


def test_grad_req():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    exe = (x + y).simple_bind(mx.cpu(), grad_req={"x": "add", "y": "null"}, x=(1,), y=(1,))
    for _ in range(2):
        exe.forward(is_train=True)
        exe.backward([nd.ones((1,))])
    assert exe.grad_dict["x"].asscalar() == 2
    assert exe.grad_dict["y"] is None
    with pytest.raises(ValueError, match="grad_req must be in"):
        x.simple_bind(mx.cpu(), grad_req="sum", x=(1,))


def test_only_losses_need_no_incoming_gradient():
    x = mx.sym.var("x")
    exe = (x * 2).simple_bind(mx.cpu(), x=(1,))
    exe.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="is not the output of a loss layer"):
        exe.backward()
    loss = mx.sym.MakeLoss(x * 2).simple_bind(mx.cpu(), x=(1,))
    loss.forward(is_train=True)
    loss.backward()
    assert loss.grad_dict["x"].asscalar() == 2


def test_outputs_are_the_same_arrays_at_every_forward():
    exe = (mx.sym.var("x") + 1).simple_bind(mx.cpu(), x=(2,))
    held = exe.outputs[0]
    exe.forward(x=nd.array([1, 2]))
    assert held.asnumpy().tolist() == [2, 3]
    assert exe.output_dict["_plusscalar0_output" if "_plusscalar0_output" in exe.output_dict else list(exe.output_dict)[0]] is held


def test_auxiliary_states_are_updated_in_training_only():
    net = mx.sym.BatchNorm(mx.sym.var("x"), name="bn", momentum=0.5, fix_gamma=True)
    exe = net.simple_bind(mx.cpu(), x=(4, 1))
    exe.arg_dict["bn_gamma"][:] = 1
    exe.aux_dict["bn_moving_var"][:] = 1
    data = nd.array([[1], [2], [3], [6]])
    exe.forward(is_train=False, x=data)
    assert exe.aux_dict["bn_moving_mean"].asscalar() == 0
    exe.forward(is_train=True, x=data)
    exe.backward(nd.ones((4, 1)))
    assert exe.aux_dict["bn_moving_mean"].asscalar() == 1.5  # 0.5 * 0 + 0.5 * mean
    assert exe.aux_dict["bn_moving_var"].asscalar() == 2.25  # 0.5 * 1 + 0.5 * biased variance


def test_reshape_shares_memory():
    x = mx.sym.var("x")
    exe = mx.sym.FullyConnected(x, num_hidden=4, name="fc").simple_bind(mx.cpu(), x=(5, 4), grad_req="null")
    exe.arg_dict["x"][:] = 1
    exe.arg_dict["fc_weight"][:] = 1
    small = exe.reshape(x=(3, 4))
    assert small.forward()[0].asnumpy().tolist() == np.full((3, 4), 4).tolist()
    small.arg_dict["x"][:] = 0
    assert exe.arg_dict["x"].asnumpy()[:3].sum() == 0
    with pytest.raises(ValueError, match="allow_up_sizing"):
        exe.reshape(x=(6, 4))
    assert exe.reshape(allow_up_sizing=True, x=(6, 4)).forward()[0].shape == (6, 4)


def test_monitors_see_every_output():
    x = mx.sym.var("x")
    exe = mx.sym.relu(x * 2, name="r").simple_bind(mx.cpu(), x=(2,))
    seen = {}
    exe.set_monitor_callback(lambda name, array: seen.update({name: array.asnumpy().tolist()}))
    exe.forward(x=nd.array([-1, 1]))
    assert seen["r_output"] == [0, 2] and len(seen) == 2
    exe.set_monitor_callback(lambda name, array: seen.update({name: array.asnumpy().tolist()}), monitor_all=True)
    exe.forward(x=nd.array([-1, 3]))
    assert seen["x"] == [-1, 3] and seen["r_input0"] == [-2, 6]


def test_failures_name_the_node():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    net = mx.sym.dot(a, b, name="product")
    exe = net.bind(mx.cpu(), {"a": nd.ones((2, 3)), "b": nd.ones((3, 2))})
    exe.arg_dict["b"]._data = nd.ones((4, 2))._data
    with pytest.raises(mx.MXNetError, match=r"Error in operator product \(dot\): .*\[lhs: \(2, 3\), rhs: \(4, 2\)\]"):
        exe.forward()


@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda s: s.bind(mx.cpu(), {}), ValueError, "key `x` is missing in `args`"),
    (lambda s: s.bind(mx.cpu(), []), ValueError, "args: 1 arrays expected"),
    (lambda s: s.bind("cpu", []), TypeError, "Context type error"),
    (lambda s: s.simple_bind(mx.cpu()), mx.MXNetError, r"Shapes cannot be decided for: x: \(\)"),
    (lambda s: s.simple_bind(mx.cpu(), x=(1,)).forward(y=nd.ones((1,))), TypeError, "Unknown argument y"),
    (lambda s: s.simple_bind(mx.cpu(), x=(1,)).forward(x=nd.ones((2,))), ValueError, "Shape not match"),
    (lambda s: s.simple_bind(mx.cpu(), x=(1,)).copy_params_from({"z": nd.ones((1,))}), ValueError, 'Find name "z"'),
])
def test_bad_calls(call, error, match):
    with pytest.raises(error, match=match):
        call(mx.sym.var("x") * 2)


def test_common_expressions_are_computed_once(monkeypatch):
    a, b = mx.sym.var("a"), mx.sym.var("b")
    net = (a + b) * (a + b)
    shapes = {"a": (2,), "b": (2,)}
    merged = net.simple_bind(mx.cpu(), **shapes)
    monkeypatch.setenv("MXNET_ELIMINATE_COMMON_EXPR", "0")
    plain = net.simple_bind(mx.cpu(), **shapes)
    assert len(plain.get_optimized_symbol().get_internals()) - len(merged.get_optimized_symbol().get_internals()) == 1
    values = {"a": nd.array([1, 2]), "b": nd.array([3, 4])}
    for exe in (merged, plain):
        assert exe.forward(is_train=True, **values)[0].asnumpy().tolist() == [16, 36]
        exe.backward(nd.ones((2,)))
        assert exe.grad_dict["a"].asnumpy().tolist() == [8, 12]


def test_unknown_backends_are_named(monkeypatch):
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "warp")
    with pytest.raises(mx.MXNetError, match="no backend is called 'warp'; there are inductor, kernels, native, openvino, tensorrt, auto, and MKLDNN"):
        (mx.sym.var("x") * 2).simple_bind(mx.cpu(), x=(1,))


def test_model_parallel_groups_run():
    with mx.AttrScope(ctx_group="a"):
        x = mx.sym.var("x") * 2
    with mx.AttrScope(ctx_group="b"):
        y = x + 1
    exe = y.simple_bind(mx.cpu(), group2ctx={"a": mx.cpu(1), "b": mx.cpu(2)}, x=(1,))
    assert exe.arg_dict["x"].context == mx.cpu(1)
    assert exe.forward(x=nd.array([3]))[0].asscalar() == 7


def test_a_monitor_of_everything_is_told_of_variables_where_they_are_read():
    told = []
    data = mx.sym.Variable("data")
    executor = mx.sym.concat(data, mx.sym.FullyConnected(data, num_hidden=2, name="fc"), dim=1, name="both").simple_bind(mx.cpu(), data=(1, 3))
    executor.set_monitor_callback(lambda name, array: told.append(mx.base.py_str(name)), monitor_all=True)
    executor.forward()
    assert told == ["data", "fc_data", "fc_weight", "fc_weight", "fc_bias", "fc_bias", "fc_output",
                    "data", "both_arg0", "both_arg1", "both_output"]


def test_integers_that_are_converted_first_get_a_gradient():
    exe = mx.sym.Cast(mx.sym.var("x"), dtype="float32").bind(
        mx.cpu(), {"x": nd.array([5, 6, 7], dtype="int32")}, {"x": nd.zeros(3, dtype="int32")})
    exe.forward(is_train=True)
    exe.backward(nd.array([1, -2.9, 3]))
    assert exe.grad_arrays[0].asnumpy().tolist() == [1, -2, 3]


_SOFTMAX_GRADIENT = [[-0.967941, 0.087144, 0.236883, 0.643914], [0.534447, -0.803388, 0.072330, 0.196612]]


@pytest.mark.parametrize("made", [
    lambda s, x: mx.sym.reshape(s, shape=(-1, 2, 2)), lambda s, x: s * 2, lambda s, x: mx.sym.concat(s, s, dim=0), lambda s, x: mx.sym.sum(s),
    lambda s, x: mx.sym.BlockGrad(s), lambda s, x: mx.sym.argmax(s, axis=1), lambda s, x: s > 0.5, lambda s, x: mx.sym.zeros_like(s),
    lambda s, x: mx.sym.Group([mx.sym.BlockGrad(x), s * 2]), lambda s, x: mx.sym.Group([s, mx.sym.BlockGrad(s)])])
def test_what_is_made_of_losses_alone_needs_no_incoming_gradient(made):
    x = mx.sym.var("x")
    exe = made(mx.sym.SoftmaxOutput(x, name="softmax"), x).simple_bind(mx.cpu(), x=(2, 4), softmax_label=(2,))
    outputs = exe.forward(is_train=True, x=nd.array([[1, 2, 3, 4], [2, 1, 0, 1]]), softmax_label=nd.array([0, 1]))
    exe.backward()
    assert len(outputs) == len(exe.outputs) == len(exe.output_dict)
    np.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), _SOFTMAX_GRADIENT, atol=1e-5)


def test_a_loss_beside_an_argument_needs_the_gradient():
    x = mx.sym.var("x")
    exe = (mx.sym.SoftmaxOutput(x, name="softmax") + x).simple_bind(mx.cpu(), x=(2, 4), softmax_label=(2,))
    exe.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="is not the output of a loss layer"):
        exe.backward()


def test_hidden_losses_add_to_the_others():
    x = mx.sym.var("x")
    out = mx.sym.Group([mx.sym.argmax(mx.sym.SoftmaxOutput(x, name="softmax"), axis=1), mx.sym.MakeLoss(mx.sym.sum(x))])
    exe = out.simple_bind(mx.cpu(), x=(2, 4), softmax_label=(2,))
    exe.forward(is_train=True, x=nd.array([[1, 2, 3, 4], [2, 1, 0, 1]]), softmax_label=nd.array([0, 1]))
    exe.backward()
    np.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), np.array(_SOFTMAX_GRADIENT) + 1, atol=1e-5)


def test_what_programs_read_of_an_executor():
    executor = (mx.sym.var("a") + 1).simple_bind(mx.cpu(), a=(2,))
    executor.forward()
    assert executor._get_outputs() is executor.outputs and executor._output_dict == executor.output_dict
    assert executor._optimized_symbol.list_arguments() == ["a"] and executor._get_dict(["a", "b"], [1, 2]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="Duplicate names"):
        executor._get_dict(["a", "a"], [1, 2])


def test_errors_of_values_come_with_the_outputs():
    exe = mx.sym.take(mx.sym.var("x") * 2, mx.sym.var("i"), mode="raise").simple_bind(mx.cpu(), x=(3,), i=(2,))
    for training in (False, True):
        output, = exe.forward(is_train=training, x=nd.array([4, 5, 6]), i=nd.array([0, 7]))
        assert output.shape == (2,)
        with pytest.raises(mx.MXNetError, match=r"Error in operator take.*indices out of bound: expected \[0, 3\), received values from 0 to 7"):
            exe.outputs[0].asnumpy()
        assert exe.forward(is_train=training, i=nd.array([0, 2]))[0].asnumpy().tolist() == [8, 12]
    nd.waitall()


def test_weights_of_convolutions_keep_their_channels_last_while_they_train():
    network = mx.sym.MakeLoss(mx.sym.Convolution(mx.sym.var("data"), num_filter=16, kernel=(3, 3), name="conv"))
    executor = network.simple_bind(mx.cpu(), data=(1, 16, 5, 5))
    executor.arg_dict["conv_weight"][:] = 0.5
    for _ in range(2):  # the first step finds out what is fastest
        executor.forward(is_train=True, data=nd.ones((1, 16, 5, 5)))
        executor.backward()
    assert executor.arg_dict["conv_weight"]._data.is_contiguous(memory_format=torch.channels_last)
    assert executor.outputs[0].shape == (1, 16, 3, 3) and (executor.outputs[0] == 72).asnumpy().all()
    assert (executor.grad_dict["conv_weight"] == 9).asnumpy().all()


def test_gradients_share_no_memory_with_head_gradients_or_each_other():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    exe = mx.sym.reshape(a, shape=(-1,)).bind(mx.cpu(), {"a": nd.ones((2, 2))}, args_grad={"a": nd.zeros((2, 2))})
    exe.forward(is_train=True)
    head = nd.ones((4,))
    exe.backward(head)
    head[:] = 7
    assert exe.grad_dict["a"].asnumpy().tolist() == [[1, 1], [1, 1]]
    both = mx.sym.MakeLoss(mx.sym.square(mx.sym.expand_dims(a, axis=0) + mx.sym.expand_dims(b, axis=0)))
    exe = both.simple_bind(mx.cpu(), a=(2,), b=(2,))
    exe.forward(is_train=True, a=nd.ones((2,)), b=nd.ones((2,)))
    exe.backward()
    exe.grad_dict["a"][:] = 0
    assert exe.grad_dict["b"].asnumpy().tolist() == [4, 4]


def test_what_waits_for_gradients_is_called_with_each_without_torch(monkeypatch):
    net = mx.sym.FullyConnected(mx.sym.tanh(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="a")), num_hidden=3, name="b")
    executor = mx.sym.SoftmaxOutput(net, name="softmax").simple_bind(mx.cpu(), data=(2, 5), softmax_label=(2,))
    for i, array in enumerate(executor.arg_arrays):
        array[:] = nd.array(np.cos(np.arange(array.size) + i).reshape(array.shape))
    executor.arg_dict["softmax_label"][:] = 1
    names, calls = mx.sym.SoftmaxOutput(net, name="softmax").list_arguments(), []
    executor.finished = {i: lambda i=i: calls.append((i, executor.grad_arrays[i].asnumpy())) for i, name in enumerate(names) if name[0] in "ab"}

    monkeypatch.setattr(differentiation, "backward", None)
    monkeypatch.setattr(differentiation, "gradients", None)
    executor.forward(is_train=True)
    executor.backward()
    assert sorted(i for i, _ in calls) == sorted(executor.finished) == [1, 2, 3, 4]
    for i, gradient in calls:
        np.testing.assert_array_equal(gradient, executor.grad_arrays[i].asnumpy())
        assert np.abs(gradient).max() > 1e-3
