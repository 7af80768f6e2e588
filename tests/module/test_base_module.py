"""What all modules share: training, prediction and scoring. Literal numbers come from MXNet 1.9.1."""
import logging
import re

import numpy as np
import pytest

import mxnet as mx
from module_checks import BIAS, WEIGHT, X, Y, bound, iterator, network, start
from mxnet import MXNetError


def test_fit_logs_what_log_parsers_expect(caplog):
    caplog.set_level(logging.INFO)
    mx.mod.Module(network()).fit(iterator(), eval_data=iterator(), num_epoch=2, eval_metric=["acc", "ce"], begin_epoch=1,
                                 arg_params=start(), batch_end_callback=mx.callback.Speedometer(4, 1))
    lines = [r.getMessage() for r in caplog.records]
    number = r"-?\d+\.\d+"
    expected = [rf"Epoch\[1\] Batch \[0-1\]\tSpeed: {number} samples/sec\taccuracy=\d\.\d{{6}}\tcross-entropy=\d\.\d{{6}}",
                r"Epoch\[1\] Train-accuracy=\d\.\d{6}", r"Epoch\[1\] Train-cross-entropy=\d\.\d{6}", r"Epoch\[1\] Time cost=\d+\.\d{3}",
                r"Epoch\[1\] Validation-accuracy=\d\.\d{6}", r"Epoch\[1\] Validation-cross-entropy=\d\.\d{6}"]
    assert len(lines) == len(expected)
    for line, pattern in zip(lines, expected):
        assert re.fullmatch(pattern, line), (line, pattern)


def test_fit_calls_back_with_its_local_variables():
    seen = []
    module = mx.mod.Module(network())

    def at_batch(param):
        seen.append((param.epoch, param.nbatch, param.locals["self"] is module, param.locals["data_batch"].data[0].shape))

    def at_epoch(epoch, symbol, arg, aux):
        seen.append((epoch, symbol.list_outputs(), sorted(arg), aux))

    module.fit(iterator(), num_epoch=1, batch_end_callback=at_batch, epoch_end_callback=[at_epoch])
    assert seen == [(0, 0, True, (4, 3)), (0, 1, True, (4, 3)), (0, ["softmax_output"], ["fc_bias", "fc_weight"], {})]


def test_the_training_metric_covers_the_epoch_although_callbacks_reset_it(caplog):
    caplog.set_level(logging.INFO)
    counted = []
    mx.mod.Module(network()).fit(iterator(), num_epoch=1, arg_params=start(), batch_end_callback=[
        lambda p: counted.append(p.eval_metric.get_global_name_value()[0][1]), lambda p: p.eval_metric.reset_local()])
    assert f"Epoch[0] Train-accuracy={counted[-1]:f}" in caplog.text


def test_predictions_leave_out_the_padding():
    module, _ = bound()
    data = mx.io.NDArrayIter(X[:6], Y[:6], 4)
    whole = module.predict(data)
    assert whole.shape == (6, 2)
    parts = module.predict(data, merge_batches=False)
    assert [[o.shape for o in outputs] for outputs in parts] == [[(4, 2)], [(2, 2)]]
    assert isinstance(module.predict(data, always_output_list=True), list)
    assert module.predict(data, num_batch=1).shape == (4, 2)
    iterated = [(outputs[0].asnumpy(), n, batch.pad) for outputs, n, batch in module.iter_predict(data)]
    assert [(o.shape, n, pad) for o, n, pad in iterated] == [((4, 2), 0, 0), ((2, 2), 1, 2)]
    np.testing.assert_array_equal(np.concatenate([o for o, _, _ in iterated]), whole.asnumpy())
    logits = X[:6] @ WEIGHT.T + BIAS
    np.testing.assert_allclose(whole.asnumpy(), np.exp(logits) / np.exp(logits).sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(ValueError, match="must be a DataIter, an NDArray or a numpy array, received list"):
        module.predict([1, 2])


def test_predict_takes_arrays():
    module, _ = bound()
    np.testing.assert_allclose(module.predict(X[:4]).asnumpy(), module.predict(mx.nd.array(X[:4])).asnumpy())


def test_score_counts_batches_for_its_callbacks():
    module, data = bound()
    ends, batches = [], []
    result = module.score(data, "acc", num_batch=1, batch_end_callback=lambda p: batches.append(p.nbatch),
                          score_end_callback=lambda p: ends.append((p.epoch, p.nbatch)), epoch=7)
    assert batches == [0] and ends == [(7, 1)] and result[0][0] == "accuracy"


@pytest.mark.parametrize("call, text", [
    (lambda m: m.forward(None), "not bound to shapes yet: call bind"),
    (lambda m: m.get_params(), "has no parameters yet: call init_params"),
    (lambda m: m.save_optimizer_states("x"), "has no optimizer yet: call init_optimizer"),
    (lambda m: m.fit(iterator()), "please specify number of epochs"),
    (lambda m: m.output_shapes, "not bound"),
])
def test_wrong_order_of_calls(call, text):
    with pytest.raises(MXNetError, match=text):
        call(mx.mod.Module(network()))


def test_an_empty_iterator_is_reported():
    class Empty(mx.io.DataIter):
        provide_data, provide_label = [("data", (4, 3))], [("softmax_label", (4,))]

        def next(self):
            raise StopIteration

    with pytest.raises(StopIteration, match="train_data gave no batch in epoch 0"):  # what MXNet lets out of fit
        mx.mod.Module(network()).fit(Empty(), num_epoch=1)
