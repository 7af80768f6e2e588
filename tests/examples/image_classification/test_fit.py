import argparse
import logging
from types import SimpleNamespace

import numpy as np
import pytest

import mxnet as mx


@pytest.fixture
def fit():
    from common import fit
    return fit


def arguments(*given):
    from common import data, fit
    parser = argparse.ArgumentParser()
    fit.add_fit_args(parser)
    data.add_data_args(parser)
    data.add_data_aug_args(parser)
    return parser.parse_args(list(given))


one = SimpleNamespace(num_workers=1, rank=0)


def test_defaults_are_mxnets():
    args = arguments()
    assert (args.kv_store, args.num_epochs, args.lr, args.lr_factor, args.optimizer, args.mom, args.wd, args.batch_size) == (
        "device", 100, 0.1, 0.1, "sgd", 0.9, 0.0001, 128)
    assert (args.disp_batches, args.save_period, args.top_k, args.dtype, args.gc_type, args.gc_threshold, args.monitor) == (
        20, 1, 0, "float32", "none", 0.5, 0)
    assert (args.rgb_mean, args.rgb_std, args.fill_value, args.data_nthreads, args.min_crop_size, args.max_random_area) == (
        "123.68,116.779,103.939", "1,1,1", 127, 4, -1, 1)


def test_epoch_size(fit):
    args = arguments("--num-examples", "1000", "--batch-size", "64")
    assert fit.get_epoch_size(args, one) == 16
    assert fit.get_epoch_size(args, SimpleNamespace(num_workers=3)) == 6


def test_learning_rate_steps(fit, caplog):
    caplog.set_level(logging.INFO)
    lr, schedule = fit.learning_rate(arguments("--lr", "1", "--lr-step-epochs", "2,4"), 10)
    schedule.base_lr = lr
    assert lr == 1
    assert [round(schedule(n), 6) for n in (20, 21, 40, 41)] == [1, 0.1, 0.1, 0.01]
    lr, schedule = fit.learning_rate(arguments("--lr", "1", "--lr-step-epochs", "2,4", "--load-epoch", "3"), 10)
    assert lr == pytest.approx(0.1)
    assert "Adjust learning rate to 1.000000e-01 for epoch 3" in caplog.text
    assert [round(schedule(n), 6) for n in (10, 11)] == [0.1, 0.01]
    lr, schedule = fit.learning_rate(arguments("--lr", "1", "--lr-step-epochs", "2,4", "--load-epoch", "4"), 10)
    assert (round(lr, 6), schedule) == (0.01, None)


@pytest.mark.parametrize("options", [(), ("--lr-factor", "1", "--lr-step-epochs", "2")])
def test_learning_rate_stays(fit, options):
    assert fit.learning_rate(arguments(*options), 10) == (0.1, None)


def test_polynomial_learning_rate(fit):
    _, schedule = fit.learning_rate(arguments("--lr", "1", "--lr-step-epochs", "pow2", "--num-epochs", "10"), 10)
    assert [round(schedule(n), 4) for n in (0, 50, 100)] == [1, 0.25, 0]


def test_optimizer_parameters(fit):
    args = arguments("--num-examples", "1280", "--wd", "0.5")
    assert fit.optimizer_parameters(args, one, 10) == {
        "learning_rate": 0.1, "wd": 0.5, "lr_scheduler": None, "multi_precision": True, "momentum": 0.9}
    args.optimizer = "adam"
    assert "momentum" not in fit.optimizer_parameters(args, one, 10)
    args.optimizer, args.macrobatch_size = "lbsgd", 1000
    large = fit.optimizer_parameters(args, SimpleNamespace(num_workers=2), 10)
    assert (large["batch_scale"], large["updates_per_epoch"], large["warmup_strategy"], large["begin_epoch"]) == (4, 10, "linear", 0)


@pytest.mark.parametrize(("options", "kind", "attribute"), [
    (("--network", "alexnet"), "Normal", ("sigma", 0.01)), (("--network", "vgg"), "Xavier", ("rnd_type", "uniform")),
    (("--network", "resnet"), "Xavier", ("rnd_type", "gaussian")), (("--initializer", "one"), "One", None)])
def test_initializers(fit, options, kind, attribute):
    initializer = fit.make_initializer(arguments(*options))
    assert type(initializer).__name__ == kind
    if attribute:
        assert getattr(initializer, attribute[0]) == attribute[1]


def test_unknown_initializer(fit):
    with pytest.raises(ValueError, match="--initializer must be default, xavier, .* received 'he'"):
        fit.make_initializer(arguments("--initializer", "he"))


def test_metrics(fit, caplog):
    softmax = mx.sym.SoftmaxOutput(mx.sym.var("data"), name="softmax")
    metrics = fit.make_metrics(arguments("--top-k", "5", "--loss", "ce, nll,hinge"), softmax)
    assert [m if isinstance(m, str) else m.name for m in metrics] == ["accuracy", "top_k_accuracy_5", "cross-entropy", "nll-loss"]
    assert "hinge is not a valid loss" in caplog.text
    assert fit.make_metrics(arguments("--loss", "ce"), mx.sym.var("data")) == ["accuracy"]
    assert "--loss needs an output named softmax_output, found [" in caplog.text


def test_a_checkpoint_of_another_network_is_refused(fit, tmp_path):
    prefix = str(tmp_path / "net")
    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="old")
    mx.model.save_checkpoint(prefix, 3, x, {"old_weight": mx.nd.ones((2, 2)), "old_bias": mx.nd.ones(2)}, {})
    args = arguments("--model-prefix", prefix, "--load-epoch", "3")
    loaded, _ = fit.load_model(args, x)
    assert sorted(loaded) == ["old_bias", "old_weight"]
    other = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="new")
    with pytest.raises(ValueError, match=r"net-symbol.json is not the network .* they differ in \['new_bias', 'new_weight', 'old_bias', 'old_"):
        fit.load_model(args, other)
    args.model_prefix = None
    with pytest.raises(ValueError, match="--load-epoch needs --model-prefix"):
        fit.load_model(args, x)


def test_augmentations_reach_the_iterator(monkeypatch):
    from common import data
    asked = []
    monkeypatch.setattr(mx.io, "ImageRecordIter", lambda **options: asked.append(options) or len(asked))
    args = arguments("--data-train", "a.rec", "--data-val", "b.rec", "--image-shape", "3,8,9", "--random-mirror", "1", "--pad-size", "4",
                     "--max-random-h", "7", "--min-random-aspect-ratio", "0.5", "--rgb-mean", "1,2,3", "--batch-size", "5")
    assert data.get_rec_iter(args, SimpleNamespace(num_workers=4, rank=2)) == (1, 2)
    train, val = asked
    assert (train["path_imgrec"], train["data_shape"], train["rand_mirror"], train["pad"], train["random_h"]) == ("a.rec", (3, 8, 9), 1, 4, 7)
    assert (train["min_aspect_ratio"], train["shuffle"], train["num_parts"], train["part_index"]) == (0.5, True, 4, 2)
    assert (val["path_imgrec"], val["mean_b"], val["std_r"], val["batch_size"]) == ("b.rec", 3.0, 1.0, 5)
    assert not {"rand_mirror", "pad", "shuffle"} & set(val)


def test_training_data_must_be_named():
    from common import data
    with pytest.raises(ValueError, match="--data-train is missing"):
        data.get_rec_iter(arguments("--image-shape", "3,8,8"))


def test_synthetic_data():
    from common import data
    batches = data.SyntheticDataIter(10, (4, 3, 8, 8), 3, "float32")
    for _ in range(2):
        seen = list(batches)
        assert [batch.data[0].shape for batch in seen] == [(4, 3, 8, 8)] * 3
        batches.reset()
    assert batches.provide_label[0].shape == (4,)
    assert set(seen[0].label[0].asnumpy()) <= set(np.arange(10))
