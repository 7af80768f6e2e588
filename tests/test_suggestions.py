"""Names that are misspelled: what is spelled like them is named, wherever the error comes from."""
import pickle
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon, nd
from mxnet.suggestions import MissingAttributeError, did_you_mean, shortened, unexpected_argument, unknown_arguments

S = mx.sym.var("x")


class Misspelled(gluon.HybridBlock):
    def hybrid_forward(self, F, x):  # noqa: N803
        return F.Activaton(x, act_type="relu")


def hybridized(block):
    block.hybridize()
    return block(nd.ones(2))


@pytest.mark.parametrize("call, error, hint", [
    # operators
    (lambda: nd.FullyConected, AttributeError, "'FullyConnected'"),
    (lambda: nd.contrib.box_nmss, AttributeError, "'box_nms'"),
    (lambda: nd.linalg.gemm3, AttributeError, "'gemm2'"),
    (lambda: nd.random.unifrom, AttributeError, "'uniform'"),
    (lambda: nd.image.resise, AttributeError, "'resize'"),
    (lambda: nd._internal._plus_scaler, AttributeError, "'_plus_scalar'"),
    (lambda: mx.sym.Convolutoin, AttributeError, "'Convolution'"),
    (lambda: mx.sym.contrib.foreech, AttributeError, "'foreach'"),
    (lambda: mx.sym.np.concatnate, AttributeError, "'concatenate'"),
    (lambda: mx.np.random.unifrom, AttributeError, "'uniform'"),
    (lambda: mx.npx.fully_conected, AttributeError, "'fully_connected'"),
    (lambda: Misspelled()(nd.ones(2)), AttributeError, "'Activation'"),
    (lambda: hybridized(Misspelled()), AttributeError, "'Activation'"),
    (lambda: mx.sym.load_json('{"nodes": [{"op": "Activaton", "name": "a", "inputs": []}], "arg_nodes": [], "heads": [[0, 0]]}'),
     mx.MXNetError, "'Activation'"),
    # attributes and their values
    (lambda: nd.Convolution(nd.ones((1, 1, 2, 2)), kernal=(1, 1)), mx.MXNetError, "'kernel'"),
    (lambda: mx.sym.FullyConnected(S, num_hiden=2), mx.MXNetError, "'num_hidden'"),
    (lambda: mx.sym.FullyConnected(dta=S, num_hidden=2), mx.MXNetError, "'data'"),
    (lambda: mx.npx.softmax(mx.np.ones(2), axs=0), mx.MXNetError, "'axis'"),
    (lambda: nd.Activation(nd.ones(2), act_type="rlu"), mx.MXNetError, "'relu'"),
    (lambda: nd.Cast(nd.ones(2), dtype="flaot16"), mx.MXNetError, "'float16'"),
    (lambda: nd.zeros(2, dtype="flaot16"), TypeError, "'float16'"),
    # modules and classes
    (lambda: mx.optimzer, AttributeError, "'optimizer'"),
    (lambda: gluon.nn.Dence, AttributeError, "'Dense'"),
    (lambda: gluon.loss.L2Lss, AttributeError, "'L2Loss'"),
    (lambda: gluon.data.DataLoder, AttributeError, "'DataLoader'"),
    (lambda: gluon.data.vision.CIFAR1, AttributeError, "'CIFAR10'"),
    (lambda: gluon.data.vision.transforms.ToTenser, AttributeError, "'ToTensor'"),
    (lambda: mx.init.Xaver, AttributeError, "'Xavier'"),
    (lambda: mx.metric.Acuracy, AttributeError, "'Accuracy'"),
    (lambda: mx.io.NDArrayItr, AttributeError, "'NDArrayIter'"),
    (lambda: mx.lr_scheduler.FactorSchedular, AttributeError, "'FactorScheduler'"),
    (lambda: mx.callback.Speedmeter, AttributeError, "'Speedometer'"),
    # what is made by name
    (lambda: mx.optimizer.create("sdg"), ValueError, "'sgd'"),
    (lambda: gluon.Trainer({}, "adaam"), ValueError, "'adam'"),
    (lambda: gluon.model_zoo.vision.get_model("resnet18_v3"), ValueError, "'resnet18_v2'"),
    (lambda: mx.init.create("xaver"), ValueError, "'xavier'"),
    (lambda: mx.metric.create("acuracy"), ValueError, "'accuracy'"),
    (lambda: mx.metric.create(["acc", "msee"]), ValueError, "'mse'"),
    (lambda: mx.kv.create("loacl"), mx.MXNetError, "'local'"),
    (lambda: mx.contrib.text.embedding.create("glov"), ValueError, "'glove'"),
    (lambda: mx.Context("gppu"), mx.MXNetError, "'gpu'"),
    # arguments
    (lambda: mx.optimizer.create("sgd", momentm=0.9), TypeError, "'momentum'"),
    (lambda: mx.optimizer.Adam(learning_rte=0.1), TypeError, "'learning_rate'"),
    (lambda: gluon.Trainer({}, "sgd", {"lr": 0.1}), TypeError, "'learning_rate'"),
    (lambda: mx.init.create("xavier", magnitud=3), TypeError, "'magnitude'"),
    (lambda: mx.metric.create("acc", axs=1), TypeError, "'axis'"),
    (lambda: gluon.nn.Dense(2, use_bais=False), TypeError, "'use_bias'"),
    (lambda: gluon.loss.L2Loss(wieght=1), TypeError, "'weight'"),
    (lambda: gluon.rnn.LSTM(3, layuot="NTC"), TypeError, "'layout'"),
    (lambda: (S * 2).infer_shape(xx=(2,)), mx.MXNetError, "'x'"),
    (lambda: mx.profiler.set_config(profile_al=True), mx.MXNetError, "'profile_all'"),
])
def test_a_misspelled_name_is_answered_with_those_like_it(call, error, hint):
    with pytest.raises(error, match=f"did you mean .*{hint}"):
        call()


def test_a_misspelled_backend_is_logged_with_those_like_it(caplog):
    (S * 2).optimize_for("opnvino")
    assert "did you mean 'openvino'" in caplog.text


def test_an_unknown_attribute_is_answered_with_all_there_are():
    with pytest.raises(mx.MXNetError) as caught:
        nd.Pooling(nd.ones((1, 1, 4, 4)), kernl=(2, 2))
    assert str(caught.value).splitlines()[:4] == [
        "Pooling: cannot find argument 'kernl'; did you mean 'kernel'?", "Possible arguments: inputs data; attributes:",
        "    kernel : a tuple of integers, optional, default=()",
        "    pool_type : one of 'avg', 'lp', 'max', 'sum', optional, default='max'"]


def test_no_hint_where_nothing_is_alike():
    assert did_you_mean("qqq", ["sgd", "adam"]) == "" and did_you_mean(3, ["sgd"]) == ""
    assert did_you_mean("SGDD", ["sgd"]) == "; did you mean 'sgd'?"
    with pytest.raises(AttributeError, match="^module 'mxnet.ndarray' has no attribute 'qqqqqq'$"):
        nd.qqqqqq  # noqa: B018
    assert not hasattr(nd, "FullyConected")


def test_the_error_of_a_module_can_be_pickled():
    error = pickle.loads(pickle.dumps(MissingAttributeError("mxnet.ndarray", "FullyConected")))
    assert type(error) is AttributeError and "did you mean 'FullyConnected'?" in str(error)


def test_classes_that_take_anything_know_no_unknown_arguments():
    class Anything(mx.metric.EvalMetric):
        def __init__(self, **kwargs):
            super().__init__("anything", **kwargs)

    assert unknown_arguments(Anything, ["x"]) == []
    assert unknown_arguments(mx.metric.Accuracy, ["axis", "axs"]) == ["axs"]
    assert unexpected_argument(mx.metric.Accuracy, "axs").startswith("unexpected argument 'axs'; did you mean 'axis'? The arguments are axis, name")


LARGE = nd.arange(2000)


@pytest.mark.parametrize("call", [
    lambda: nd.Activation(list(range(1000)), act_type="relu"), lambda: nd.Activation(nd.ones(2), act_type=LARGE),
    lambda: nd.FullyConnected(nd.ones((2, 3)), np.arange(3000.), num_hidden=2), lambda: mx.sym.FullyConnected(LARGE, num_hidden=2),
    lambda: nd.sum(nd.ones(3), axis=LARGE), lambda: nd.concat(nd.ones(2), list(range(1000))), lambda: mx.np.sum(mx.np.ones(2), axis=LARGE),
    lambda: mx.np.array([LARGE, "x"]), lambda: mx.np.concatenate(mx.np.ones(2), LARGE), lambda: gluon.nn.Conv2D(2, LARGE),
    lambda: gluon.nn.Dense(2)(list(range(1000))), lambda: mx.init.create(LARGE), lambda: mx.metric.create(LARGE),
    lambda: mx.lr_scheduler.PolyScheduler(LARGE), lambda: nd.ones(2, ctx=LARGE), lambda: nd.ones(3)[list("abc") * 500],
    lambda: mx.sym.var("x").as_in_context(LARGE), lambda: mx.sym.var(LARGE), lambda: mx.kv.create(LARGE),
])
def test_no_error_prints_a_whole_array(call):
    with pytest.raises((TypeError, ValueError, RuntimeError, AssertionError, IndexError)) as caught:
        call()
    assert len(str(caught.value)) < 400


def test_arrays_are_named_by_shape_and_type():
    assert shortened(nd.ones((2, 3))) == "an array of shape (2, 3) and type <class 'numpy.float32'>"
    assert shortened(np.ones(3)) == "an array of shape (3,) and type float64" and shortened("x") == "'x'" and shortened([1, 2]) == "[1, 2]"
    assert shortened(list(range(100))) == "a list of 100 items" and len(shortened("x" * 1000)) == 80


@pytest.mark.parametrize("call, error, reason", [
    (lambda: mx.sym.BatchNormAddRelu, AttributeError, "put the addition and an Activation behind a BatchNorm"),
    (lambda: mx.sym.BatchNorm(S, act_type="relu"), mx.MXNetError, "put the addition and an Activation behind a BatchNorm"),
    (lambda: mx.sym.BatchNorm(S, bn_group=2), mx.MXNetError, "SyncBatchNorm normalizes over several devices"),
    (lambda: mx.gluon.nn.Conv2D(1, 3, cudnn_algo_fwd=1), TypeError, "torch has cuDNN choose its algorithms")])
def test_what_only_nvidias_builds_have_is_answered_with_what_to_take(call, error, reason):
    with pytest.raises(error) as caught:
        call()
    assert f"which only NVIDIA's own MXNet has: {reason}" in str(caught.value)


def test_what_nvidias_batch_norm_has_is_nothing_to_others():
    with pytest.raises(mx.MXNetError, match="FullyConnected: cannot find argument 'act_type'\nPossible"):
        mx.sym.FullyConnected(S, num_hidden=1, act_type="relu")


def test_which_algorithm_of_cudnn_to_take_is_no_error_and_not_ignored_in_silence():
    arrays = mx.nd.ones((1, 1, 4, 4)), mx.nd.ones((1, 1, 3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.nd.Convolution(*arrays, kernel=(3, 3), num_filter=1, no_bias=True, cudnn_algo_bwd_data=-1, cudnn_algo_verbose=0)
    with pytest.warns(UserWarning, match="Convolution: no effect of cudnn_algo_fwd=1, which only NVIDIA's own MXNet has"):
        out = mx.nd.Convolution(*arrays, kernel=(3, 3), num_filter=1, no_bias=True, cudnn_algo_fwd=1)
    assert out.asnumpy().tolist() == [[[[9, 9], [9, 9]]]]
    with pytest.raises(mx.MXNetError, match="FullyConnected: cannot find argument 'cudnn_algo_fwd'"):
        mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=1, cudnn_algo_fwd=1)
