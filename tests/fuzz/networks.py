"""A target for each reader of networks and their parameters; what is read is then run, under a budget."""
import functools
import itertools
import json
import math

import numpy as np

import mxnet as mx
from mxnet import gluon
from mxnet.graph.backends import registry
from mxnet.operator import get_all_registered_operators

from .making import DATA, file, folder, target, unless, written
from .mutations import mutated_json

_ELEMENTS = 1 << 20  # of what a network computes: beyond that it is only loaded


def _network():
    data = mx.sym.var("data", shape=(0, 3, 8, 8), lr_mult=2)
    net = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.BatchNorm(net, name="bn")
    net = mx.sym.Pooling(mx.sym.LeakyReLU(net, act_type="elu"), kernel=(2, 2), pool_type="max", global_pool=True)
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3), name="softmax")


# Shapes of the arguments of the networks below.
_SHAPES = {"data": (2, 3, 8, 8), "x": (2, 6), "y": (3, 2), "rows": (3, 2), "state": (2,), "d": (4, 2, 5), "ids": (2, 3), "a": (2, 3, 4),
           "b": (2, 4, 3)}


def _symbols():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    parts = mx.sym.split(x, num_outputs=2)
    some = mx.sym.Concat(parts[0], mx.sym.transpose(y, axes=(1, 0)), dim=0)
    loop, state = mx.sym.contrib.foreach(lambda row, s: (row + s, row * s), mx.sym.var("rows"), mx.sym.var("state"))
    rnn = mx.sym.RNN(mx.sym.var("d"), mx.sym.var("p"), mx.sym.var("s"), state_size=3, num_layers=2, mode="gru")
    split = mx.sym._internal._split_v2(x, indices=(0, 2), axis=1)
    embedded = mx.sym.Embedding(mx.sym.var("ids"), input_dim=5, output_dim=4, name="e")
    shaped = mx.sym.Reshape(mx.sym.broadcast_add(embedded, mx.sym.mean(embedded, axis=1, keepdims=True)), shape=(0, -3)).sum(axis=1) + 1
    picked = mx.sym.Group([mx.sym.topk(x, k=2, ret_typ="both")[0], mx.sym.slice(x, begin=(0, 1), end=(2, None)), mx.sym.one_hot(x, depth=3),
                           mx.sym.Cast(mx.sym.clip(x, 0, 1), dtype="float16"), mx.sym.pad(mx.sym.Reshape(x, shape=(1, 2, 3, 2)), mode="edge",
                                                                                       pad_width=(0, 0, 0, 0, 1, 1, 1, 1))])
    a, b = mx.sym.var("a"), mx.sym.var("b")
    products = mx.sym.broadcast_sub(mx.sym.batch_dot(a, b), mx.sym.take(b, mx.sym.ones((3,)), axis=2).mean())
    return [_network(), some, mx.sym.Group([loop, state]), rnn, split, shaped, picked, products]


def _aged(text, version):
    """A network as MXNet `version` (eight hundred is 0.8) wrote it."""
    graph = json.loads(text)
    key = "param" if version < 900 else "attr" if version < 1100 else "attrs"
    aux = {"moving_mean", "moving_var"}
    for node in graph["nodes"]:
        attributes = node.pop("attrs", {})
        if attributes or version < 900:
            node["attr" if node["op"] == "null" and attributes else key] = {k.strip("_"): v for k, v in attributes.items()}
        if version < 900:
            node["backward_source_id"] = -1
            node["inputs"] = [e[:2] for e in node["inputs"] if not any(graph["nodes"][e[0]]["name"].endswith(a) for a in aux)]
    graph["heads"] = [h[:2] for h in graph["heads"]] if version < 900 else graph["heads"]
    if version < 900:
        del graph["attrs"], graph["node_row_ptr"]
    else:
        graph["attrs"] = {"mxnet_version": ["int", version]}
    return json.dumps(graph).encode()


def _json():
    symbols = [s.tojson() for s in _symbols()]
    old = [_aged(text, version) for text in (symbols[0], symbols[1], symbols[5]) for version in (800, 900, 1000, 1200)]
    return [*(s.encode() for s in symbols), *old, (DATA / "mxnet191-symbol.json").read_bytes()]


@functools.cache
def _texts():
    """Values for JSON: operators and attributes."""
    names = sorted(get_all_registered_operators())
    return [*names[::7], "relu", "tanh", "max", "sum", "valid", "full", "NCHW", "NHWC", "float64", "uint8", "write", "lstm", "(3, 3)", "(0, 0)",
            "[1, 2]",
            "__init__", '["xavier", {}]', "__shape__", "__dtype__", "__storage_type__", "num_filter", "kernel", "axis", "shape"]


def _changed(data, rng, others):
    return mutated_json(data, rng, others, _texts())


def _run(symbol):
    """Bind a network to small arrays, run it forwards and backwards."""
    known = {n: _SHAPES[n] for n in symbol.list_arguments() if n in _SHAPES}
    symbol.infer_shape_partial(**known)
    internals = symbol.get_internals()
    arguments, outputs, states = internals.infer_shape(**known)
    if outputs is None or sum(math.prod(s) for s in itertools.chain(arguments, outputs, states)) > _ELEMENTS:
        return
    executor = symbol.simple_bind(mx.cpu(), **known)
    for array in executor.arg_arrays:
        array[:] = 0.5
    for output in executor.forward(is_train=True):
        output.asnumpy()
    executor.backward([mx.nd.ones(o.shape, dtype=o.dtype) for o in executor.outputs])
    for gradient in executor.grad_arrays:
        if gradient is not None:
            gradient.asnumpy()


def _read_json(case):
    symbol = mx.sym.load(file(case, "a.json"))
    symbol.list_arguments(), symbol.list_auxiliary_states(), symbol.list_outputs(), symbol.attr_dict()
    mx.sym.load_json(symbol.tojson())
    symbol.infer_shape_partial()
    symbol.infer_type_partial()


def _run_json(case):
    _run(mx.sym.load_json(case.decode("utf-8", "replace")))


# -- parameters ------------------------------------------------------------------------------------------------------

def _block(known=True):
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Conv2D(4, 3, in_channels=3 * known), gluon.nn.BatchNorm(in_channels=4 * known), gluon.nn.Activation("relu"),
                gluon.nn.Dense(3, in_units=144 * known), gluon.nn.LayerNorm(in_channels=3 * known))
    return net


@functools.cache
def _batch():
    return mx.nd.array(np.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8))


def _parameters():
    net = _block()
    net.initialize()
    net(_batch())
    half = _block()
    half.initialize()
    half.cast("float16")
    return [written(net.save_parameters), written(lambda p: net.collect_params().save(p, strip_prefix="net_")), written(half.save_parameters)]


@functools.cache
def _hybridized():
    net = _block()
    net.initialize()
    net.hybridize()
    net(_batch())
    return net, file(_parameters()[0], "good.params")


def _read_parameters(case):
    net, good = _hybridized()
    net.cast("float32")
    net.load_parameters(good)
    options = {"cast_dtype": True, "dtype_source": "saved"} if len(case) % 2 else {}
    net.load_parameters(file(case, "a.params"), allow_missing=True, ignore_extra=True, **options)
    with mx.autograd.record(train_mode=len(case) % 3 == 0):
        out = net(_batch().astype(net[0].weight.dtype))
    out.asnumpy()


def _read_parameters_anew(case):
    net = _block(known=False)
    net.load_parameters(file(case, "b.params"))
    net(_batch()).asnumpy()


@functools.cache
def _module():
    module = mx.mod.Module(_network(), context=mx.cpu())
    module.bind([("data", (2, 3, 8, 8))], [("softmax_label", (2,))])
    module.init_params()
    module.init_optimizer(kvstore=None, optimizer="adam")
    return module


def _checkpoint():
    return [written(_module().save_params)]


def _read_checkpoint(case):
    file(_network().tojson().encode(), "m-symbol.json")
    file(case, "m-0001.params")
    _, arguments, states = mx.model.load_checkpoint(f"{folder()}/m", 1)
    module = _module()
    module.set_params(arguments, states, allow_missing=True, allow_extra=True)
    module.forward(mx.io.DataBatch([_batch()], [mx.nd.zeros((2,))]), is_train=True)
    module.backward()
    module.get_outputs()[0].asnumpy()


def _imports():
    net = _block()
    net.initialize()
    net.hybridize()
    net(_batch())
    net.export(f"{folder()}/net")
    return [b"%d\n" % len(text) + text + (folder() / "net-0000.params").read_bytes() for text in [(folder() / "net-symbol.json").read_bytes()]]


def _changed_import(data, rng, others):
    length, rest = data.split(b"\n", 1)
    text = mutated_json(rest[:int(length)], rng, others, _texts())
    return b"%d\n" % len(text) + text + rest[int(length):]


def _import(case):
    length, rest = case.split(b"\n", 1) if b"\n" in case else (b"0", case)
    length = int(length) if length.isdigit() and len(length) < 9 else 0
    block = gluon.SymbolBlock.imports(file(rest[:length], "i-symbol.json"), ["data"], file(rest[length:], "i.params"))
    out = block(_batch())
    for array in out if isinstance(out, list) else [out]:
        array.asnumpy()


def _structures():
    net = _block()
    net.initialize()
    net.hybridize()
    net(_batch())
    net.save(f"{folder()}/s")
    return [(folder() / "s-model.json").read_bytes()]


def _read_structure(case):
    net = _block()
    net.initialize()
    file(case, "t-model.json")
    net.save_parameters(f"{folder()}/t-model.params")
    net.load(f"{folder()}/t")
    with unless("traced with arguments of structure"):
        out = net(_batch())
        for each in out if isinstance(out, list) else [out]:  # the file says whether it is one
            each.asnumpy()


# -- what attributes hold --------------------------------------------------------------------------------------------------

def _initialized():
    weight = mx.sym.var("w", init=mx.init.Xavier(), shape=(3, 6), dtype="float32", lr_mult=2.0)
    net = mx.sym.FullyConnected(mx.sym.var("data"), weight, mx.sym.var("b", init=mx.init.Constant(2), __wd_mult__="0.5"), num_hidden=3)
    mixed = mx.sym.FullyConnected(net, mx.sym.var("v", init=mx.init.Normal(0.1)), no_bias=True, num_hidden=2)
    return [mx.sym.make_loss(n).tojson().encode() for n in (net, mixed)]


def _read_initializers(case):
    with unless("Unknown initialization pattern", "the network has no argument"):
        _initialize(case)


def _initialize(case):
    module = mx.mod.Module(mx.sym.load_json(case.decode("utf-8", "replace")), label_names=None, context=mx.cpu())
    module.bind([("data", (2, 6))], for_training=True)
    if sum(math.prod(a.shape) for a in module._exec_group.execs[0].arg_arrays) > _ELEMENTS:
        return
    module.init_params()
    module.init_optimizer(kvstore=None)
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 6))]), is_train=True)
    module.backward()
    module.update()


def _marked():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="f")
    return [net.tojson().encode(), registry.mark(net, "native", {}).tojson().encode()]


# -- states ----------------------------------------------------------------------------------------------------------------

def _trainer(kvstore=None):
    net = gluon.nn.Dense(2, in_units=3, prefix="d_")
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=kvstore, update_on_kvstore=kvstore is not None)
    with mx.autograd.record():
        loss = net(mx.nd.ones((2, 3))).sum()
    loss.backward()
    trainer.step(2)
    return trainer


def _read_trainer_states(case):
    trainer = _trainer("local" if len(case) % 2 else None)
    trainer.load_states(file(case, "t.states"))
    trainer.step(2, ignore_stale_grad=True)


def _read_module_states(case):
    module = _module()
    path = file(case, "m.states")
    module.load_optimizer_states(path)
    module.forward(mx.io.DataBatch([_batch()], [mx.nd.zeros((2,))]), is_train=True)
    module.backward()
    module.update()


def _module_states():
    module = _module()
    module.forward(mx.io.DataBatch([_batch()], [mx.nd.zeros((2,))]), is_train=True)
    module.backward()
    module.update()
    return [written(module.save_optimizer_states)]


def _states_changed(data, rng, others):
    from .readers import _changed_pickle
    return _changed_pickle(data, rng, others)


def _target(name, *given, **named):
    return target(f"networks.{name}", *given, **named)


TARGETS = [
    _target("json", _json, _read_json, text=True, structure=_changed, share=3),
    _target("run", _json, _run_json, text=True, structure=_changed),
    _target("parameters", _parameters, _read_parameters),
    _target("parameters_anew", lambda: _parameters()[:2], _read_parameters_anew),
    _target("checkpoint", _checkpoint, _read_checkpoint),
    _target("import", _imports, _import, structure=_changed_import),
    _target("structure", _structures, _read_structure, text=True, structure=_changed),
    _target("initializers", _initialized, _read_initializers, text=True, structure=_changed),
    _target("marked", _marked, _run_json, text=True, structure=_changed),
    _target("trainer_states", lambda: [written(_trainer().save_states)], _read_trainer_states, structure=_states_changed),
    _target("module_states", _module_states, _read_module_states, structure=_states_changed),
]
