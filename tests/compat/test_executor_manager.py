"""The interface that groups of executors had before modules."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError, nd
from mxnet.compat.executor_manager import DataParallelExecutorGroup, DataParallelExecutorManager, _load_data, _split_input_slice

X = np.arange(24, dtype="float32").reshape(8, 3) % 7 / 7
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1], "float32")
TWO = [mx.cpu(0), mx.cpu(1)]
ARGUMENTS = ["data", "fc_weight", "fc_bias", "softmax_label"]


def network():
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")


def iterator():
    return mx.io.NDArrayIter(X, Y, 4)


def group(shared=None, data=None, slices=(slice(0, 1), slice(1, 4))):
    return DataParallelExecutorGroup(network(), ARGUMENTS, ["fc_bias", "fc_weight"], TWO, list(slices), data or iterator(), shared)


def test_a_batch_is_divided_as_the_slices_say():
    made, batch = group(), iterator().next()
    assert made.slices == [slice(0, 1), slice(1, 4)] and made.data_names == ["data"] and made.label_names == ["softmax_label"]
    assert made.param_idx == [1, 2] and made.param_names == ["fc_weight", "fc_bias"] and made.aux_names == []
    made.load_data_batch(batch)
    (first, a), (second, b) = made.data_arrays[0]
    assert (first, second) == (slice(0, 1), slice(1, 4)) and (a.context, b.context) == tuple(TWO)
    np.testing.assert_array_equal(np.concatenate([a.asnumpy(), b.asnumpy()]), X[:4])
    np.testing.assert_array_equal(np.concatenate([array.asnumpy() for _, array in made.label_arrays[0]]), Y[:4])
    assert a is made.train_execs[0].arg_dict["data"]


def test_a_step_on_two_devices_gives_the_gradient_of_one():
    made = group()
    for weights, biases in zip(*made.param_arrays):
        weights[:], biases[:] = 1, 0
    for array in made.param_arrays[0]:
        array[:] = [[1, 0, 0], [0, 1, 0]]
    for array in made.param_arrays[1]:
        array[:] = 0
    made.load_data_batch(iterator().next())
    made.forward(is_train=True)
    made.backward()
    z = np.exp(X[:4, :2])
    expected = (z / z.sum(1, keepdims=True) - np.eye(2)[Y[:4].astype(int)]).T @ X[:4]
    np.testing.assert_allclose(sum(g.asnumpy() for g in made.grad_arrays[0]), expected, rtol=1e-5, atol=1e-6)
    assert all(e.grad_dict["data"] is None and e.grad_dict["softmax_label"] is None for e in made.train_execs)
    metric = mx.metric.create("acc", output_names=["by position, not by name"])
    made.update_metric(metric, iterator().next().label)
    made.update_metric(metric, [[nd.array(Y[:1])], [nd.array(Y[1:4])]], pre_sliced=True)
    assert metric.num_inst == 8 and metric.get()[1] == np.mean(z.argmax(1) == Y[:4])


def test_groups_share_parameters_and_memory():
    first = group()
    second = group(shared=first, data=mx.io.DataBatch([nd.zeros((4, 3))], [nd.zeros(4)], provide_data=[("data", (4, 3))],
                                                      provide_label=[("softmax_label", (4,))]))
    assert second.param_arrays[0][1] is first.param_arrays[0][1] and second.shared_data_arrays is first.shared_data_arrays


def test_a_network_with_two_arguments_of_one_name():
    twice = mx.sym.var("w") + mx.sym.var("w")
    with pytest.raises(ValueError, match=r"duplicated argument name \['w'\]"):
        DataParallelExecutorGroup(twice, ["w", "w"], ["w"], TWO, [slice(0, 2), slice(2, 4)], iterator())


def test_a_manager_keeps_a_group_for_each_bucket():
    def generate(key):
        data = mx.sym.slice_axis(mx.sym.var("data"), axis=1, begin=0, end=2)
        return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(data, num_hidden=2, name="fc"), name="softmax")

    data = iterator()
    data.default_bucket_key = 3
    manager = DataParallelExecutorManager(generate(3), TWO, data, ARGUMENTS, ["fc_weight", "fc_bias"], [], sym_gen=generate)
    manager.set_params({"fc_weight": nd.ones((2, 2)), "fc_bias": nd.array([1, 2])}, {})
    batch = mx.io.DataBatch([nd.ones((4, 5))], [nd.zeros(4)], bucket_key=5, provide_data=[("data", (4, 5))],
                            provide_label=[("softmax_label", (4,))])
    for one, key in ((data.next(), 3), (batch, 5)):
        one.bucket_key = key
        manager.load_data_batch(one)
        manager.forward(is_train=True)
        manager.backward()
    assert list(manager.execgrp_bucket) == [3, 5] and manager.curr_execgrp is manager.execgrp_bucket[5]
    assert manager.curr_execgrp.param_arrays[1][0] is manager.param_arrays[1][0]
    np.testing.assert_allclose(manager.curr_execgrp.train_execs[0].outputs[0].asnumpy(), [[0.26894143, 0.7310586]] * 2, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="use BucketingModule.install_monitor"):
        manager.install_monitor(mx.mon.Monitor(1))


def test_a_manager_averages_parameters_and_lets_a_monitor_watch():
    manager = DataParallelExecutorManager(network(), TWO, iterator(), ARGUMENTS, ["fc_weight", "fc_bias"], [], work_load_list=[1, 3])
    assert manager.slices == [slice(0, 1), slice(1, 4)]
    for k, array in enumerate(manager.param_arrays[1]):
        array[:] = k + 1
    found = {"fc_weight": nd.zeros((2, 3)), "fc_bias": nd.zeros((2,), dtype="float64")}
    manager.copy_to(found, {})
    assert found["fc_bias"].asnumpy().tolist() == [1.5, 1.5] and found["fc_bias"].dtype == np.float64
    monitor = mx.mon.Monitor(1)
    manager.install_monitor(monitor)
    assert monitor.exes == manager.execgrp.train_execs
    for loads in ([1], (1, 1)):
        with pytest.raises(MXNetError, match="work_load_list needs one entry for each of 2 devices"):
            DataParallelExecutorManager(network(), TWO, iterator(), ARGUMENTS, ["fc_weight"], [], work_load_list=loads)


def test_helpers():
    assert _split_input_slice(4, [1, 3]) == [slice(0, 1), slice(1, 4)]
    with pytest.raises(ValueError, match="a batch of 1 can't be divided among devices with work loads"):
        _split_input_slice(1, [1, 1])
    whole, parts = nd.zeros((2,)), [nd.zeros((1,)), nd.zeros((1,))]
    batch = mx.io.DataBatch([nd.array([1, 2]), nd.array([3, 4])])
    _load_data(batch, [whole, [(slice(0, 1), parts[0]), (slice(1, 2), parts[1])]])
    assert whole.asnumpy().tolist() == [1, 2] and [p.asscalar() for p in parts] == [3, 4]
    with pytest.raises(MXNetError, match="3"):
        _load_data(mx.io.DataBatch([nd.zeros(3)]), [[(slice(0, 2), whole)]])


def test_executors_that_share_their_arrays():
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="f"), name="b")
    params, shared = ["f_weight", "f_bias", "b_gamma", "b_beta"], {}
    bind = mx.executor_manager._bind_exec
    first = bind(net, mx.cpu(), {"data": (4, 3)}, params, need_grad=True, shared_data_arrays=shared)
    second = bind(net, mx.cpu(), {"data": (2, 3)}, params, need_grad={"f_weight"}, base_exec=first, shared_data_arrays=shared)
    assert list(shared) == ["data"] and shared["data"].shape == (4, 3)
    first.arg_dict["f_weight"][:] = 1
    shared["data"][:] = 1
    first.aux_dict["b_moving_var"][:] = 1
    assert second.arg_dict["data"].shape == (2, 3) and second.arg_dict["data"].sum().asscalar() == 6
    assert second.arg_dict["f_weight"].sum().asscalar() == 6 and second.aux_dict["b_moving_var"].sum().asscalar() == 2
    assert second.grad_dict["f_weight"] is not None and second.grad_dict["f_bias"] is None
    with pytest.raises(AssertionError, match="need_grad must be a bool or a set of names, received <class 'list'>"):
        bind(net, mx.cpu(), {"data": (2, 3)}, params, need_grad=["f_weight"])
