"""Each program learns what it is about; what it starts from and what chance gives stand in its docstrings."""
import logging

import numpy as np
import pytest

from mxnet import npx

from . import (
    bucketing_lm,
    estimator_fit,
    gan,
    gluon_cnn,
    module_custom,
    numpy_transformer,
    policy_gradient,
    sparse_factorization,
    ssd_head,
    svrg,
    vae,
)


@pytest.fixture(autouse=True)
def logging_as_before():
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


def test_gluon_network_tells_bars_apart_and_its_export_does_too():
    accuracy, again = gluon_cnn.train()
    assert accuracy > 0.9 and again == accuracy


@pytest.mark.filterwarnings("ignore:FusedRNNCell transposes NTC")
@pytest.mark.parametrize("fused", [False, True])
def test_language_model_over_buckets_finds_what_follows(fused):
    first, last = bucketing_lm.train(fused=fused)
    assert first > 2.5 and last < 2


def test_module_with_an_operator_and_a_metric_of_its_own_goes_on_from_a_checkpoint():
    first, last, loaded = module_custom.train()
    assert first <= 0.2 and last <= 0.05 and loaded == last


def test_factorization_machine_learns_from_sparse_rows():
    before, after = sparse_factorization.train()
    assert before < 0.6 and after > 0.8


def test_estimator_tells_spirals_apart():
    first, last, metrics = estimator_fit.train()
    assert first > 0.5 and last < 0.4 and metrics["validation accuracy"] > 0.85


def test_generator_learns_a_distribution():
    mean, spread = gan.train()
    np.testing.assert_allclose(mean, gan.CENTER, atol=0.4)
    np.testing.assert_allclose(spread, gan.SPREAD, atol=0.5)


def test_autoencoder_raises_its_bound():
    before, after = vae.train()
    assert before > 15 and after < 9


def test_detector_finds_squares():
    assert ssd_head.train(epochs=6) > 0.85


def test_reduced_variance_ends_closer_to_the_noise():
    reduced, plain = svrg.train()[-1], svrg.train("sgd")[-1]
    assert reduced < plain < 0.0105


def test_policy_learns_to_balance_the_pole():
    first, last = policy_gradient.train()
    assert first < 50 and last > 2 * first


def test_transformer_of_the_new_style_reads_backwards():
    npx.set_np()
    before, after = numpy_transformer.train(steps=120)
    assert before < 0.3 and after > 0.95
