"""Files in tests/data were written by MXNet 1.9.1: a checkpoint after five steps of SGD with momentum, and a record file."""
import pathlib

import numpy as np

import mxnet as mx

PREFIX = str(pathlib.Path(__file__).resolve().parent.parent / "data" / "mxnet191")
IMAGE = np.linspace(-1, 1, 36, dtype=np.float32).reshape(1, 1, 6, 6)
# What MXNet 1.9.1 answers for it.
SCORES = [0.7171697616577148, 0.11729029566049576, 0.1655399352312088]


def test_a_checkpoint_scores_the_same():
    symbol, args, aux = mx.model.load_checkpoint(PREFIX, 5)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", (1, 1, 6, 6))], for_training=False)
    module.set_params(args, aux, allow_missing=True)
    module.forward(mx.io.DataBatch([mx.nd.array(IMAGE)], None))
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy()[0], SCORES, atol=1e-6)


def test_a_checkpoint_scores_the_same_in_gluon():
    net = mx.gluon.SymbolBlock.imports(PREFIX + "-symbol.json", ["data", "softmax_label"], PREFIX + "-0005.params")
    np.testing.assert_allclose(net(mx.nd.array(IMAGE), mx.nd.zeros((1,))).asnumpy()[0], SCORES, atol=1e-6)


def test_saving_it_again_gives_the_same_bytes(tmp_path):
    symbol, args, aux = mx.model.load_checkpoint(PREFIX, 5)
    mx.model.save_checkpoint(str(tmp_path / "again"), 5, symbol, args, aux)
    written = mx.nd.load(str(tmp_path / "again-0005.params"))
    for name, value in mx.nd.load(PREFIX + "-0005.params").items():
        assert written[name].asnumpy().tobytes() == value.asnumpy().tobytes()
    assert (tmp_path / "again-0005.params").stat().st_size == pathlib.Path(PREFIX + "-0005.params").stat().st_size


def test_training_goes_on_from_it():
    module = mx.mod.Module.load(PREFIX, 5, load_optimizer_states=True)
    module.bind([("data", (8, 1, 6, 6))], [("softmax_label", (8,))])
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    before = {n: v.asnumpy() for n, v in module.get_params()[0].items()}
    batch = mx.io.DataBatch([mx.nd.zeros((8, 1, 6, 6))], [mx.nd.zeros((8,))])
    module.forward(batch, is_train=True)
    for grads in module._exec_group.grad_arrays:
        for g in grads:
            g[:] = 0
    module.update()
    after = {n: v.asnumpy() for n, v in module.get_params()[0].items()}
    # Without a gradient only the momentum that the file holds moves the weights.
    assert np.abs(after["fc_weight"] - before["fc_weight"]).max() > 1e-4


def test_records():
    records = mx.recordio.MXIndexedRecordIO(PREFIX + ".idx", PREFIX + ".rec", "r")
    header, payload = mx.recordio.unpack(records.read_idx(5))
    assert header.label.tolist() == [1, 2] and header.id == 8 and payload == b"\x0a\x23\xd7\xce" * 3
    header, payload = mx.recordio.unpack(records.read_idx(0))
    assert header.label == 3 and payload == b"hello"
    records.close()
