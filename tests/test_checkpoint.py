"""Checkpoints of modules: files of MXNet 1.9.1 both ways, interrupted saves, damaged files."""
import base64
import io
import logging
import os
import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

X = np.arange(24, dtype="float32").reshape(8, 3) % 7 / 7
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1], "float32")

# One step of SGD with momentum 0.9 and learning rate 0.5, saved by MXNet 1.9.1.
SYMBOL = """{"nodes": [{"op": "null", "name": "data", "inputs": []},
{"op": "null", "name": "fc_weight", "attrs": {"num_hidden": "2"}, "inputs": []},
{"op": "null", "name": "fc_bias", "attrs": {"num_hidden": "2"}, "inputs": []},
{"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2"}, "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]},
{"op": "null", "name": "softmax_label", "inputs": []},
{"op": "SoftmaxOutput", "name": "softmax", "inputs": [[3, 0, 0], [4, 0, 0]]}],
"arg_nodes": [0, 1, 2, 4], "node_row_ptr": [0, 1, 2, 3, 4, 5, 6], "heads": [[5, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}"""
PARAMS = ("EgEAAAAAAAAAAAAAAAAAAAIAAAAAAAAAyfqT+QAAAAACAAAAAgAAAAAAAAADAAAAAAAAAAEAAAAAAAAAAAAAAOSChbyqanC+H/Z8PnAcPL6ranA+fKMcPsn6"
          "k/kAAAAAAQAAAAIAAAAAAAAAAQAAAAAAAAAAAAAAvtK+Pr3Svr4CAAAAAAAAAA0AAAAAAAAAYXJnOmZjX3dlaWdodAsAAAAAAAAAYXJnOmZjX2JpYXM=")
STATES = ("gASV3AAAAAAAAAB9lChLAIwVbXhuZXQubmRhcnJheS5uZGFycmF5lIwHTkRBcnJheZSTlE6FlFKUfZSMBmhhbmRsZZSMCGJ1aWx0aW5zlIwJYnl0ZWFycmF5"
          "lJOUQ0DJ+pP5AAAAAAIAAAACAAAAAAAAAAMAAAAAAAAAAQAAAAAAAAAAAAAAhi3uvXZ3Dr1V9Fi9hy3uPXh3Dj1W9Fg9lIWUUpRzYksBaANoBFKUfZRoB2gK"
          "QyjJ+pP5AAAAAAEAAAACAAAAAAAAAAEAAAAAAAAAAAAAAIVaAr6GWgI+lIWUUpRzYnUu")
# The same on two devices, where the kvstore updates and keys are names.
KV_STATES = ("gASV7gAAAAAAAAB9lCiMCWZjX3dlaWdodJSMFW14bmV0Lm5kYXJyYXkubmRhcnJheZSMB05EQXJyYXmUk5ROhZRSlH2UjAZoYW5kbGWUjAhidWlsdGluc5SM"
             "CWJ5dGVhcnJheZSTlENAyfqT+QAAAAACAAAAAgAAAAAAAAADAAAAAAAAAAMAAAAAAAAAAAAAAIYt7r12dw69VPRYvYct7j14dw49VvRYPZSFlFKUc2KMB2Zj"
             "X2JpYXOUaARoBVKUfZRoCGgLQyjJ+pP5AAAAAAEAAAACAAAAAAAAAAMAAAAAAAAAAAAAAIVaAr6FWgI+lIWUUpRzYnUu")
MOMENTUM = [[-0.1162978, -0.0347819, -0.0529674], [0.1162978, 0.0347819, 0.0529674]]


@pytest.fixture
def prefix(tmp_path):
    """Where a checkpoint of MXNet 1.9.1 lies."""
    (tmp_path / "o-symbol.json").write_text(SYMBOL)
    (tmp_path / "o-0001.params").write_bytes(base64.b64decode(PARAMS))
    (tmp_path / "o-0001.states").write_bytes(base64.b64decode(STATES))
    return str(tmp_path / "o")


def iterator():
    return mx.io.NDArrayIter(X, Y, 4)


def resumed(prefix, context=mx.cpu(), **kwargs):
    module = mx.mod.Module.load(prefix, 1, load_optimizer_states=True, context=context)
    data = iterator()
    module.bind(data.provide_data, data.provide_label)
    module.init_optimizer(optimizer_params={"learning_rate": .5, "momentum": .9}, **kwargs)
    return module


def test_a_checkpoint_of_mxnet_resumes(prefix):
    module = resumed(prefix)
    np.testing.assert_allclose(module.get_params()[0]["fc_weight"].asnumpy(),
                               [[-.01629776, -.23478192, .24703263], [-.18370222, .23478192, .15296739]], rtol=1e-5)
    np.testing.assert_allclose(module._updater.states[0].asnumpy(), MOMENTUM, rtol=1e-5)
    np.testing.assert_allclose(module._updater.states[1].asnumpy(), [-.1272984, .1272984], rtol=1e-5)


def test_optimizer_states_of_mxnets_kvstore_resume(prefix, tmp_path):
    (tmp_path / "o-0001.states").write_bytes(base64.b64decode(KV_STATES))
    module = resumed(prefix, [mx.cpu(0), mx.cpu(1)])
    np.testing.assert_allclose(module._kvstore._updater.states["fc_weight"].asnumpy(), MOMENTUM, rtol=1e-5)
    module.save_optimizer_states(str(tmp_path / "again"))
    assert sorted(pickle.loads((tmp_path / "again").read_bytes())) == ["fc_bias", "fc_weight"]


@pytest.mark.filterwarnings("ignore:init_params has no effect")
def test_resuming_continues_exactly(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    prefix = str(tmp_path / "m")
    options = {"optimizer_params": {"learning_rate": .5, "momentum": .9}, "initializer": mx.init.One()}
    whole = mx.mod.Module(mx.sym.load_json(SYMBOL))
    whole.fit(iterator(), num_epoch=4, epoch_end_callback=mx.callback.module_checkpoint(whole, prefix, 2, True), **options)
    assert sorted(os.listdir(tmp_path)) == ["m-0002.params", "m-0002.states", "m-0004.params", "m-0004.states", "m-symbol.json"]
    assert f'Saved checkpoint to "{prefix}-0002.params"' in caplog.text
    assert f'Saved optimizer state to "{prefix}-0002.states"' in caplog.text
    later = mx.mod.Module.load(prefix, 2, load_optimizer_states=True)
    later.fit(iterator(), begin_epoch=2, num_epoch=4, **options)
    np.testing.assert_array_equal(later.get_params()[0]["fc_weight"].asnumpy(), whole.get_params()[0]["fc_weight"].asnumpy())


def test_what_is_written_is_what_mxnet_writes(prefix, tmp_path):
    module = resumed(prefix)
    module.save_checkpoint(str(tmp_path / "new"), 1, save_optimizer_states=True)
    assert (tmp_path / "new-0001.params").read_bytes() == base64.b64decode(PARAMS)
    assert (tmp_path / "new-0001.states").read_bytes() == base64.b64decode(STATES)


@pytest.mark.parametrize("name", ["o-symbol.json", "o-0001.params", "o-0001.states"])
def test_an_interrupted_save_leaves_the_last_one(prefix, tmp_path, monkeypatch, name):
    module = resumed(prefix)
    before = (tmp_path / name).read_bytes()
    real = os.replace

    def failing(source, target):
        if os.path.basename(target) == name:
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(MXNetError, match=f"{name}.*No space left on device"):
        module.save_checkpoint(prefix, 1, save_optimizer_states=True)
    assert (tmp_path / name).read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["o-0001.params", "o-0001.states", "o-symbol.json"]


@pytest.mark.parametrize("name", ["o-symbol.json", "o-0001.params", "o-0001.states"])
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_missing_and_truncated_files_are_named(prefix, tmp_path, name, damage):
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:len(content) // 2])
    with pytest.raises(MXNetError, match=name):
        resumed(prefix)


def test_parameters_of_another_kind_of_file(prefix, tmp_path):
    mx.nd.save(f"{prefix}-0001.params", {"dense0.weight": mx.nd.ones((2,))})
    with pytest.raises(MXNetError, match="the entry 'dense0.weight' is neither 'arg:<name>' nor 'aux:<name>'"):
        mx.mod.Module.load(prefix, 1)
    mx.nd.save(f"{prefix}-0001.params", [mx.nd.ones((2,))])
    with pytest.raises(MXNetError, match="holds 1 arrays without names"):
        mx.mod.Module.load(prefix, 1)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


@pytest.mark.parametrize("payload", [Evil(), {0: Evil()}, {0: io.BytesIO(b"x")}, [1, 2]])
def test_states_that_hold_anything_else_are_refused(prefix, tmp_path, payload, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o-0001.states").write_bytes(pickle.dumps(payload))
    with pytest.raises(MXNetError, match="o-0001.states"):
        resumed(prefix)
    assert not os.path.exists("evil")


def test_save_params_and_load_params(prefix, tmp_path):
    module = resumed(prefix)
    path = str(tmp_path / "p.params")
    module.save_params(path)
    expected = module.get_params()[0]["fc_bias"].asnumpy()
    module.init_params(mx.init.Zero(), force_init=True)
    module.load_params(path)
    np.testing.assert_array_equal(module.get_params()[0]["fc_bias"].asnumpy(), expected)
    with pytest.raises(MXNetError, match="nowhere"):
        module.load_params(str(tmp_path / "nowhere.params"))
