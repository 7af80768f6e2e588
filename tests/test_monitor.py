"""Monitor."""
import ctypes
import gc
import json
import logging
import re

import numpy as np
import pytest

import mxnet as mx
import record_monitored
from mxnet import MXNetError
from mxnet.base import NDArrayHandle
from mxnet.ndarray import NDArray


def executor():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    net = mx.sym.Activation(net, act_type="relu", name="act")
    exe = net.simple_bind(mx.cpu(), data=(1, 3))
    for value in exe.arg_dict.values():
        value[:] = 1
    return exe


def collect(monitor, exe, times=1):
    results = []
    for _ in range(times):
        monitor.tic()
        exe.forward()
        results.append(monitor.toc())
    return results


def test_outputs_and_arguments_with_the_usual_statistic():
    exe = executor()
    monitor = mx.mon.Monitor(1)
    monitor.install(exe)
    (found,) = collect(monitor, exe)
    assert [name for _, name, _ in found] == ["fc_output", "act_output", "data", "fc_weight", "fc_bias"]
    assert [step for step, _, _ in found] == [1] * 5
    values = [float(text) for _, _, text in found]
    np.testing.assert_allclose(values, [4, 4, 1, 1, 1])  # norm / sqrt(size)
    assert all(text.endswith("\t") for _, _, text in found)


def test_interval_pattern_and_sort():
    exe = executor()
    monitor = mx.mon.Monitor(2, pattern="fc_[bo]", sort=True)
    monitor.install(exe)
    names = [[name for _, name, _ in found] for found in collect(monitor, exe, 3)]
    assert names == [["fc_bias", "fc_output"], [], ["fc_bias", "fc_output"]]


def test_monitor_all_sees_inputs_too():
    exe = executor()
    monitor = mx.mon.Monitor(1, pattern="fc_(data|output)", monitor_all=True)
    monitor.install(exe)
    (found,) = collect(monitor, exe)
    assert "fc_data" in [name for _, name, _ in found]


def test_own_statistics():
    exe = executor()
    monitor = mx.mon.Monitor(1, stat_func=lambda x: [x.min(), x.max()], pattern="fc_output")
    monitor.install(exe)
    (found,) = collect(monitor, exe)
    assert found == [(1, "fc_output", "4.0\t4.0\t")]
    thirds = mx.mon.Monitor(1, stat_func=lambda x: x.max() * 0 + 1 / 3, pattern="fc_output")
    thirds.install(exe)
    assert collect(thirds, exe)[0][0][2] == f"{np.float32(1 / 3)!s}\t" != f"{1 / 3}\t"  # as a float32 is printed
    wrong = mx.mon.Monitor(1, stat_func=lambda x: 3, pattern="fc_output")
    wrong.install(exe)
    with pytest.raises(MXNetError, match="must return an NDArray or a list of NDArrays, received 3 for 'fc_output'"):
        collect(wrong, exe)


def test_print(caplog):
    caplog.set_level(logging.INFO)
    exe = executor()
    monitor = mx.mon.Monitor(1, pattern="fc_output")
    monitor.install(exe)
    monitor.tic()
    exe.forward()
    monitor.toc_print()
    assert [r.getMessage() for r in caplog.records] == ["Batch:       1 fc_output                      4.0\t"]


def test_gradients_are_seen_in_backward():
    net = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), act_type="sigmoid", name="act")
    net = mx.sym.LinearRegressionOutput(net, name="out", grad_scale=2)
    exe = net.simple_bind(mx.cpu(), data=(1, 2))
    for value in exe.arg_dict.values():
        value[:] = .5
    monitor = mx.mon.Monitor(1, pattern=".*backward", stat_func=lambda x: x.max())
    monitor.install(exe)
    monitor.tic()
    exe.forward(is_train=True)
    exe.backward()
    found = [(name, round(float(text), 5)) for _, name, text in monitor.toc()]
    # Names and order are MXNet 1.9.1's; sigmoid(1) - .5, that times s (1 - s), that times the data.
    assert found == [("out_backward_output0", .23106), ("out_backward_output1", 0.), ("act_backward_output", .04543),
                     ("fc_backward_output0", .04543), ("fc_backward_output1", .02271), ("fc_backward_output2", .04543)]


def test_an_executor_for_other_shapes_is_watched_too():
    exe = executor()
    monitor = mx.mon.Monitor(1, pattern="fc_output")
    monitor.install(exe)
    monitor.tic()
    exe.reshape(data=(2, 3), allow_up_sizing=True).forward()
    assert [name for _, name, _ in monitor.toc()] == ["fc_output"]


def test_fit_reports_every_batch(caplog):
    caplog.set_level(logging.INFO)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    data = mx.io.NDArrayIter(np.ones((4, 3), "float32"), np.zeros(4, "float32"), 2)
    mx.mod.Module(net).fit(data, num_epoch=1, monitor=mx.mon.Monitor(1, pattern="fc_output"))
    assert [r.getMessage().split()[1:3] for r in caplog.records if "Batch:" in r.getMessage()] == [["1", "fc_output"], ["2", "fc_output"]]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("network", record_monitored.NETWORKS)
def test_names_order_and_values_are_those_of_mxnet(network, everything):
    """Of both passes: of a use's gradient before it is added to others, of these sums, and with `monitor_all` of what gradients are made of."""
    expected = json.loads(record_monitored.DATA.read_text())[f"{network.__name__} {everything}"]
    told = record_monitored.monitored(network, everything)

    def named(entries):  # operators without a name have numbers that count on through the process
        return [[re.sub(r"^(_[a-z]+)\d+", r"\1", entry[0]), entry[1]] if entry else entry for entry in entries]

    assert named(told) == named(expected)
    np.testing.assert_allclose([entry[2] for entry in told if entry], [entry[2] for entry in expected if entry], rtol=1e-3, atol=2e-5)


def test_a_module_with_a_monitor_of_everything_reports_as_mxnet_does():
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    module = mx.mod.Module(net)
    monitor = mx.mon.Monitor(1, pattern="fc|softmax", stat_func=lambda x: x.sum(), monitor_all=True)
    module.bind([("data", (2, 3))], [("softmax_label", (2,))])
    module.init_params(mx.init.One())
    module.install_monitor(monitor)
    monitor.tic()
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.zeros((2,))]), is_train=True)
    module.backward()
    assert [(name, float(text)) for _, name, text in monitor.toc()] == [
        ("fc_data", 6), ("fc_weight", 6), ("fc_weight", 6), ("fc_bias", 0), ("fc_bias", 0), ("fc_output", 12), ("softmax_data", 12),
        ("softmax_label", 0), ("softmax_label", 0), ("softmax_output", 2), ("softmax_backward_input0", 2), ("softmax_label", 0),
        ("softmax_backward_input1", 0), ("softmax_backward_output0", 0), ("softmax_backward_output1", 0), ("fc_backward_input0", 0),
        ("fc_backward_input1", 6), ("fc_weight", 6), ("fc_backward_input2", 6), ("fc_backward_output0", 0), ("fc_backward_output1", 0),
        ("fc_backward_output2", 0), ("fc_weight", 6), ("fc_bias", 0), ("softmax_label", 0)]


def as_mxnet_documents_it(array):
    return NDArray(ctypes.cast(array, NDArrayHandle), writable=False)


@pytest.mark.parametrize("read", [as_mxnet_documents_it, lambda array: array, NDArray])
def test_callbacks_may_cast_the_array_or_use_it(read):
    exe, seen = executor(), {}
    exe.set_monitor_callback(lambda name, array: seen.update({name.decode("utf-8"): read(array).asnumpy().tolist()}))
    exe.forward()
    assert seen == {"fc_output": [[4, 4]], "act_output": [[4, 4]]}


def test_handles_lead_to_arrays_that_exist():
    array = mx.nd.arange(3)
    handle = ctypes.cast(array, NDArrayHandle)
    same = NDArray(handle)
    same[:] = 7
    assert array.asnumpy().tolist() == [7, 7, 7] and same.context == mx.cpu()
    del array, same
    gc.collect()
    for wrong in (handle, NDArrayHandle(0)):
        with pytest.raises(MXNetError, match="no array has the handle"):
            NDArray(wrong)


@pytest.mark.parametrize("read", [as_mxnet_documents_it, lambda array: array, NDArray])
@pytest.mark.parametrize("everything", [False, True])
def test_hooks_of_blocks_hear_of_both_passes(read, everything):
    net = mx.gluon.nn.HybridSequential(prefix="n_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(3, activation="relu", in_units=4), mx.gluon.nn.Dense(2, in_units=3))
    net.initialize(mx.init.One())
    seen = []
    net.register_op_hook(lambda name, operator, array: seen.append((name.decode(), mx.base.py_str(operator), float(read(array).sum().asscalar()))),
                         everything)
    net.hybridize(static_alloc=True)
    with mx.autograd.record():
        out = net(mx.nd.ones((2, 4)))
    forward, seen[:] = list(seen), []
    out.backward()
    outputs = [("n_dense0_fwd_output", "FullyConnected", 24), ("n_dense0_relu_fwd_output", "Activation", 24),
               ("n_dense1_fwd_output", "FullyConnected", 48)]
    gradients = [("n_dense1_fwd_backward_0", "_backward_FullyConnected", 12), ("n_dense1_fwd_backward_1", "_backward_FullyConnected", 48),
                 ("n_dense1_fwd_backward_2", "_backward_FullyConnected", 4), ("n_dense0_relu_fwd_backward_0", "_backward_Activation", 12),
                 ("n_dense0_fwd_backward_0", "_backward_FullyConnected", 0), ("n_dense0_fwd_backward_1", "_backward_FullyConnected", 48),
                 ("n_dense0_fwd_backward_2", "_backward_FullyConnected", 12)]
    if not everything:
        assert (forward, seen) == (outputs, gradients)
        return
    assert [entry for entry in forward if entry[0].endswith("_output")] == outputs and ("n_dense0_relu_fwd_input0", "Activation", 24) in forward
    assert [entry for entry in seen if "_input" not in entry[0]] == gradients
    assert [entry for entry in seen if "_input" in entry[0]] == [
        ("n_dense1_fwd_backward_input0", "_backward_FullyConnected", 4), ("n_dense1_fwd_backward_input1", "_backward_FullyConnected", 24),
        ("n_dense1_fwd_backward_input2", "_backward_FullyConnected", 6), ("n_dense0_relu_fwd_backward_input0", "_backward_Activation", 12),
        ("n_dense0_relu_fwd_backward_input1", "_backward_Activation", 24), ("n_dense0_fwd_backward_input0", "_backward_FullyConnected", 12),
        ("n_dense0_fwd_backward_input1", "_backward_FullyConnected", 8), ("n_dense0_fwd_backward_input2", "_backward_FullyConnected", 12)]
