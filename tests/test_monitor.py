"""Monitor."""
import logging

import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


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
