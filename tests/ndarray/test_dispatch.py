"""The general way of a call: what `invoke` unwraps, runs, records and wraps."""
import threading

import numpy as np
import pytest
import torch

import mxnet as mx
from interrupt_checks import at_each_point
from mxnet import autograd, nd
from mxnet.base import MXNetError
from mxnet.ndarray import dispatch
from mxnet.ndarray.dispatch import Recorded, Unrecorded, invoke, mode
from mxnet.ops.registry import Operator, get
from recorded import record_of

CPU1 = mx.cpu(1)


def marked(*values):
    x = nd.array(values)
    x.attach_grad()
    return x


@pytest.fixture
def observed():
    """What the profiler would see of each call."""
    seen = []
    dispatch.observer = lambda *args: seen.append(args)
    yield seen
    dispatch.observer = None


# -- results ------------------------------------------------------------------------------------------------------------------------


def test_the_result_is_an_array_of_the_class_on_the_device_of_the_inputs():
    result = invoke(get("broadcast_add"), (nd.ones((2,), ctx=CPU1), nd.ones((2,), ctx=CPU1)), {})
    assert type(result) is nd.NDArray and result.context == CPU1 and result.asnumpy().tolist() == [2, 2]
    assert type(invoke(get("relu"), (mx.np.ones((2,)),), {}, cls=mx.np.ndarray)) is mx.np.ndarray


def test_wrapped_tensors_are_not_copied():
    tensor = torch.zeros(2)
    array = dispatch.wrap(nd.NDArray, tensor, CPU1)
    assert array.as_torch() is tensor and array.context == CPU1 and array.grad is None


def test_several_results_come_as_a_list():
    parts = invoke(get("split"), (nd.array([[1, 2]]),), {"num_outputs": 2, "axis": 1})
    assert [p.asnumpy().tolist() for p in parts] == [[[1]], [[2]]]
    whole = invoke(get("split"), (nd.array([[1, 2]]),), {"num_outputs": 1})
    assert whole.asnumpy().tolist() == [[1, 2]]


def test_names_of_host_memory_may_be_mixed():
    result = invoke(get("broadcast_add"), (nd.ones((2,)), nd.ones((2,), ctx=CPU1)), {})
    assert result.asnumpy().tolist() == [2, 2] and result.context == mx.cpu(0)


def test_a_gpu_and_the_host_may_not_be_mixed():
    on_gpu = dispatch.wrap(nd.NDArray, torch.ones(2), mx.gpu(0))
    with pytest.raises(MXNetError, match=r"all inputs must be on one device, received cpu\(0\), gpu\(0\); move them with x.as_in_context"):
        invoke(get("broadcast_add"), (nd.ones((2,)), on_gpu), {})


def test_an_operator_is_told_whether_training_is_on():
    told = []

    def asks(x, *, training: mx.ops.schema.Training):
        told.append(training)
        return x

    op = Operator("asks", asks)
    invoke(op, (nd.ones((1,)),), {})
    with autograd.train_mode():
        invoke(op, (nd.ones((1,)),), {})
    assert told == [False, True]


def test_arrays_that_a_call_writes_to_keep_their_memory():
    weight, grad = nd.array([1, 2]), nd.array([10, 10])
    memory = weight.as_torch()
    with autograd.record():  # past torch's version counter, and never recorded
        invoke(get("sgd_update"), (weight, grad), {"lr": 0.5}, weight)
    assert memory.tolist() == [-4, -3]


@pytest.mark.parametrize("given, out, expected", [
    (None, None, "cpu(0)"), ("cpu(2)", None, "cpu(2)"), (None, CPU1, "cpu(1)"), ("cpu(2)", CPU1, "cpu(1)"), (mx.cpu(3), None, "cpu(3)")])
@pytest.mark.parametrize("make", [nd.zeros, mx.np.zeros])
def test_an_operator_without_inputs_computes_where_its_result_goes(given, out, expected, make):
    """MXNet looks at the array that receives the result first, then at `ctx`."""
    out = out and make((2,), ctx=out)
    attrs = {"shape": (2,), **({"ctx": given} if given else {})}
    assert str(invoke(get("_ones"), (), attrs).context) == str(given or "cpu(0)")
    assert str(dispatch._creation_context(given, out)) == str(dispatch._creation_context(given, [out] if out is not None else None)) == expected
    if out is not None:
        assert invoke(get("_ones"), (), attrs, out) is out and out.asnumpy().tolist() == [1, 1]
        assert invoke(get("_ones"), (), {}, out).shape == (2,)  # the shape, too, is that of `out`


# -- out --------------------------------------------------------------------------------------------------------------------------------


def test_out_receives_the_values_in_its_own_type():
    out = nd.zeros((2,), dtype="int32")
    memory = out.as_torch()
    assert nd.broadcast_add(nd.array([1, 2]), nd.array([1.5, 1]), out=out) is out
    assert memory.tolist() == [2, 3]
    nd.relu(nd.array([-1, 2]), out=[out])
    assert memory.tolist() == [0, 2]


def test_out_of_several_results():
    first, second = nd.zeros((1, 1)), nd.zeros((1, 1))
    nd.split(nd.array([[1, 2]]), num_outputs=2, out=[first, second])
    assert first.asscalar() == 1 and second.asscalar() == 2


@pytest.mark.parametrize("out, error, message", [
    (lambda: nd.zeros((3,)), MXNetError, r"`out` has shape \(3,\), the result has \(2,\)"),
    (lambda: [nd.zeros((2,))] * 2, MXNetError, "`out` holds 2 arrays, the operator returns 1"),
    (lambda: np.zeros(2), TypeError, "`out` must be an NDArray, received ndarray")])
def test_out_that_does_not_fit(out, error, message):
    with pytest.raises(error, match=message):
        invoke(get("relu"), (nd.ones((2,)),), {}, out())


def test_out_of_several_results_must_be_a_list():
    with pytest.raises(MXNetError, match="the operator returns 2 arrays; `out` must be a list"):
        nd.split(nd.ones((1, 2)), num_outputs=2, out=nd.ones((1, 1)))


def test_out_takes_its_place_in_the_graph_while_recording():
    x, out = marked(2, 3), nd.zeros((2,))
    with autograd.record():
        nd.square(x, out=out)
    out.backward()
    assert x.grad.asnumpy().tolist() == [4, 6]
    with autograd.record(), pytest.raises(MXNetError, match="Inplace operations"):
        nd.square(nd.ones((2,)), out=x)


# -- recording ---------------------------------------------------------------------------------------------------------------------------


def test_what_is_recorded_and_what_is_not():
    x, data = marked(1, 2), nd.array([3, 4])
    assert record_of(x * 2) is None
    with autograd.record():
        assert record_of(data * 2) is None
        product = invoke(get("broadcast_mul"), (x, data), {})
    assert type(record_of(product)) is Recorded and record_of(product).index == 0
    node = record_of(product).node
    assert node.op is get("broadcast_mul") and node.inputs[0] is record_of(x) and type(record_of(data)) is Unrecorded and node.outputs[0]() is product
    assert dispatch.in_graph(product) and dispatch.in_graph(x) and not dispatch.in_graph(data) and not dispatch.in_graph(nd.ones((1,)))
    assert data.grad is None


def test_each_of_several_results_is_recorded():
    x = marked(1, 2)
    with autograd.record():
        parts = nd.split(x, num_outputs=2, axis=0)
    assert [record_of(p).index for p in parts] == [0, 1] and record_of(parts[0]).node is record_of(parts[1]).node
    parts[1].backward()
    assert x.grad.asnumpy().tolist() == [0, 1]


def test_torch_s_own_grad_mode_is_left_as_it_is():
    x, modes = marked(1, 2), []

    def looks(x):
        modes.append(torch.is_grad_enabled())
        return x * 2

    op = Operator("looks", looks)
    with torch.no_grad():
        with autograd.record():
            assert invoke(op, (x,), {})._data.requires_grad
        assert not torch.is_grad_enabled()
    assert not invoke(op, (x,), {})._data.requires_grad and torch.is_grad_enabled()
    assert modes == [True, False]


def test_the_mode_belongs_to_a_thread():
    seen = []
    with dispatch.Scope(True, True):
        thread = threading.Thread(target=lambda: seen.append((mode.recording, mode.training)))
        thread.start()
        thread.join()
        with dispatch.Scope(False, None):
            assert (mode.recording, mode.training) == (False, True)
        assert (mode.recording, mode.training) == (True, True)
    assert seen == [(False, False)] and (mode.recording, mode.training) == (False, False)


def test_ctrl_c_leaves_torch_recording_as_it_was():
    x = marked(1, 2)

    def work():
        invoke(get("relu"), (x,), {})  # torch would record it

    def check():
        assert torch.is_grad_enabled()

    assert at_each_point(work, check) > 5


# -- observers, generators, errors ------------------------------------------------------------------------------------------------------------


def test_an_observer_sees_each_call(observed):
    x = nd.array([1, 1])
    nd.relu(x)
    x + x
    assert [entry[0] for entry in observed] == ["relu", "broadcast_add"]
    name, start, end, tensors, result = observed[1]
    assert start <= end and tensors == [x._data, x._data] and result.tolist() == [2, 2]


@pytest.mark.parametrize("call, message", [
    (lambda: nd.broadcast_add(nd.ones((2,)), nd.ones((3,))),
     r"^broadcast_add: .* \[inputs: lhs: float32\(2,\), rhs: float32\(3,\); attributes: none\]"),
    (lambda: nd.Concat(nd.ones((2,)), nd.ones((2, 2)), dim=0), r"^Concat: .*\[inputs: input 0: float32\(2,\), input 1: float32\(2, 2\); "),
    (lambda: nd.relu([1, 2]), r"relu: input `data` must be an NDArray, received \[1, 2\] of type list; convert with mx.nd.array"),
    (lambda: nd.dot(nd.ones((2,)), 3), r"dot: input `rhs` must be an NDArray, received 3 of type int")])
def test_errors_say_what_was_called_on_what(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_errors_of_an_operator_keep_their_words_and_class():
    class Special(MXNetError):
        pass

    def fails(x, *, text: str = ""):
        raise Special(text)

    op = Operator("fails", fails)
    with pytest.raises(Special, match=r"^fails: it says so itself$"):
        invoke(op, (nd.ones((1,)),), {"text": "fails: it says so itself"})
    with pytest.raises(Special, match=r"^fails: badly \[inputs: x: float32\(1,\); attributes: text=badly\]$"):
        invoke(op, (nd.ones((1,)),), {"text": "badly"})

    def empty(x):
        raise KeyError

    with pytest.raises(MXNetError, match=r"^empty: KeyError \[inputs: x: float32\(1,\); attributes: none\]$") as caught:
        invoke(Operator("empty", empty), (nd.ones((1,)),), {})
    assert type(caught.value.__cause__) is KeyError


def test_the_kind_of_a_legacy_operators_result():
    assert dispatch.kind_of([nd.ones((1,)), None]) is nd.NDArray
    assert dispatch.kind_of([None, mx.np.ones((1,))]) is mx.np.ndarray


@pytest.mark.parametrize("ctx", [-5, 2.5, (1,)])
def test_what_is_no_device(ctx):
    with pytest.raises(MXNetError, match="`ctx` must be a device such as mx.cpu"):
        nd._internal._ones(shape=(2,), ctx=ctx)


def test_a_source_without_a_shape_takes_that_of_one_array():
    out = nd.zeros(3)
    assert nd._internal._ones(out=out) is out and out.asnumpy().tolist() == [1, 1, 1]
    with pytest.raises(MXNetError):
        nd._internal._ones(out=[out, out])
