"""Networks with split layers on 1, 2 and 4 ranks: weights are those of the whole network, and checkpoints go from one number of ranks to another."""
import json
import os

import pytest

import mxnet as mx
from job_checks import outputs
from sharded_checks import PROGRAM

# Batches of 8 samples, of which the ranks have different numbers.
_JOB = PROGRAM + """
    rank, count = kv.rank, kv.num_workers
    limits = {1: [0, 8], 2: [0, 5, 8], 4: [0, 3, 4, 6, 8]}[count]
    own, folder = slice(limits[rank], limits[rank + 1]), os.environ['FOLDER']
    net = build(True)
    trainer = trainer_of(net)
"""

_SAVE = _JOB + """
    last = train(net, trainer, range(3), True, own)
    expected, losses = reference(3)
    print(far(net, expected) < 1e-6, abs(last - losses[own]).max() < 1e-5, [p.shape[0] for p in net[2].weight.list_data()])
    gluon.save_shards(folder, net, trainer)
    net.save_parameters(f'{folder}/whole.{rank}')
    trainer.save_states(f'{folder}/states.{rank}')
"""

_LOAD = _JOB + """
    expected, losses = reference(5)
    for whole in True, False:
        net = build(True)
        trainer = trainer_of(net)
        if whole:
            net.load_parameters(f'{folder}/whole.0')
            trainer.load_states(f'{folder}/states.0')
        else:
            gluon.load_shards(folder, net, trainer)
        last = train(net, trainer, range(3, 5), True, own)
        print(far(net, expected) < 1e-6, abs(last - losses[own]).max() < 1e-5)
    logits = net(nd.array(X[5, own]).tostype('csr'))
    plain = build(False)
    for p, value in zip(plain._collect_params_with_prefix().values(), values(net, True)):
        p.set_data(nd.array(value.T if p.shape == (6, 11) else value))
    out = plain(nd.array(X[5, own])).asnumpy()
    print(np.allclose(logits.gather().asnumpy(), out, atol=1e-6), (logits.argmax().asnumpy() == out.argmax(1)).all(),
          (logits.topk(6)[1].asnumpy() == (-out).argsort(1)[:, :6]).all())
"""


def test_jobs_of_two_and_four_ranks(tmp_path):
    environment = {"FOLDER": str(tmp_path)}
    assert outputs(_SAVE, workers=2, kind="dist_sync", env=environment) == [["True True [4]"], ["True True [5]"]]
    assert sorted(name[23:] for name in os.listdir(tmp_path) if name.startswith("shard-")) == [
        "00000-of-00002.params", "00000-of-00002.states", "00001-of-00002.params", "00001-of-00002.states"]
    lines = ["True True", "True True", "True True True"]
    assert outputs(_LOAD, workers=4, kind="dist_sync", env=environment) == [lines] * 4
    with open(tmp_path / "shards.json") as file:
        assert json.load(file)["ranks"] == 2


def _net():
    net = mx.gluon.nn.ShardedDense(4, in_units=2)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    return net


def test_a_checkpoint_without_states_and_one_of_another_network(tmp_path):
    net = _net()
    mx.gluon.save_shards(tmp_path, net)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(mx.gluon.utils.UsageError, match="has no states for the trainer; it was saved without one"):
        mx.gluon.load_shards(tmp_path, net, trainer)
    other = mx.gluon.nn.ShardedDense(5, in_units=2)
    other.initialize()
    with pytest.raises(mx.MXNetError, match=r"rows of shape \(5, 2\) expected for 'weight', the checkpoint has \(4, 2\); build"):
        mx.gluon.load_shards(tmp_path, other)
    with pytest.raises(mx.gluon.DeferredInitializationError):
        other = mx.gluon.nn.ShardedDense(4)
        other.initialize()
        mx.gluon.load_shards(tmp_path, other)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"checkpoint": "../../../../etc/", "ranks": 1, "trainer": false}',
                                     b'{"checkpoint": "0123456789abcdef", "ranks": 1000000000, "trainer": false}', b"[" * 100000])
def test_damaged_indices(tmp_path, content):
    (tmp_path / "shards.json").write_bytes(content)
    with pytest.raises(mx.MXNetError, match="is no index of a checkpoint"):
        mx.gluon.load_shards(tmp_path, _net())


def test_a_save_replaces_the_one_before(tmp_path):
    net = _net()
    mx.gluon.save_shards(tmp_path, net)
    first = set(os.listdir(tmp_path))
    net.weight.set_data(mx.nd.array([[1, 2], [3, 4], [5, 6], [7, 8]]))
    mx.gluon.save_shards(tmp_path, net)
    assert set(os.listdir(tmp_path)) & first == {"shards.json"}
    other = _net()
    mx.gluon.load_shards(tmp_path, other)
    assert [part.asnumpy().tolist() for part in other.weight.list_data()] == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
