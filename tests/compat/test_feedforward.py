"""The old FeedForward. Literal numbers come from MXNet 1.9.1."""
import logging
import pickle

import numpy as np
import pytest

import mxnet as mx

X = np.arange(24, dtype="float32").reshape(8, 3) % 7 / 7
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1], "float32")


def network():
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")


def feed_forward(**kwargs):
    with pytest.warns(DeprecationWarning, match="FeedForward is the interface before mx.mod.Module"):
        return mx.model.FeedForward(network(), **kwargs)


def iterator():
    return mx.io.NDArrayIter(X, Y, 4)


@pytest.mark.parametrize("context", [mx.cpu(), [mx.cpu(0), mx.cpu(1)]])
def test_feed_forward_trains_as_module_does(context, caplog):
    caplog.set_level(logging.INFO)
    start = {"fc_weight": mx.nd.array([[.1, -.2, .3], [-.3, .2, .1]]), "fc_bias": mx.nd.array([.5, -.5])}
    model = feed_forward(ctx=context, num_epoch=3, arg_params=start, learning_rate=.5, momentum=.9, wd=.1)
    model.fit(iterator(), eval_data=iterator())
    np.testing.assert_allclose(model.arg_params["fc_weight"].asnumpy(),  # MXNet 1.9.1's numbers
                               [[-.57501000, -.08506402, .35685566], [.52529514, .08506402, -.25742602]], rtol=1e-5)
    text = [r.getMessage() for r in caplog.records]
    assert text[0].startswith("Start training with [cpu(0)") and "Epoch[0] Resetting Data Iterator" in text
    assert sum("Epoch[2] Time cost=" in t for t in text) == 1 and any(t.startswith("Epoch[2] Validation-accuracy=") for t in text)
    assert model.score(iterator(), "ce") == pytest.approx(.6231201, rel=1e-5)
    outputs, data, label = model.predict(iterator(), return_data=True)
    assert outputs.shape == (8, 2) and (data == X).all() and (label == Y).all()


def test_feed_forward_with_arrays_and_epoch_size(caplog):
    caplog.set_level(logging.INFO)
    model = feed_forward(num_epoch=1, epoch_size=3, numpy_batch_size=4, learning_rate=.1)
    batches = []
    model.fit(X, Y.reshape(-1, 1), batch_end_callback=lambda p: batches.append(p.nbatch))
    assert batches == [1, 2, 3]
    assert model.predict(X).shape == (8, 2) and model.predict(X, num_batch=1).shape == (4, 2)
    for args, error, text in (((X,), ValueError, "y must be specified"), (([1], Y), TypeError, "X must be DataIter"),
                              ((X, Y[:3]), ValueError, "each of 8 examples expected, received 3"), ((X, X), ValueError, r"received shape \(8, 3\)")):
        with pytest.raises(error, match=text):
            model.fit(*args)
    with pytest.raises(TypeError, match="eval_data must be"):
        model.fit(X, Y, eval_data=3)


def test_feed_forward_saves_loads_pickles(tmp_path):
    prefix = str(tmp_path / "m")
    model = feed_forward(num_epoch=2)
    model.fit(iterator())
    model.save(prefix)
    with pytest.warns(DeprecationWarning):
        loaded = mx.model.FeedForward.load(prefix, 2)
    np.testing.assert_array_equal(loaded.predict(iterator()), model.predict(iterator()))
    assert loaded.begin_epoch == 2
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again.predict(iterator()), model.predict(iterator()))


def test_feed_forward_predicts_anew_after_more_training():
    model = feed_forward(num_epoch=1, learning_rate=.5)
    model.fit(iterator())
    before = model.predict(iterator())
    model.fit(iterator())
    assert abs(model.predict(iterator()) - before).max() > 1e-3


def test_feed_forward_arguments():
    model = feed_forward(num_epoch=2, learning_rate=.25, allow_extra_params=True, arg_params={"other": mx.nd.ones((1,))})
    assert model.arg_params == {} and model.get_params()["learning_rate"] == .25
    assert model.set_params(num_epoch=5, learning_rate=.5).num_epoch == 5 and model.kwargs["learning_rate"] == .5
    with pytest.raises(ValueError, match="has no parameter 'epochs'"):
        model.set_params(epochs=1)
    twice = mx.sym.var("w") + mx.sym.var("w")
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match=r"duplicated argument name \['w'\]"):
        mx.model.FeedForward(twice)


def test_pickles_name_the_path_that_programs_import():
    model = feed_forward(num_epoch=1)
    assert b"mxnet.model" in pickle.dumps(model, protocol=0) and b"compat" not in pickle.dumps(model, protocol=0)


def test_names_of_data():
    assert [mx.model.FeedForward._is_data_arg(name) for name in ("data", "softmax_label", "weight")] == [True, True, False]


def test_data_without_a_batch():
    class Empty(mx.io.DataIter):
        provide_data, provide_label = [("data", (4, 3))], [("softmax_label", (4,))]

        def __init__(self):
            super().__init__(4)

        def next(self):
            raise StopIteration

    with pytest.warns(DeprecationWarning):
        model = mx.model.FeedForward(network(), num_epoch=1)
        model.fit(Empty())  # nothing to learn from is no error, as in MXNet
        assert model.arg_params["fc_bias"].asnumpy().tolist() == [0, 0]
        with pytest.raises(mx.MXNetError, match="gave no batch in epoch 0, of 3 that epoch_size asks for"):
            mx.model.FeedForward(network(), num_epoch=1, epoch_size=3).fit(Empty())


def test_the_number_of_epochs_is_needed_for_training():
    with pytest.raises(mx.MXNetError, match="a number of epochs expected, received None: make the model with num_epoch="):
        feed_forward().fit(np.zeros((4, 3), np.float32), np.zeros(4))
