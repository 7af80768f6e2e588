"""`mx.model`: checkpoints, and where it leads."""
import logging

import pytest

import mxnet as mx
from mxnet import MXNetError


def network():
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")


def test_checkpoint_round_trip(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    prefix = str(tmp_path / "net")
    mx.model.save_checkpoint(prefix, 3, network(), {"fc_weight": mx.nd.ones((2, 3))}, {"mean": mx.nd.zeros((2,))})
    assert f'Saved checkpoint to "{prefix}-0003.params"' in caplog.text
    symbol, arg, aux = mx.model.load_checkpoint(prefix, 3)
    assert symbol.tojson() == network().tojson() and list(arg) == ["fc_weight"] and list(aux) == ["mean"]
    assert arg["fc_weight"].asnumpy().tolist() == [[1, 1, 1]] * 2
    (tmp_path / "net-symbol.json").unlink()
    mx.model.save_checkpoint(prefix, 4, None, {}, {})
    assert not (tmp_path / "net-symbol.json").exists()
    assert mx.model.load_params(prefix, 4) == ({}, {}) and "is empty" in caplog.text


def test_missing_checkpoints_are_named(tmp_path):
    with pytest.raises(MXNetError, match="none-0001.params"):
        mx.model.load_params(str(tmp_path / "none"), 1)
    with pytest.raises(MXNetError, match="none-symbol.json"):
        mx.model.load_checkpoint(str(tmp_path / "none"), 1)


def test_private_names_of_old_programs_lead_to_where_they_are_written():
    from mxnet.compat import executor_manager, feedforward
    from mxnet.kvstore import updates
    for name in ("create_kvstore", "create_sparse_kvstore", "initialize_kvstore", "update_params", "update_params_on_kvstore",
                 "update_params_on_kvstore_nccl"):
        assert getattr(mx.model, f"_{name}") is getattr(updates, name)
    assert mx.model.FeedForward is feedforward.FeedForward and mx.model._train_multi_device is feedforward._train_multi_device
    assert mx.model.DataParallelExecutorManager is mx.executor_manager.DataParallelExecutorManager is executor_manager.DataParallelExecutorManager
    assert mx.model.BatchEndParam is mx.callback.BatchEndParam
