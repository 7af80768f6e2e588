import json
import logging

import numpy as np
import pytest

import mxnet as mx
from mxnet import threads
from mxnet.graph.runtime import sparse_run

W = np.arange(8).reshape(4, 2) / 4


def matrix():
    return mx.nd.array([[0, 1, 0, 2], [0, 0, 0, 3]]).tostype("csr")


def test_outputs_of_an_executor_are_stored_as_the_operators_say():
    x = mx.sym.var("x", stype="row_sparse")
    c = mx.sym.cast_storage(mx.sym.var("z"), stype="row_sparse")
    graph = mx.sym.Group([mx.sym.square(x), mx.sym.elemwise_add(x, c), mx.sym.cast_storage(x, stype="default"), mx.sym.cos(x)])
    exe = graph.bind(mx.cpu(), {"x": mx.nd.array(W).tostype("row_sparse"), "z": mx.nd.array(W)})
    outputs = exe.forward()
    assert [o.stype for o in outputs] == ["row_sparse", "row_sparse", "default", "default"]
    assert outputs[0].asnumpy().tolist() == (W * W).tolist() and outputs[1].asnumpy().tolist() == (2 * W).tolist()
    exe.forward(x=mx.nd.zeros((4, 2)).tostype("row_sparse"))
    assert outputs[0].indices.asnumpy().tolist() == []  # the arrays that were handed out have the new values


@pytest.mark.parametrize("stype, gradient", [("default", "row_sparse"), ("row_sparse", "row_sparse")])
def test_gradients_of_a_product(stype, gradient):
    x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w", stype=stype)
    exe = mx.sym.dot(x, w).simple_bind(mx.cpu(), x=(2, 4), w=(4, 2), grad_req={"x": "null", "w": "write"})
    assert [a.stype for a in exe.arg_arrays] == ["csr", stype] and exe.grad_dict["w"].stype == gradient
    exe.arg_dict["x"][:], exe.arg_dict["w"][:] = matrix(), mx.nd.array(W)
    exe.forward(is_train=True)
    exe.backward(mx.nd.array([[1, 2], [3, 4]]))
    assert exe.outputs[0].asnumpy().tolist() == [[3.5, 4.25], [4.5, 5.25]]
    assert exe.grad_dict["w"].asnumpy().tolist() == [[0, 0], [1, 2], [0, 0], [11, 16]]


@pytest.mark.parametrize("stype, sparse_grad, gradient", [("default", True, "row_sparse"), ("row_sparse", True, "row_sparse"),
                                                          ("default", False, "default"), ("row_sparse", False, "default")])
def test_gradients_of_a_lookup(stype, sparse_grad, gradient):
    w = mx.sym.var("w", stype=stype)
    net = mx.sym.Embedding(mx.sym.var("x"), w, input_dim=4, output_dim=2, sparse_grad=sparse_grad)
    exe = net.simple_bind(mx.cpu(), x=(3,), grad_req={"x": "null", "w": "write"})
    exe.arg_dict["x"][:], exe.arg_dict["w"][:] = [3, 1, 3], mx.nd.array(W)
    exe.forward(is_train=True)
    exe.backward(mx.nd.ones((3, 2)))
    assert exe.grad_dict["w"].stype == gradient
    assert exe.grad_dict["w"].asnumpy().tolist() == [[0, 0], [1, 1], [0, 0], [2, 2]]


def test_a_hybridized_block_computes_with_sparse_arrays():
    seen = []

    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.w = self.params.get("w", shape=(4, 2), init=mx.init.One(), grad_stype="row_sparse")

        def hybrid_forward(self, F, x, w):
            return F.sparse.dot(F.square(x), w), F.square(x)

    net = Net()
    net.initialize()
    for _ in range(2):
        with mx.autograd.record():
            product, squares = net(matrix())
        product.backward()
        gradient = net.w.grad()
        seen.append((squares.stype, product.asnumpy().tolist(), gradient.indices.asnumpy().tolist(), gradient.data.asnumpy().tolist()))
        net.hybridize()
    assert seen == [("csr", [[5, 5], [9, 9]], [1, 3], [[1, 1], [13, 13]])] * 2


def test_errors_name_the_node():
    net = mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w"), name="score")
    exe = net.bind(mx.cpu(), {"x": matrix(), "w": mx.nd.ones((4, 2))})
    exe.arg_arrays[1] = mx.nd.ones((3, 2))
    with pytest.raises(mx.MXNetError, match=r"Error in operator score \(dot\): dot: shapes \(2, 4\) and \(3, 2\) do not match"):
        exe.forward()


def test_a_monitor_sees_every_operator():
    x = mx.sym.var("x", stype="row_sparse")
    exe = mx.sym.cos(mx.sym.square(x, name="square"), name="cos").bind(mx.cpu(), {"x": mx.nd.array(W).tostype("row_sparse")})
    seen = []
    exe.set_monitor_callback(lambda name, array: seen.append(name))
    exe.forward()
    assert seen == ["square_output", "cos_output"]


def test_a_loop_over_sparse_arrays_says_that_they_become_dense(caplog, monkeypatch):
    monkeypatch.delenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", raising=False)
    sparse_run._announced.clear()
    out, _ = mx.sym.contrib.foreach(lambda x, s: (x + s, x + s), mx.sym.var("x"), mx.sym.var("s"))
    with caplog.at_level(logging.WARNING, "mxnet"):
        exe = out.bind(mx.cpu(), {"x": mx.nd.array(W).tostype("row_sparse"), "s": mx.nd.zeros((2,))})
    assert exe.forward()[0].asnumpy().tolist() == np.cumsum(W, 0).tolist()
    assert "a graph with loops or branches, or on several devices, runs on dense arrays" in caplog.text


def test_a_profile_names_the_nodes_and_their_gradients(tmp_path):
    x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w")
    graph = mx.sym.tanh(mx.sym.sparse.dot(x, w, name="product"), name="bend")
    exe = graph.bind(mx.cpu(), {"x": matrix(), "w": mx.nd.array(W)}, args_grad={"w": mx.nd.zeros((4, 2))}, grad_req={"x": "null", "w": "write"})
    mx.profiler.set_config(filename=str(tmp_path / "sparse.json"), profile_all=True)
    mx.profiler.set_state("run")
    try:
        exe.forward(is_train=True)
        exe.backward([mx.nd.ones((2, 2))])
        mx.nd.tanh(mx.nd.ones(2)).wait_to_read()  # a call of the program's own belongs to no node
    finally:
        mx.profiler.set_state("stop")
        mx.profiler.dump()
    events = [e for e in json.loads((tmp_path / "sparse.json").read_text())["traceEvents"] if e["ph"] == "X"]
    nodes = sorted((e["name"], (e.get("args") or {}).get("node", "")) for e in events if e["name"].removeprefix("_backward_") in ("dot", "tanh"))
    assert nodes[:-2] == [("_backward_dot", "product"), ("_backward_tanh", "bend"), ("dot", "product")]
    assert {node for _, node in nodes[-2:]} == {"bend", ""}


def test_steps_on_sparse_arrays_look_for_free_cores_as_others_do(monkeypatch):
    looks, y = [], mx.sym.sparse.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w", stype="row_sparse"))
    monkeypatch.setattr(threads, "poll", lambda: looks.append(1))
    x = mx.nd.array([[1, 0], [0, 2]]).tostype("csr")
    executor = y.bind(mx.cpu(), {"x": x, "w": mx.nd.ones((2, 1)).tostype("row_sparse")})
    assert executor.forward()[0].asnumpy().tolist() == [[1], [2]] and looks == [1]
