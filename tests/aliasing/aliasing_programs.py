"""Programs whose arrays may share memory: executors, Module and Gluon; see `aliasing_cases`."""
import os
import tempfile

from aliasing_cases import array, flat, named, program, sequence, several

import mxnet as mx

# -- executors ---------------------------------------------------------------------------------------------------------
x, w = mx.sym.var("x"), mx.sym.var("w")
y = x * 2
GRAPHS = {
    "a variable": [x], "a variable twice": [x, x], "identity": [mx.sym.identity(x)], "BlockGrad": [mx.sym.BlockGrad(x)],
    "reshape": [mx.sym.reshape(x, shape=(-1,))], "reshape to the same": [mx.sym.reshape(x, shape=(2, 3))], "flatten": [mx.sym.flatten(x)],
    "expand_dims": [mx.sym.expand_dims(x, axis=0)], "squeeze": [mx.sym.squeeze(mx.sym.expand_dims(x, axis=0))],
    "reshape_like": [mx.sym.reshape_like(x, w)], "reshape of reshape": [mx.sym.reshape(mx.sym.flatten(x), shape=(3, 2))],
    "a variable and its shape": [x, mx.sym.reshape(x, shape=(-1,))], "a parameter's shape": [x + w, mx.sym.reshape(w, shape=(-1,))],
    "a parameter": [x + w, w], "a value twice": [y, y], "a value computed twice": [x * 2, x * 2],
    "a value and its shape": [y, mx.sym.reshape(y, shape=(-1,))],
    "two shapes of a value": [mx.sym.reshape(y, shape=(-1,)), mx.sym.expand_dims(y, axis=0)], "a value and its copy": [y, mx.sym.identity(y)],
    "two copies": [mx.sym.identity(x), mx.sym.identity(x)], "split into one": list(mx.sym.split(x, num_outputs=1)),
    "split into two": list(mx.sym.split(mx.sym.concat(x, x, dim=0), num_outputs=2, axis=0)),
    "relu of a shape": [mx.sym.relu(mx.sym.reshape(x, shape=(-1,)))],
    "relu, and what it is of": [y, mx.sym.relu(y)], "slice of all": [mx.sym.slice(x, begin=(0, 0), end=(2, 3))],
    "first rows": [mx.sym.slice_axis(x, axis=0, begin=0, end=1)],
    "transpose and back": [mx.sym.transpose(mx.sym.transpose(x))], "Cast to the same": [mx.sym.Cast(x, dtype="float32")],
    "concat of one": [mx.sym.concat(x, dim=0)],
    "sum of one": [mx.sym.add_n(x)], "stack of one": [mx.sym.stack(x)], "dropout in inference": [mx.sym.Dropout(x, p=0.5), x + 1],
    "dropout of nothing": [mx.sym.Dropout(y, p=0), y], "loop's rows": list(mx.sym.contrib.foreach(lambda d, s: (d, s), x, [w])[0:1]),
    "loop's state": [mx.sym.contrib.foreach(lambda d, s: (d, s), x, [w])[1][0]],
    "loop's state, reshaped": [mx.sym.contrib.foreach(lambda d, s: (d, [mx.sym.reshape(s[0], shape=(2, 3))]), x, [w])[1][0]],
    "loop's state is a row": [mx.sym.contrib.foreach(lambda d, s: (d + s[0], [d]), x, [mx.sym.sum(w, axis=0)])[1][0]],
    "while's variable": [mx.sym.contrib.while_loop(lambda a, b: mx.sym.sum(a) < 0, lambda a, b: ([a], [a, b]), [x, w], max_iterations=2)[1][0]],
    "branch": [mx.sym.contrib.cond(mx.sym.sum(x) > 0, lambda: mx.sym.identity(x), lambda: mx.sym.identity(w))],
    "branch, reshaped": [mx.sym.contrib.cond(mx.sym.sum(x) > 0, lambda: mx.sym.reshape(x, shape=(-1,)), lambda: mx.sym.reshape(w, shape=(-1,)))],
}


def bound(outputs, is_train, grad_req):
    symbol = mx.sym.Group(outputs)
    arguments = {n: array(2, 3) for n in symbol.list_arguments()}
    gradients = {n: mx.nd.zeros((2, 3)) for n in arguments} if grad_req != "null" else None
    executor = symbol.bind(mx.cpu(), arguments, args_grad=gradients, grad_req=grad_req)
    executor.forward(is_train=is_train)
    return {**arguments, **named("y", executor.forward(is_train=is_train))}


@several(GRAPHS)
def executor(outputs):
    return bound(outputs, False, "null")


@several(GRAPHS)
def training_executor(outputs):
    return bound(outputs, True, "write")


def traced(outputs, record=False, **flags):
    symbol = mx.sym.Group(outputs)
    names = symbol.list_inputs()
    arrays = [array(2, 3) for _ in names]
    for a in arrays:
        a.attach_grad()
    net = mx.gluon.SymbolBlock(symbol, [mx.sym.var(n) for n in names])
    net.hybridize(**flags)
    results = []
    for _ in range(3):
        with mx.autograd.record() if record else mx.autograd.pause():
            results.append(flat(net(*arrays)))
    return {**dict(zip(names, arrays)), **named("y", results[0]), **named("z", results[2])}


@several(GRAPHS)
def hybridized(outputs):
    return traced(outputs)


@several(GRAPHS)
def hybridized_recorded(outputs):
    return traced(outputs, record=True)


@several(GRAPHS)
def hybridized_static(outputs):
    return traced(outputs, static_alloc=True, static_shape=True)


@program
def outputs_of_an_executor():
    executor = mx.sym.reshape(x, shape=(-1,)).bind(mx.cpu(), {"x": array(2, 3)})
    first = executor.forward()[0]
    executor.forward()
    return {"x": executor.arg_arrays[0], "named x": executor.arg_dict["x"], "first": first, "second": executor.outputs[0],
            "by name": list(executor.output_dict.values())[0]}


@program
def reshaped_executor():
    first = (x * w).simple_bind(mx.cpu(), x=(4, 3), w=(4, 3))
    second = first.reshape(x=(2, 3), w=(2, 3))
    return {"x": first.arg_dict["x"], "x again": second.arg_dict["x"], "grad": first.grad_dict["x"], "grad again": second.grad_dict["x"]}


@program
def simple_bind():
    executor = (x * w).simple_bind(mx.cpu(), x=(2, 3), w=(2, 3))
    return {**named("argument", executor.arg_arrays), **named("gradient", executor.grad_arrays), **named("output", executor.forward())}


@program
def gradients_of_an_executor():
    executor = (x + w).simple_bind(mx.cpu(), x=(2, 3), w=(2, 3))
    executor.forward(is_train=True)
    head = array(2, 3)
    executor.backward(head)
    return {"head": head, **named("gradient", executor.grad_arrays)}


@program
def arguments_given_to_forward():
    executor, given = (x * 2).bind(mx.cpu(), {"x": array(2, 3)}), array(2, 3)
    executor.forward(x=given)
    return {"given": given, "bound": executor.arg_dict["x"]}


@program
def parameters_copied_to_an_executor():
    executor, given = (x * 2).bind(mx.cpu(), {"x": array(2, 3)}), array(2, 3)
    executor.copy_params_from({"x": given})
    return {"given": given, "bound": executor.arg_dict["x"]}


@program
def evaluated():
    given = array(2, 3)
    return {"x": given, **named("y", mx.sym.reshape(x, shape=(-1,)).eval(ctx=mx.cpu(), x=given))}


# -- Module ------------------------------------------------------------------------------------------------------------
def module(symbol, train=False):
    net = mx.mod.Module(symbol, data_names=["data"], label_names=None)
    net.bind([("data", (2, 3))], for_training=train, inputs_need_grad=train)
    net.init_params(mx.init.One())
    return net


data = mx.sym.var("data")


@several({"reshape": mx.sym.reshape(data, shape=(-1,)), "BlockGrad": mx.sym.BlockGrad(data), "flatten": mx.sym.flatten(data), "a layer":
          mx.sym.FullyConnected(data, num_hidden=2, name="fc"), "a parameter": mx.sym.Group([mx.sym.FullyConnected(data, num_hidden=2, name="fc"),
          mx.sym.reshape(mx.sym.var("fc_weight"), shape=(-1,))])})
def module_outputs(symbol):
    net, given = module(symbol), array(2, 3)
    net.forward(mx.io.DataBatch([given]), is_train=False)
    first = net.get_outputs()
    executor = net._exec_group.execs[0]
    return {"given": given, **named("y", first), **named("bound", executor.arg_arrays), **named("merged", net.get_outputs(merge_multi_context=True))}


@program
def module_outputs_after_the_next_batch():
    net = module(mx.sym.FullyConnected(data, num_hidden=2, name="fc"))
    net.forward(mx.io.DataBatch([array(2, 3)]), is_train=False)
    first = net.get_outputs()[0]
    net.forward(mx.io.DataBatch([array(2, 3)]), is_train=False)
    return {"first": first, "second": net.get_outputs()[0]}


@program
def module_parameters():
    net = module(mx.sym.FullyConnected(data, num_hidden=2, name="fc"))
    first, second = net.get_params()[0]["fc_weight"], net.get_params()[0]["fc_weight"]
    return {"first": first, "second": second, "bound": net._exec_group.execs[0].arg_dict["fc_weight"]}


@program
def module_parameters_given():
    net, given = module(mx.sym.FullyConnected(data, num_hidden=2, no_bias=True, name="fc")), array(2, 3)
    net.set_params({"fc_weight": given}, {})
    return {"given": given, "bound": net._exec_group.execs[0].arg_dict["fc_weight"], "returned": net.get_params()[0]["fc_weight"]}


@program
def module_initialized_with():
    net, given = mx.mod.Module(mx.sym.FullyConnected(data, num_hidden=2, no_bias=True, name="fc"), label_names=None), array(2, 3)
    net.bind([("data", (2, 3))], for_training=False)
    net.init_params(arg_params={"fc_weight": given})
    return {"given": given, "bound": net._exec_group.execs[0].arg_dict["fc_weight"], "returned": net.get_params()[0]["fc_weight"]}


@program
def module_predictions():
    net = module(mx.sym.reshape(data, shape=(0, 1, -1)))
    given = array(4, 3)
    joined = net.predict(mx.io.NDArrayIter(given, batch_size=2))
    apart = net.predict(mx.io.NDArrayIter(given, batch_size=2), merge_batches=False)
    return {"given": given, "joined": joined, **named("batch", flat(apart))}


@program
def module_input_gradients():
    net = module(mx.sym.FullyConnected(data, num_hidden=2, no_bias=True, name="fc"), train=True)
    net.forward(mx.io.DataBatch([array(2, 3)]), is_train=True)
    head = array(2, 2)
    net.backward([head])
    return {"head": head, **named("gradient", net.get_input_grads())}


@program
def buckets_share_parameters():
    def graph(size):
        out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc", flatten=False)
        return out, ["data"], None
    net = mx.mod.BucketingModule(graph, default_bucket_key=4)
    net.bind([("data", (4, 3))], for_training=False)
    net.init_params(mx.init.One())
    net.switch_bucket(2, [("data", (2, 3))])
    return {str(k): m._exec_group.execs[0].arg_dict["fc_weight"] for k, m in net._buckets.items()}


# -- Gluon -------------------------------------------------------------------------------------------------------------
nn = mx.gluon.nn
LAYERS = {
    "Dense": lambda: nn.Dense(2), "Dropout": lambda: nn.Dropout(0.5), "Dropout(0)": lambda: nn.Dropout(0), "Flatten": lambda: nn.Flatten(),
    "Activation": lambda: nn.Activation("relu"), "Lambda": lambda: nn.HybridLambda(lambda F, x: x),
    "Lambda: reshape": lambda: nn.HybridLambda(lambda F, x: F.reshape(x, (-1,))),
    "Lambda: method": lambda: nn.HybridLambda(lambda F, x: x.reshape((-1,))), "Lambda: by name": lambda: nn.HybridLambda("flatten"),
    "Lambda: twice": lambda: nn.HybridLambda(lambda F, x: (x, x)), "Lambda: list": lambda: nn.HybridLambda(lambda F, x: [F.flatten(x), x + 1]),
    "Lambda: slice": lambda: nn.HybridLambda(lambda F, x: F.slice_axis(x, axis=0, begin=0, end=1)),
    "Lambda: cast": lambda: nn.HybridLambda(lambda F, x: F.cast(x, "float32")),
    "Lambda: expand": lambda: nn.HybridLambda(lambda F, x: x.expand_dims(0)), "Lambda: squeeze": lambda: nn.HybridLambda(lambda F, x: F.squeeze(x)),
    "Lambda: identity": lambda: nn.HybridLambda(lambda F, x: F.identity(x)), "Lambda: stop": lambda: nn.HybridLambda(lambda F, x: F.BlockGrad(x)),
    "Sequential": lambda: sequential(nn.Flatten(), nn.HybridLambda(lambda F, x: F.reshape(x, (-1, 1)))),
    "Sequential of nothing": lambda: sequential(),
    "LayerNorm": lambda: nn.LayerNorm(), "BatchNorm": lambda: nn.BatchNorm(axis=1), "LeakyReLU": lambda: nn.LeakyReLU(0.1),
    "PReLU": lambda: nn.PReLU(), "ELU": lambda: nn.ELU(), "SELU": lambda: nn.SELU(), "GELU": lambda: nn.GELU(), "Swish": lambda: nn.Swish(),
    "Embedding": lambda: nn.Embedding(60, 2), "Identity": lambda: mx.gluon.contrib.nn.Identity(),
    "Concurrent": lambda: concurrent(mx.gluon.contrib.nn.Identity()),
    "Concurrent of two": lambda: concurrent(mx.gluon.contrib.nn.Identity(), mx.gluon.contrib.nn.Identity()),
    "a parameter": lambda: WithParameter("weight"), "a parameter's shape": lambda: WithParameter("shape"),
    "a parameter twice": lambda: WithParameter("twice"),
    "a constant": lambda: WithParameter("constant"), "a parameter and the input": lambda: WithParameter("both"),
}


def sequential(*blocks):
    net = nn.HybridSequential()
    net.add(*blocks)
    return net


def concurrent(*blocks):
    net = mx.gluon.contrib.nn.HybridConcurrent(axis=0)
    net.add(*blocks)
    return net


class WithParameter(mx.gluon.HybridBlock):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(2, 3), init="ones")
            self.constant = self.params.get_constant("constant", sequence(2, 3))

    def hybrid_forward(self, F, x, weight, constant):
        x = x * 2
        return {"weight": lambda: (x, weight), "shape": lambda: (x, F.reshape(weight, (-1,))), "twice": lambda: (x, weight, weight),
                "constant": lambda: (x + weight, constant), "both": lambda: (F.flatten(weight), F.flatten(x))}[self.kind]()


def run_block(make, hybridize, record, calls=3, **flags):
    net = make()
    net.initialize(mx.init.One())
    if hybridize:
        net.hybridize(**flags)
    given = array(2, 3)
    results = []
    for _ in range(calls):
        with mx.autograd.record() if record else mx.autograd.pause():
            results.append(flat(net(given)))
    parameters = {f"p{i}": p.data() for i, p in enumerate(net.collect_params().values())}
    return {"x": given, **named("y", results[0]), **named("z", results[-1]), **parameters}


@several(LAYERS)
def layer(make):
    return run_block(make, False, False)


@several(LAYERS)
def layer_recorded(make):
    return run_block(make, False, True)


@several(LAYERS)
def layer_hybridized(make):
    return run_block(make, True, False)


@several(LAYERS)
def layer_hybridized_recorded(make):
    return run_block(make, True, True)


@several(LAYERS)
def layer_hybridized_static(make):
    return run_block(make, True, False, static_alloc=True, static_shape=True)


class Numpy(mx.gluon.HybridBlock):
    """A block whose forward is written with ``mx.np``."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.held = mx.np.array(sequence(2, 3))

    def forward(self, x):
        return self.function(x, self.held)


NUMPY_FORWARDS = {
    "x": lambda x, c: x, "x twice": lambda x, c: (x, x), "reshape": lambda x, c: x.reshape(-1), "np.reshape": lambda x, c: mx.np.reshape(x, (3, 2)),
    "row": lambda x, c: x[0],
    "rows": lambda x, c: x[0:1], "all": lambda x, c: x[:], "new axis": lambda x, c: x[None], "T and back": lambda x, c: x.T.T, "ravel": lambda x,
    c: mx.np.ravel(x),
    "squeeze": lambda x, c: mx.np.squeeze(x[None]), "expand_dims": lambda x, c: mx.np.expand_dims(x, 0), "detach": lambda x, c: x.detach(),
    "held": lambda x, c: c,
    "held and x": lambda x, c: (c + 1, c, x + 1), "a value and its shape": lambda x, c: shapes_of(x * 2), "split": lambda x, c: mx.np.split(x, 2),
    "split in one": lambda x, c: mx.np.split(x, 1),
    "astype": lambda x, c: x.astype("float32", copy=False), "copy": lambda x, c: x.copy(), "broadcast_to": lambda x,
    c: mx.np.broadcast_to(x, (2, 3)), "moveaxis": lambda x, c: mx.np.moveaxis(x, 0, 0),
    "flatten": lambda x, c: x.flatten(), "concatenate": lambda x, c: mx.np.concatenate([x]), "swapaxes": lambda x, c: mx.np.swapaxes(x, 0, 0),
    "atleast": lambda x, c: mx.np.atleast_2d(x),
    "npx.relu": lambda x, c: mx.npx.relu(x), "npx.reshape": lambda x, c: mx.npx.reshape(x, (-4,)), "masked": lambda x, c: x[x > 0],
    "indexed": lambda x, c: x[mx.np.array([0, 1])],
}


def shapes_of(value):
    return value, value.reshape(-1), value[None]


def run_numpy(function, hybridize, record):
    with mx.util.np_shape(True), mx.util.np_array(True):
        net = Numpy(function)
        net.initialize()
        if hybridize:
            net.hybridize()
        given = mx.np.array(sequence(2, 3))
        results = []
        for _ in range(3):
            with mx.autograd.record() if record else mx.autograd.pause():
                results.append(flat(net(given)))
        return {"x": given, "held": net.held, **named("y", results[0]), **named("z", results[2])}


@several(NUMPY_FORWARDS)
def numpy_forward(function):
    return run_numpy(function, False, False)


@several(NUMPY_FORWARDS)
def numpy_forward_recorded(function):
    return run_numpy(function, False, True)


@several(NUMPY_FORWARDS)
def numpy_forward_hybridized(function):
    return run_numpy(function, True, False)


@several({name: name for name in ("RNNCell", "LSTMCell", "GRUCell", "SequentialRNNCell", "DropoutCell", "ZoneoutCell", "ResidualCell")})
def recurrent_cell(name):
    return cell(name, False)


@several({name: name for name in ("RNNCell", "LSTMCell", "GRUCell", "SequentialRNNCell", "DropoutCell", "ZoneoutCell", "ResidualCell")})
def recurrent_cell_hybridized(name):
    return cell(name, True)


def cell(name, hybridize):
    rnn = mx.gluon.rnn
    inner = {"SequentialRNNCell": rnn.HybridSequentialRNNCell, "DropoutCell": lambda: rnn.DropoutCell(0.5),
    "ZoneoutCell": lambda: rnn.ZoneoutCell(rnn.RNNCell(3), 0.5, 0.5),
             "ResidualCell": lambda: rnn.ResidualCell(rnn.RNNCell(3))}
    net = inner[name]() if name in inner else getattr(rnn, name)(3)
    if name == "SequentialRNNCell":
        net.add(rnn.RNNCell(3))
        net.add(rnn.LSTMCell(3))
    net.initialize()
    if hybridize:
        net.hybridize()
    given, states = array(2, 3), net.begin_state(batch_size=2)
    out, new = net(given, states)
    return {"x": given, **named("begin", states), "out": out, **named("state", new),
        **{f"p{i}": p.data() for i, p in enumerate(net.collect_params().values())}}


@several({name: name for name in ("RNN", "LSTM", "GRU")})
def recurrent_layer(name):
    net = getattr(mx.gluon.rnn, name)(3)
    net.initialize()
    given = array(1, 2, 3)
    states = net.begin_state(2)
    out, new = net(given, states)
    return {"x": given, **named("begin", states), "out": out, **named("state", flat(new))}


@program
def data_of_a_parameter():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    return {"first": net.weight.data(), "second": net.weight.data(), "listed": net.weight.list_data()[0], "grad": net.weight.grad(),
        "listed grad": net.weight.list_grad()[0]}


@program
def parameter_set():
    net, given = nn.Dense(2, in_units=3), array(2, 3)
    net.initialize()
    before = net.weight.data()
    net.weight.set_data(given)
    return {"given": given, "before": before, "data": net.weight.data()}


@program
def parameter_set_before_it_has_a_shape():
    net, given = nn.Dense(2, use_bias=False), array(2, 3)
    net.initialize()
    net.weight.set_data(given)
    net(array(2, 3))
    return {"given": given, "data": net.weight.data()}


@program
def parameters_loaded():
    net, given = nn.Dense(2, in_units=3, use_bias=False), array(2, 3)
    path = os.path.join(tempfile.mkdtemp(), "net.params")
    mx.nd.save(path, {"weight": given})
    net.load_parameters(path)
    return {"given": given, "data": net.weight.data()}


@program
def parameters_loaded_from_a_dictionary():
    net, given = nn.Dense(2, in_units=3, use_bias=False), array(2, 3)
    net.initialize()
    net.collect_params().load_dict({net.weight.name: given})
    return {"given": given, "data": net.weight.data()}


@program
def parameter_cast_to_the_same():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    before = net.weight.data()
    net.cast("float32")
    return {"before": before, "after": net.weight.data()}


@program
def parameter_moved_to_the_same():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    before = net.weight.data()
    net.collect_params().reset_ctx(mx.cpu())
    return {"before": before, "after": net.weight.data()}


@program
def constant_of():
    given = array(2, 3)
    constant = mx.gluon.Constant("c", given)
    constant.initialize()
    return {"given": given, "value": constant.value, "data": constant.data()}


@program
def parameters_shared():
    first = nn.Dense(2, in_units=3)
    second = nn.Dense(2, in_units=3, params=first.params)
    first.initialize()
    return {"first": first.weight.data(), "second": second.weight.data()}


@program
def hooks():
    seen = {}
    net, given = nn.HybridLambda(lambda F, x: F.reshape(x, (-1,))), array(2, 3)
    net.register_forward_pre_hook(lambda block, args: seen.update(before=args[0]))
    net.register_forward_hook(lambda block, args, out: seen.update(inside=args[0], after=out))
    return {"x": given, "y": net(given), **seen}


@several({"even": True, "odd": False})
def split_data(even):
    given = array(4, 3)
    return {"x": given, **named("y", mx.gluon.utils.split_data(given, 2 if even else 3, even_split=even))}


@several({"one": [mx.cpu(0)], "two": [mx.cpu(0), mx.cpu(1)]})
def split_and_load(contexts):
    given = array(4, 3)
    return {"x": given, **named("y", mx.gluon.utils.split_and_load(given, contexts))}
