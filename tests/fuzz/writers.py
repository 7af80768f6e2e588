"""The writers of parameters, networks, states and checkpoints, which `kills` kills."""
import pathlib
import types

import numpy as np
import torch

import mxnet as mx
from mxnet import gluon, resumption
from mxnet.gluon.contrib.estimator import event_handler
from mxnet.kvstore import dist_async, sharded
from mxnet.optimizer import pickles

from .making import Writer


def _array(version):
    """An array that tells its version, of a size that changes."""
    return mx.nd.full((1000 + version % 7 * 3000,), version, dtype="int64")


def _version(array):
    values = array.asnumpy()
    if values.size not in range(1000, 20000, 3000) or (values != values[0]).any() or values.size != 1000 + values[0] % 7 * 3000:
        raise AssertionError(f"no version: {values.shape}, {np.unique(values)[:5]}")
    return int(values[0])


# -- the writers -----------------------------------------------------------------------------------------------------

def _nd_save(folder):
    path = f"{folder}/a.params"
    return Writer(lambda v: mx.nd.save(path, {"a": _array(v), "b": mx.nd.ones((3,))}), lambda: _version(mx.nd.load(path)["a"]), ("a.params",))


def _npz_save(folder):
    path = f"{folder}/a.npz"
    return Writer(lambda v: mx.npx.savez(path, a=_array(v).as_np_ndarray(), b=mx.np.ones((3,))), lambda: _version(mx.nd.load(path)["a"]), ("a.npz",))


def _npx_save(folder):
    path = f"{folder}/a.npy"
    return Writer(lambda v: mx.npx.save(path, _array(v).as_np_ndarray()), lambda: _version(mx.npx.load(path)[0]), ("a.npy",))


def _symbol_save(folder):
    path = f"{folder}/a.json"

    def save(version):
        net = mx.sym.var("x")
        for _ in range(30):
            net = net + version
        net.save(path)

    def load():
        attributes = mx.sym.load(path).attr_dict().values()
        found = {a["scalar"] for a in attributes if "scalar" in a}
        assert len(found) == 1 and len(attributes) == 30
        return int(float(found.pop()))

    return Writer(save, load, ("a.json",))


def _net():
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(64, in_units=32, use_bias=False), gluon.nn.Dense(2, in_units=64))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 32)))
    return net


def _one(*arrays):
    """The number that fills all arrays."""
    found = {float(x) for a in arrays for x in np.unique(a.asnumpy())}
    assert len(found) == 1, found
    return int(found.pop())


def _filled(parameters, version):
    for parameter in parameters:
        parameter.data()[:] = version


def _save_parameters(folder):
    net, path = _net(), f"{folder}/a.params"
    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.save_parameters(path)), lambda: _one(*mx.nd.load(path).values()),
                  ("a.params",))


def _parameter_dict(folder):
    net, path = _net(), f"{folder}/a.params"
    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.collect_params().save(path)), lambda: _one(*mx.nd.load(path).values()),
                  ("a.params",))


def _export(folder):
    net, path = _net(), f"{folder}/a"

    def load():
        block = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
        return _one(*(p.data() for p in block.collect_params().values()))

    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.export(path)), load, ("a-0000.params", "a-symbol.json"))


def _block_save(folder):
    net = _net()

    def load():
        other = _net()
        other.load(f"{folder}/a")
        return _one(*(p.data() for p in other.collect_params().values()))

    return Writer(lambda v: (_filled(net.collect_params().values(), v), net.save(f"{folder}/a")), load, ("a-model.json", "a-model.params"))


def _states(version):
    return {0: _array(version), 1: mx.nd.ones((2,))}


def _state_file(path):
    found = pickles.loads(pathlib.Path(path).read_bytes())
    return _version((found[0] if isinstance(found, tuple) else found)[0])


def _trainer(folder):
    net, path = _net(), f"{folder}/a.states"
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore=None)
    trainer._prepare()

    def save(version):
        trainer._updaters[0].states = _states(version)
        trainer.save_states(path)

    return Writer(save, lambda: _state_file(path), ("a.states",))


def _kvstore(folder):
    store, path = mx.kv.create("local"), f"{folder}/a.states"
    store.set_optimizer(mx.optimizer.SGD(momentum=0.9))

    def save(version):
        store._updater.states = _states(version)
        store.save_optimizer_states(path, dump_optimizer=True)

    return Writer(save, lambda: _state_file(path), ("a.states",))


def _module(folder):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=50, no_bias=True, name="f")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=mx.cpu())
    module.bind([("data", (1, 40))], [("softmax_label", (1,))])
    module.init_params()
    module.init_optimizer(kvstore=None)

    def save(version):
        module.set_params({"f_weight": mx.nd.full((50, 40), version)}, {})
        module._updater.states = _states(version)
        module.save_checkpoint(f"{folder}/a", 1, save_optimizer_states=True)

    def load():
        _, arguments, _ = mx.model.load_checkpoint(f"{folder}/a", 1)
        return _one(*arguments.values()), _state_file(f"{folder}/a-0001.states")

    return Writer(save, load, ("a-0001.params", "a-0001.states", "a-symbol.json"))


def _checkpoint(folder):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=50, name="f")

    def save(version):
        mx.model.save_checkpoint(f"{folder}/a", 3, net, {"f_weight": mx.nd.full((50, 40), version)}, {"f_mean": mx.nd.full((9,), version)})

    def load():
        _, arguments, states = mx.model.load_checkpoint(f"{folder}/a", 3)
        return _one(*arguments.values(), *states.values())

    return Writer(save, load, ("a-0003.params", "a-symbol.json"))


# -- checkpoints, and what trainings go on from ----------------------------------------------------------------------

class _Data:
    """Data that are at a version."""

    version = 0

    def state(self):
        return {"at": self.version}

    def load_state(self, state):
        self.version = state["at"]

    def reset(self):
        pass


def _at(version):
    made = _Data()
    made.version = version
    return made


def _position(path):
    data = _Data()
    mx.io.load_position(path, data)
    return data.version


def _save_position(folder):
    path = f"{folder}/a.data"
    return Writer(lambda v: mx.io.save_position(path, _at(v)), lambda: _position(path), ("a.data",))


def _saves(folder):
    saves = resumption.Saves(folder)

    def save(version):
        saves.newest()  # as a program does that begins anew
        saves.write(lambda path: mx.nd.save(f"{path}/{resumption.PARAMETERS}", {"a": _array(version)}), _at(version), version, 0)
        assert len(saves._complete()) <= 2

    def load():
        found, data = resumption.Saves(folder).newest(), _Data()
        found.restore_position(data)
        version = _version(mx.nd.load(f"{found.path}/{resumption.PARAMETERS}")["a"])
        assert found.epoch == data.version == version
        return version

    return Writer(save, load, ("0*-0of1",))


def _training(folder):
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore=None)
    trainer._prepare()

    def save(version):
        _filled(net.collect_params().values(), version)
        trainer._updaters[0].states = _states(version)
        trainer.save_training(folder, net, epoch=version).wait()

    def load():
        version = trainer.resume_training(folder, net).epoch
        assert _one(*(p.data() for p in net.collect_params().values())) == version
        return version

    return Writer(save, load, ("training-0*",))


def _checkpoints(folder):
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore=None)
    trainer._prepare()
    loader = gluon.data.DataLoader(list(range(6)), batch_size=2)
    estimator = types.SimpleNamespace(net=net, trainer=trainer, _train_data=loader)
    handler = event_handler.CheckpointHandler(str(folder), max_checkpoints=2)

    def save(version):
        handler.saved_checkpoints = [f"model-epoch{e}batch{b}" for e, b in handler._found_checkpoints()]  # as a training that goes on
        handler.current_epoch = handler.current_batch = version
        _filled(net.collect_params().values(), version)
        trainer._updaters[0].states = _states(version)
        handler._save_checkpoint(estimator)
        left = {p.stem for p in folder.iterdir() if not p.name.startswith(".")}
        assert len(left) <= 3 and {p.stem for p in folder.glob("*.params")} >= left, left

    def load():
        newest = f"{folder}/model-epoch%dbatch%d" % handler._found_checkpoints()[-1]
        version = _one(*mx.nd.load(f"{newest}.params").values())
        mx.io.load_position(f"{newest}.data", loader)
        assert newest.endswith(f"model-epoch{version}batch{version}") and _state_file(f"{newest}.states") == version
        return version

    return Writer(save, load, ("model-*.params", "model-*.states", "model-*.data"))


def _buckets(folder):
    def network(key):
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=50, no_bias=True, name="f")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(network, default_bucket_key=5)
    module.bind([("data", (1, 40))], [("softmax_label", (1,))])
    module.init_params()

    def save(version):
        module.set_params({"f_weight": mx.nd.full((50, 40), version)}, {})
        module.save_checkpoint(f"{folder}/a", 1)

    def load():
        again = mx.mod.BucketingModule.load(f"{folder}/a", 1, network, 5)
        again.bind([("data", (1, 40))], [("softmax_label", (1,))])
        return _one(*again.get_params()[0].values())

    return Writer(save, load, ("a-0001.params", "a-5-symbol.json", "a.buckets"))


def _asynchronous(folder):
    """The store of a worker, which asks servers that are not there."""
    store, path = object.__new__(dist_async.DistAsyncKVStore), f"{folder}/a.states"
    store._keys = {key: types.SimpleNamespace(parts=[types.SimpleNamespace(server=0, key=key)]) for key in (0, 1)}

    def save(version):
        content = np.frombuffer(pickles.dumps((_states(version), mx.optimizer.SGD())), np.uint8)
        store._ask = lambda request: [[torch.from_numpy(content.copy())]]
        store.save_optimizer_states(path, dump_optimizer=True)

    return Writer(save, lambda: _state_file(path), ("a.states",))


def _sharded(folder):
    """The store of one worker of two, whose group is not there."""
    class Store(sharded.ShardedKVStore):
        _shards = True

        def __init__(self):
            self._edges, self._updater = {}, mx.optimizer.get_updater(mx.optimizer.SGD())
            self._group = types.SimpleNamespace(agree=lambda *_: lambda: None, begin_gather=lambda numbers, _: lambda: numbers,
                                                all_gather_uneven=lambda content, *_: [content])

    store, path = Store(), f"{folder}/a.states"

    def save(version):
        store._updater.states = _states(version)
        store.save_optimizer_states(path, dump_optimizer=True)

    return Writer(save, lambda: _state_file(path), ("a.states",))


# -- networks for others ---------------------------------------------------------------------------------------------

def _onnx(folder, **options):
    path, net = f"{folder}/a.onnx", mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=50, no_bias=True, name="f")

    def load():
        _, arguments, _ = mx.contrib.onnx.import_model(path)
        return _one(*arguments.values())

    return Writer(lambda v: mx.onnx.export_model(net, {"f_weight": mx.nd.full((50, 40), v)}, [(1, 40)], np.float32, path, **options), load,
                  ("a.onnx", "a.onnx.data"))


def _large_onnx(folder):
    return _onnx(folder, large_model=True)


WRITERS = {
    "nd.save": _nd_save, "npx.savez": _npz_save, "npx.save": _npx_save, "Symbol.save": _symbol_save, "Block.save_parameters": _save_parameters,
    "ParameterDict.save": _parameter_dict, "HybridBlock.export": _export, "Block.save": _block_save, "Trainer.save_states": _trainer,
    "KVStore.save_optimizer_states": _kvstore, "Module.save_checkpoint": _module, "model.save_checkpoint": _checkpoint,
    "mx.io.save_position": _save_position, "resumption.Saves": _saves, "CheckpointHandler": _checkpoints,
    "Trainer.save_training": _training,
    "BucketingModule.save_checkpoint": _buckets, "DistAsyncKVStore.save_optimizer_states": _asynchronous,
    "ShardedKVStore.save_optimizer_states": _sharded, "onnx.export_model": _onnx, "onnx.export_model, large": _large_onnx,
}
