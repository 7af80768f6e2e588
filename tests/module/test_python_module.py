"""Modules whose computation is Python code."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


def test_python_module_errors():
    module = mx.mod.PythonLossModule()
    with pytest.raises(MXNetError, match=r"data_shapes must describe \['data'\] in this order, received \['x'\]"):
        module.bind([("x", (2, 2))])
    module.bind([("data", (2, 2))], [("softmax_label", (2,))])
    assert module.output_shapes == [("pyloss_output", (2, 2))] and module.get_params() == ({}, {})
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 2))], [mx.nd.ones((2,))]))
    with pytest.raises(NotImplementedError, match="grad_func"):
        module.backward()
    with pytest.raises(MXNetError, match="takes no out_grads"):
        module.backward([mx.nd.ones((2, 2))])
    with pytest.raises(MXNetError, match="must be callable"):
        mx.mod.PythonLossModule(grad_func=3)
    with pytest.raises(MXNetError, match="supports only grad_req='write'"):
        mx.mod.PythonLossModule().bind([("data", (2, 2))], grad_req="add")


def test_a_loss_gives_its_data_and_the_gradient_of_the_function():
    module = mx.mod.PythonLossModule(name="mine", grad_func=lambda scores, labels: (scores - labels).asnumpy() * 2)
    module.bind([("data", (2,))], [("softmax_label", (2,))])
    module.init_params()
    module.init_optimizer()
    module.forward(mx.io.DataBatch([mx.nd.array([5, 6])], [mx.nd.array([1, 4])]), is_train=True)
    module.backward()
    module.update()
    assert module.get_outputs()[0].asnumpy().tolist() == [5, 6] and module.get_input_grads()[0].asnumpy().tolist() == [8, 4]
    assert module.output_names == ["mine_output"] and module.data_names == ["data"]
    metric = mx.metric.MSE()
    module.update_metric(metric, [mx.nd.array([1, 4])])
    assert metric.get() == ("mse", 10.0)


def test_in_prediction_labels_are_not_asked_for():
    module = mx.mod.PythonLossModule()
    module.bind([("data", (1,))], for_training=False)
    module.forward(mx.io.DataBatch([mx.nd.array([5])], []))
    assert module.get_outputs()[0].asscalar() == 5
    module.update_metric(None, [])  # takes no labels: the metric is not asked
    with pytest.raises(MXNetError, match="for_training=True"):
        module.backward()


def test_what_needs_devices_or_executors_is_refused(caplog):
    module = mx.mod.PythonLossModule()
    module.bind([("data", (1,))], [("softmax_label", (1,))])
    for call in (module.get_outputs, module.get_input_grads):
        with pytest.raises(MXNetError, match="merge_multi_context=True"):
            call(merge_multi_context=False)
    with pytest.raises(RuntimeError, match="pre_sliced=False expected, received True"):
        module.update_metric(mx.metric.Accuracy(), [[mx.nd.ones(1)]], pre_sliced=True)
    with pytest.raises(NotImplementedError, match="executor"):
        module.install_monitor(None)
    module.binded = True
    module.bind([("data", (7,))])
    assert "Already bound" in caplog.text and module.data_shapes == [("data", (1,))]
    with pytest.raises(MXNetError, match=r"label_shapes must describe \['softmax_label'\]"):
        mx.mod.PythonLossModule().bind([("data", (1,))], [("label", (1,))])
    with pytest.raises(MXNetError, match=r"one data and one label, received \('a', 'b'\)"):
        mx.mod.PythonLossModule(data_names=("a", "b"))


def test_a_module_of_one_s_own():
    class Double(mx.mod.PythonModule):
        def _compute_output_shapes(self):
            return [("double_output", self._data_shapes[0][1])]

        def forward(self, data_batch, is_train=None):
            self.result = data_batch.data[0] * 2

        def get_outputs(self, merge_multi_context=True):
            return [self.result]

    module = Double(("data",), None, ["double_output"])
    data = mx.io.NDArrayIter(np.array([[1.0], [2.0], [3.0]]), batch_size=2)
    module.bind(data.provide_data, for_training=False)
    module.binded = module.params_initialized = True  # as in MXNet, bind leaves that to the subclass
    assert module.predict(data).asnumpy().tolist() == [[2], [4], [6]] and module.output_shapes == [("double_output", (2, 1))]
    with pytest.raises(NotImplementedError):
        mx.mod.PythonModule(["data"], None, ["out"]).bind(data.provide_data)
