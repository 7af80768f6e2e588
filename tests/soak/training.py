"""Loops of training at tiny sizes, with what programs do in between: save, load, fail, build other networks, copy to other devices, use threads.

Each loop is a function ``loop(rng, folder)`` that gives ``step(i)``.
"""
import collections
import contextlib
import os
import threading

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd, sym
from mxnet.gluon import nn, rnn

BATCH, FEATURES, CLASSES = 4, 6, 3


class Expected(Exception):
    """What the loops raise themselves."""


def dense(classes=CLASSES, ctx=None, backend=None):
    """A small network; with a backend it is compiled at its first call."""
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(classes))
    net.initialize(ctx=ctx)
    if backend is not None:
        net(nd.ones((1, FEATURES), ctx=ctx))
        net.hybridize(backend=backend)
    return net


def _batch(rng, rows=BATCH, ctx=None):
    data, label = rng.standard_normal((rows, FEATURES), dtype="float32"), rng.integers(0, CLASSES, rows).astype("float32")
    return nd.array(data, ctx=ctx), nd.array(label, ctx=ctx)


def _in_threads(call, arguments, threads=3):
    """The results. Not by concurrent.futures, which loses interrupts of its own: the end of its threads goes to a weak dictionary's callback."""
    arguments = list(arguments)
    results, errors = [None] * len(arguments), []

    def work(first):
        try:
            for i in range(first, len(arguments), threads):
                results[i] = call(arguments[i])
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    try:
        for worker in workers:
            worker.start()
    finally:
        for worker in workers:
            if worker.ident is not None:
                worker.join()
    if errors:
        raise errors[0]
    return results


def _fails(function, *errors):
    with contextlib.suppress(*errors):
        function()
        raise AssertionError(f"{function} was to fail")


def _finite(array):
    if not np.isfinite(array.asnumpy()).all():
        raise AssertionError(f"a step gave {array}")


def imperative(rng, folder):
    """A Trainer on a network that is called operator by operator, on one device and on two."""
    devices = [mx.cpu(0), mx.cpu(1)]
    net, pair = dense(), dense(ctx=devices)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    net(_batch(rng)[0])
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    twice = gluon.Trainer(pair.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9}, update_on_kvstore=False)
    metric = mx.metric.Accuracy()
    params, states = os.path.join(folder, "net.params"), os.path.join(folder, "net.states")

    def train():
        data, label = _batch(rng)
        with autograd.record():
            out = net(data)
            error = loss(out, label)
        error.backward()
        trainer.step(BATCH)
        metric.update([label], [out])

    def on_two():
        parts = [_batch(rng, ctx=device) for device in devices]
        with autograd.record():
            errors = [loss(pair(data), label) for data, label in parts]
        autograd.backward(errors)
        twice.step(2 * BATCH)
        _finite(errors[0].as_in_context(devices[1]) + errors[1])

    def higher_order():
        x = nd.array(rng.standard_normal(5))
        x.attach_grad()
        with autograd.record():
            y = (x ** 3 * nd.sin(x)).sum()
            first = autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
            second = (first ** 2).sum()
        second.backward()
        _finite(x.grad)

    def wrong():
        data, label = _batch(rng)

        def in_record():
            with autograd.record():
                out = net(data)
                raise Expected(out)

        def in_shapes():
            with autograd.record():
                return loss(nd.dot(net(data), nd.ones((CLASSES + 1, 2))), label)

        def in_backward():
            with autograd.record():
                out = net(data)
            out.backward()
            out.backward()

        _fails(in_record, Expected)
        _fails(in_shapes, mx.MXNetError)
        _fails(in_backward, mx.MXNetError)
        _fails(lambda: trainer.step(BATCH) or net.load_parameters(os.path.join(folder, "none")), mx.MXNetError, UserWarning, OSError)

    def store():
        net.save_parameters(params)
        trainer.save_states(states)
        net.load_parameters(params)
        trainer.load_states(states)
        trainer.set_learning_rate(0.001 + 0.01 * rng.random())
        metric.get()
        metric.reset()

    def anew():
        other = dense()
        own = gluon.Trainer(other.collect_params(), str(rng.choice(["sgd", "nag", "rmsprop", "adagrad", "signum", "ftrl"])))
        for _ in range(2):
            data, label = _batch(rng)
            with autograd.record():
                error = loss(other(data), label)
            error.backward()
            own.step(BATCH)
        mx.np.dot(mx.np.ones((3, 4)), mx.np.ones((4, 2)))

    def threads():
        data = [_batch(rng)[0] for _ in range(6)]
        for out in _in_threads(net, data):
            _finite(out)

    def custom():
        data, _ = _batch(rng)
        data.attach_grad()
        with autograd.record():
            out = nd.Custom(data, op_type="soak_square")
        out.backward()
        _finite(data.grad)

    def sparse():
        rows = nd.sparse.row_sparse_array((np.ones((2, 3), "float32"), [0, 2]), shape=(5, 3))
        _finite(nd.sparse.dot(rows.tostype("csr"), nd.ones((3, 2))) + rows.tostype("default")[:, :2])

    return _Every(train, {7: on_two, 15: higher_order, 60: wrong, 300: store, 350: anew, 400: threads, 70: custom, 80: sparse})


@mx.operator.register("soak_square")
class _Square(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        """What computes it."""
        class Square(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] ** 2)

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])

        return Square()


class _Every:
    """``main`` at each step, and others at each so many."""

    def __init__(self, main, others):
        self.main, self.others = main, others
        self.count = collections.Counter()
        for function in others.values():  # each once before anything is measured
            function()

    def __call__(self, i):
        self.main()
        self.count[self.main.__name__] += 1
        for number, function in self.others.items():
            if i % number == number - 1:
                function()
                self.count[function.__name__] += 1


def hybridized(rng, folder):
    """A hybridized network, with batches of many shapes, and inference between the steps."""
    net = dense()
    net.hybridize()
    image = nn.HybridSequential()
    image.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Dense(CLASSES))
    image.initialize()
    image.hybridize(static_alloc=True)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    for_image = gluon.Trainer(image.collect_params(), "adam")
    metric = mx.metric.Accuracy()

    def train():
        data, label = _batch(rng, int(rng.integers(1, 9)))
        with autograd.record():
            out = net(data)
            error = loss(out, label)
        error.backward()
        trainer.step(len(data))
        metric.update(label, out)

    def infer():
        for rows in (1, BATCH):
            _finite(net(_batch(rng, rows)[0]))

    def images():
        size = int(rng.integers(4, 8))
        data = nd.array(rng.standard_normal((2, 3, size, size)))
        with autograd.record():
            error = loss(image(data), nd.array([0, 1]))
        error.backward()
        for_image.step(2)
        _finite(image(data))

    def wrong():
        _fails(lambda: net(nd.ones((2, FEATURES + 1))), mx.MXNetError)

        def in_record():
            with autograd.record():
                raise Expected(loss(net(_batch(rng)[0]), nd.zeros(BATCH)))

        _fails(in_record, Expected)

    def store():
        path = os.path.join(folder, "hybrid")
        net.export(path, 0)
        again = gluon.SymbolBlock.imports(path + "-symbol.json", ["data"], path + "-0000.params")
        _finite(again(_batch(rng)[0]))
        net.save_parameters(path)
        net.load_parameters(path)
        metric.reset()

    def anew():
        other = nn.HybridSequential()
        other.add(nn.Dense(int(rng.integers(2, 5))), nn.BatchNorm(), nn.Dropout(0.1))
        other.initialize()
        other.hybridize(static_alloc=bool(rng.integers(2)))
        data, _ = _batch(rng)
        with autograd.record():
            out = other(data)
        out.backward()
        other(data)

    def compiled():
        # A backend that is named compiles at the first call.
        _finite(dense(backend="openvino")(_batch(rng)[0]))

    def hot():
        # So long that the graph is compiled when it has proved worth it; training drops what was compiled.
        data, _ = _batch(rng, 1)
        for _ in range(2000):
            net(data)

    def threads():
        for out in _in_threads(net, [_batch(rng, 1 + i)[0] for i in range(6)]):
            _finite(out)

    def again():
        net.hybridize()  # drops what was traced

    return _Every(train, {6: infer, 11: images, 60: wrong, 600: store, 500: anew, 450: threads, 2500: compiled, 10000: hot, 800: again})


def module(rng, folder):
    """Module on two devices; BucketingModule, new executors, checkpoints and monitors in between."""
    def network(hidden=8):
        hidden = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=hidden, name="fc1"), act_type="relu")
        return sym.SoftmaxOutput(sym.FullyConnected(sym.BatchNorm(hidden, name="bn"), num_hidden=CLASSES, name="fc2"), name="softmax")

    def bound(contexts, rows=BATCH):
        made = mx.mod.Module(network(), context=contexts)
        made.bind([("data", (rows, FEATURES))], [("softmax_label", (rows,))])
        made.init_params(mx.init.Xavier())
        made.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.01, "momentum": 0.9})
        return made

    def batch(rows=BATCH):
        data, label = _batch(rng, rows)
        return mx.io.DataBatch([data], [label], pad=0)

    one, two = bound(mx.cpu()), bound([mx.cpu(0), mx.cpu(1)])
    metric = mx.metric.create(["acc", "ce"] if rng.integers(2) else "acc")

    def train():
        data = batch()
        one.forward_backward(data)
        one.update()
        one.update_metric(metric, data.label)

    def on_two():
        data = batch()
        two.forward_backward(data)
        two.update()
        two.update_metric(metric, data.label)

    def infer():
        one.forward(batch(), is_train=False)
        _finite(one.get_outputs()[0])

    def reshape():
        rows = int(rng.integers(1, 7))
        data = batch(rows)
        one.reshape([("data", (rows, FEATURES))], [("softmax_label", (rows,))])
        one.forward_backward(data)
        one.update()
        one.reshape([("data", (BATCH, FEATURES))], [("softmax_label", (BATCH,))])

    def wrong():
        _fails(lambda: one.forward(mx.io.DataBatch([nd.ones((BATCH, FEATURES + 1))], [nd.zeros(BATCH)])), mx.MXNetError, ValueError)
        one.reshape([("data", (BATCH, FEATURES))], [("softmax_label", (BATCH,))])
        _fails(lambda: network().infer_shape(data=(2, 3), fc1_weight=(1, 1)), mx.MXNetError)
        _fails(lambda: network().simple_bind(mx.cpu(), data=(2, 3), no_such=(1,)), mx.MXNetError, ValueError, TypeError)

    def store():
        prefix = os.path.join(folder, "module")
        one.save_checkpoint(prefix, 0, save_optimizer_states=True)
        again = mx.mod.Module.load(prefix, 0, load_optimizer_states=True)
        again.bind([("data", (BATCH, FEATURES))], [("softmax_label", (BATCH,))])
        again.init_optimizer()
        again.forward_backward(batch())
        again.update()
        metric.reset()

    def anew():
        executor = network(int(rng.integers(4, 9))).simple_bind(mx.cpu(), data=(3, FEATURES), softmax_label=(3,))
        executor.forward(is_train=True, data=_batch(rng, 3)[0])
        executor.backward()
        executor.forward(is_train=False)

    def fit():
        data = mx.io.NDArrayIter(rng.standard_normal((12, FEATURES), dtype="float32"), np.arange(12) % CLASSES, BATCH, last_batch_handle="pad")
        other = mx.mod.Module(network())
        other.fit(data, eval_data=data, num_epoch=1, optimizer="adam", batch_end_callback=mx.callback.Speedometer(BATCH, 1000),
                  monitor=mx.mon.Monitor(2))
        other.predict(mx.io.PrefetchingIter(mx.io.ResizeIter(data, 2)))

    def buckets():
        def generate(length):
            data = sym.mean(sym.Embedding(sym.var("data"), input_dim=9, output_dim=4, name="embed"), axis=1)
            return sym.SoftmaxOutput(sym.FullyConnected(data, num_hidden=2, name="fc"), name="softmax"), ("data",), ("softmax_label",)

        made = mx.mod.BucketingModule(generate, default_bucket_key=5)
        made.bind([("data", (2, 5))], [("softmax_label", (2,))])
        made.init_params()
        made.init_optimizer()
        for length in (5, 3, 4):
            made.forward_backward(mx.io.DataBatch([nd.ones((2, length))], [nd.zeros(2)], bucket_key=length,
                                                  provide_data=[("data", (2, length))], provide_label=[("softmax_label", (2,))]))
            made.update()

    return _Every(train, {7: on_two, 8: infer, 50: reshape, 80: wrong, 500: store, 450: anew, 1100: fit, 900: buckets})


def lstm(rng, folder):
    """Recurrent layers: the fused LSTM hybridized and not, cells that are unrolled, GRU, and the symbolic way."""
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.lstm = rnn.LSTM(5, layout="NTC")
                self.out = nn.Dense(CLASSES, flatten=False)

        def hybrid_forward(self, F, x, *states):
            out, states = self.lstm(x, list(states))
            return self.out(out), states

    net, plain = Net(), rnn.LSTM(5, layout="NTC")
    net.initialize()
    net.hybridize()
    plain.initialize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    for_plain = gluon.Trainer(plain.collect_params(), "sgd")
    metric = mx.metric.Perplexity(ignore_label=None)
    held = {"states": net.lstm.begin_state(2)}

    def sequence(length, rows=2):
        return (nd.array(rng.standard_normal((rows, length, FEATURES), dtype="float32")),
                nd.array(rng.integers(0, CLASSES, (rows, length)).astype("float32")))

    def train():
        # Back through time, as far as a batch: the states go on without their history.
        data, label = sequence(int(rng.integers(1, 5)))
        states = [s.detach() for s in held["states"]]
        with autograd.record():
            out, held["states"] = net(data, *states)
            error = loss(out, label).mean()
        error.backward()
        trainer.step(1)
        metric.update([label], [nd.softmax(out)])

    def fused():
        data, _ = sequence(3)
        with autograd.record():
            error = (plain(data) ** 2).sum()
        error.backward()
        gluon.utils.clip_global_norm([p.grad() for p in plain.collect_params().values()], 1.0)
        for_plain.step(1)
        _finite(plain(data))

    def infer():
        out, _ = net(sequence(4, 1)[0], *net.lstm.begin_state(1))
        _finite(out)

    def cells():
        cell = rnn.SequentialRNNCell()
        for part in (rnn.LSTMCell(4), rnn.GRUCell(4), rnn.RNNCell(3)):
            cell.add(part)
        cell.initialize()
        if rng.integers(2):
            cell.hybridize()
        data, _ = sequence(3)
        with autograd.record():
            outputs, _ = cell.unroll(3, data, merge_outputs=True)
        outputs.backward()

    def wrong():
        _fails(lambda: net(nd.ones((2, 3, FEATURES + 1)), *net.lstm.begin_state(2)), mx.MXNetError)
        _fails(lambda: net(sequence(3)[0], *net.lstm.begin_state(3)), mx.MXNetError)
        _fails(lambda: plain(nd.ones((2, 3))), mx.MXNetError, ValueError)

    def store():
        path = os.path.join(folder, "lstm")
        net.save_parameters(path + ".params")
        net.load_parameters(path + ".params")
        trainer.save_states(path + ".states")
        trainer.load_states(path + ".states")
        metric.get()
        metric.reset()

    def anew():
        for other in (rnn.GRU(4, bidirectional=True), rnn.RNN(4), rnn.LSTM(4, num_layers=2, dropout=0.1)):
            other.initialize()
            other.hybridize()
            data = nd.array(rng.standard_normal((3, 2, FEATURES)))
            with autograd.record():
                out = other(data)
            out.backward()

    def symbolic():
        stack = mx.rnn.FusedRNNCell(4, num_layers=1, mode="lstm", prefix="lstm_")
        outputs, _ = stack.unroll(3, sym.var("data"), layout="TNC", merge_outputs=True)
        executor = outputs.simple_bind(mx.cpu(), data=(3, 2, FEATURES))
        executor.forward(is_train=True)
        executor.backward(nd.ones((3, 2, 4)))
        unfused, _ = stack.unfuse().unroll(3, sym.var("data"), layout="TNC", merge_outputs=True)
        unfused.simple_bind(mx.cpu(), data=(3, 2, FEATURES)).forward()

    def threads():
        for out, _ in _in_threads(lambda data: net(data, *net.lstm.begin_state(1)), [sequence(2 + i, 1)[0] for i in range(4)]):
            _finite(out)

    def compiled():
        # As any of these is when it has run for long enough, which is a matter of time: 798 modules are imported then, and threads started.
        other = Net()
        other.initialize()
        other.hybridize(backend="openvino")
        for out, _ in _in_threads(lambda data: other(data, *other.lstm.begin_state(1)), [sequence(3, 1)[0] for _ in range(3)]):
            _finite(out)

    return _Every(train, {5: fused, 6: infer, 300: cells, 60: wrong, 400: store, 900: anew, 1000: symbolic, 450: threads, 2500: compiled})


LOOPS = {loop.__name__: loop for loop in (imperative, hybridized, module, lstm)}
