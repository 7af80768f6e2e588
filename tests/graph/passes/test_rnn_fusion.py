"""Recurrent cells that a program unrolled run as a layer, and give what they gave step by step."""
import collections

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon import nn, rnn
from mxnet.graph import GraphRunner
from mxnet.graph.program import operator_of


class Unrolled(mx.gluon.HybridBlock):
    """A cell over 5 steps."""

    def __init__(self, cell, layout="NTC", merge=True, returns_all=True):
        super().__init__()
        self.cell, self.layout, self.merge, self.returns_all = cell, layout, merge, returns_all

    def hybrid_forward(self, F, x):
        outputs, states = self.cell.unroll(5, x, layout=self.layout, merge_outputs=self.merge)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        return [*outputs, *states] if self.returns_all else outputs[-1]


class Stepwise(mx.gluon.HybridBlock):
    """Two cells, the upper one fed at each step with the lower one's output, and perhaps the lower one with the upper one's."""

    def __init__(self, feeds_back):
        super().__init__()
        self.lower, self.upper, self.feeds_back = rnn.LSTMCell(32, input_size=32), rnn.LSTMCell(32, input_size=32), feeds_back

    def hybrid_forward(self, F, x, h, c):
        low, high, outputs = [h, c], [h * 2, c], []
        for t in range(3):
            step = F.squeeze(F.slice_axis(x, axis=1, begin=t, end=t + 1), axis=1)
            given = outputs[-1] if self.feeds_back and outputs else step
            between, low = self.lower(given, low)
            out, high = self.upper(F.relu(between), high)
            outputs.append(out)
        return F.stack(*outputs, axis=0), outputs[0] + low[0], high[1]


def results(net, *data):
    """Outputs and gradients, imperatively and hybridized; and what is said of the graph."""
    net.initialize(mx.init.Uniform(0.5))
    found = []
    for hybridized in (False, True):
        net.hybridize(hybridized)
        arrays = [mx.nd.array(d) for d in data]
        for a in arrays:
            a.attach_grad()
        with mx.autograd.record():
            outputs = net(*arrays)
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            head = sum(((i + 1) * o * o).sum() for i, o in enumerate(outputs))
        head.backward()
        gradients = [a.grad for a in arrays] + [p.grad() for p in net.collect_params().values()]
        scored = net(*arrays)
        found.append([o.asnumpy() for o in (*outputs, *gradients, *(scored if isinstance(scored, (list, tuple)) else [scored]))])
    return found, net.explain()


def operators(symbol, is_train=True):
    """The number of each operator in a graph."""
    module = GraphRunner(symbol if isinstance(symbol, mx.sym.Symbol) else mx.sym.Group(symbol)).lowered(is_train, torch.device("cpu"), [])
    return collections.Counter(op.name for op in map(operator_of, module.graph.nodes) if op is not None)


def data(*shape, seed=0):
    return np.random.RandomState(seed).normal(size=shape).astype("float32")


def agree(found):
    stepwise, layer = found
    assert len(stepwise) == len(layer)
    for a, b in zip(stepwise, layer):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5 + 1e-6 * np.abs(a).max())  # sums in another order


@pytest.mark.parametrize("layout, merge, returns_all", [("NTC", True, True), ("TNC", True, True), ("NTC", False, True), ("TNC", False, False)])
def test_an_unrolled_cell_runs_as_a_layer(layout, merge, returns_all):
    shape = (2, 5, 7) if layout == "NTC" else (5, 2, 7)
    found, said = results(Unrolled(rnn.LSTMCell(32, input_size=7), layout, merge, returns_all), data(*shape))
    agree(found)
    assert "recurrence: 5 steps of an LSTM cell run as one layer" in said


CELLS = {"GRU": lambda: rnn.GRUCell(32, input_size=7), "RNN, tanh": lambda: rnn.RNNCell(32, input_size=7),
         "RNN, relu": lambda: rnn.RNNCell(32, activation="relu", input_size=7)}


@pytest.mark.parametrize("layout, merge", [("NTC", True), ("TNC", False)])
@pytest.mark.parametrize("kind", CELLS)
def test_other_cells_run_as_layers(kind, layout, merge):
    net = Unrolled(CELLS[kind](), layout, merge)
    found, said = results(net, data(2, 5, 7) if layout == "NTC" else data(5, 2, 7))
    agree(found)
    assert ("recurrence: 5 steps of a GRU cell run as one layer" in said) is (kind == "GRU")  # the graph for scoring
    for is_train in (True, False):
        left, steps = operators(net(mx.sym.var("data")), is_train), 0 if is_train or kind == "GRU" else 5
        assert (left["RNN"], left["FullyConnected"]) == (not steps, 2 * steps)


@pytest.mark.parametrize("cell", [mx.rnn.GRUCell, mx.rnn.RNNCell, mx.rnn.LSTMCell])
def test_cells_of_the_symbolic_module_run_as_layers(cell):
    outputs, _ = cell(8).unroll(4, mx.sym.var("data"), layout="NTC", merge_outputs=True)
    left = operators(outputs)
    assert (left["RNN"], left["FullyConnected"]) == (1, 0)


def test_a_gru_that_keeps_another_state_stays_as_it_is():
    class Other(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Dense(24, in_units=4), nn.Dense(24, in_units=8)

        def hybrid_forward(self, F, x, h):
            for _ in range(3):
                a, b = F.SliceChannel(self.first(x), num_outputs=3), F.SliceChannel(self.second(h), num_outputs=3)
                reset, update = F.sigmoid(a[0] + b[0]), F.sigmoid(a[1] + b[1])
                new = F.tanh(a[2] + reset * b[2])
                h = (1 - update) * new + update * new  # not of the state before
            return h

    found, said = results(Other(), data(2, 4), data(2, 8))
    agree(found)
    assert "recurrence" not in said


def test_each_cell_of_a_stack_is_one_layer():
    cells = rnn.HybridSequentialRNNCell()
    for size in (7, 32):
        cells.add(rnn.LSTMCell(32, input_size=size))
    net = Unrolled(cells)
    found, said = results(net, data(3, 5, 7))
    agree(found)
    assert said.count("recurrence: 5 steps") == 2
    left = operators(net(mx.sym.var("data")))
    assert (left["RNN"], left["FullyConnected"], left["SliceChannel"], left["stack"]) == (2, 0, 0, 0)  # no step of the lower layer is left


def test_cells_that_a_loop_steps_by_turns_are_two_layers():
    net = Stepwise(False)
    found, said = results(net, data(2, 3, 32), data(2, 32), data(2, 32))
    agree(found)
    assert said.count("recurrence: 3 steps") == 2
    left = operators(net(*map(mx.sym.var, "xhc")))
    assert (left["RNN"], left["FullyConnected"], left["relu"]) == (2, 0, 3)


class EncoderAndDecoder(mx.gluon.HybridBlock):
    """A cell that starts from the states in which another ended."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = rnn.LSTMCell(32, input_size=7), rnn.LSTMCell(32, input_size=3)

    def hybrid_forward(self, F, x, y):
        _, states = self.encoder.unroll(4, x, layout="NTC", merge_outputs=True)
        return self.decoder.unroll(5, y, begin_state=states, layout="NTC", merge_outputs=True)[0]


def test_a_layer_starts_from_the_states_of_another():
    net = EncoderAndDecoder()
    found, said = results(net, data(3, 4, 7), data(3, 5, 3))
    agree(found)
    assert "recurrence: 4 steps" in said and "recurrence: 5 steps" in said
    left = operators(net(mx.sym.var("x"), mx.sym.var("y")))
    assert (left["RNN"], left["FullyConnected"]) == (2, 0)


def test_a_network_that_reads_its_own_output_stays_as_it_is():
    found, said = results(Stepwise(True), data(2, 3, 32), data(2, 32), data(2, 32))
    agree(found)
    assert "recurrence" not in said


class Watched(mx.gluon.HybridBlock):
    """Needs each cell state."""

    def __init__(self):
        super().__init__()
        self.cell = rnn.LSTMCell(32, input_size=4)

    def hybrid_forward(self, F, x, h, c):
        total, states = 0, [h, c]
        for _ in range(3):
            _, states = self.cell(x, states)
            total = total + states[1]
        return total


def test_a_program_that_needs_what_is_between_gets_it():
    found, said = results(Watched(), data(2, 4), data(2, 32), data(2, 32))
    agree(found)
    assert "recurrence" not in said


def test_other_activations_are_no_layer():
    found, said = results(Unrolled(rnn.LSTMCell(32, input_size=7, activation="relu")), data(2, 5, 7))
    agree(found)
    assert "recurrence" not in said


def test_without_fusion_there_is_none(monkeypatch):
    monkeypatch.setenv("MXNET_USE_FUSION", "0")
    _, said = results(Unrolled(rnn.LSTMCell(32, input_size=7)), data(2, 5, 7))
    assert "recurrence" not in said


def test_outputs_have_memory_of_their_own():
    net = Unrolled(rnn.LSTMCell(32, input_size=7), merge=False)
    net.initialize()
    net.hybridize()
    outputs = net(mx.nd.array(data(2, 5, 7)))
    before = [o.asnumpy() for o in outputs]
    outputs[0][:] = 9
    outputs[5][:] = 9  # the last output itself
    for i in (1, 2, 3, 6):
        assert (outputs[i].asnumpy() == before[i]).all()


def test_a_monitor_sees_every_step():
    cell = mx.rnn.LSTMCell(32, prefix="lstm_")
    outputs, _ = cell.unroll(3, mx.sym.var("data"), layout="NTC", merge_outputs=True)
    executor = outputs.simple_bind(mx.cpu(), data=(2, 3, 4))
    names = []
    executor.set_monitor_callback(lambda name, _: names.append(name))
    executor.forward()
    assert {"lstm_t0_out_output", "lstm_t1_state_output", "lstm_t2_out_output"} <= set(names)


def test_an_executor_trains_the_layer(monkeypatch):
    cell = mx.rnn.LSTMCell(32, prefix="lstm_")
    outputs, _ = cell.unroll(3, mx.sym.var("data"), layout="NTC", merge_outputs=True)
    found = []
    for fusion in ("0", "1"):
        monkeypatch.setenv("MXNET_USE_FUSION", fusion)
        executor = outputs.simple_bind(mx.cpu(), data=(2, 3, 4))
        for i, name in enumerate(sorted(executor.arg_dict)):
            executor.arg_dict[name][:] = mx.nd.array(data(*executor.arg_dict[name].shape, seed=i) / 2)
        out = executor.forward(is_train=True)[0]
        executor.backward(out)
        found.append([out.asnumpy(), *(executor.grad_dict[n].asnumpy() for n in sorted(executor.grad_dict))])
    agree(found)


def test_a_chain_needs_two_steps():
    class Once(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell, self.out = rnn.LSTMCell(32, input_size=4), nn.Dense(3, in_units=32)

        def hybrid_forward(self, F, x, h, c):
            return self.out(self.cell(x, [h, c])[0])

    found, said = results(Once(), data(2, 4), data(2, 32), data(2, 32))
    agree(found)
    assert "recurrence" not in said
