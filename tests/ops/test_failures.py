"""What users read when a call of an operator fails: never torch's words, for any operator."""
import re

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.base import MXNetError
from mxnet.ndarray import dispatch
from mxnet.ops import failures, registry

from .records import EXEMPT, RECORDS

# What torch, Python and OpenCV say of their own functions.
FOREIGN = re.compile(r"size of tensor|sizes of tensors|tensor number|Tensors must|\btorch\b|\bmat[12]\b|batch[12]\b|scalar type|not implemented for|"
                     r"Expected (?!shape).* but got|but found|is invalid for input|\d+ required|positional argument|has no attribute|NoneType|"
                     r"singleton|in-?place operation|leaf Variable|c10::|aten|self indexing|expects each tensor|result type|OpenCV\(|dtype\(|"
                     r"expected \d+D|invalid combination|must be Tensor|Dimension out of range|tuple index", re.IGNORECASE)


def wrong_calls(sample):
    """Inputs and attributes that are wrong, or may be: of other ranks, sizes and types, left out, one too many."""
    inputs, attributes = sample.inputs, {k: str(v) for k, v in sample.attributes.items()}
    for k, a in enumerate(inputs):
        changed = [a.reshape(-1), a[None], np.zeros((), a.dtype), None, a.astype("int32"), a.astype("bool"), a.astype("float64"), a.astype("float16")]
        if a.ndim and len(a):
            changed += [a[:1], np.concatenate([a, a[:1]]), np.concatenate([a, a[..., :1]], -1), a[0], np.ascontiguousarray(a.T)]
        for other in changed:
            yield [*inputs[:k], other, *inputs[k + 1:]], attributes
    yield inputs[:-1], attributes
    yield [*inputs, *inputs[:1]], attributes
    yield [], attributes
    for name in ("axis", "axes", "dim", "shape", "kernel", "begin", "num_filter", "num_hidden", "k", "offset"):
        for value in ("9", "(7, 7)", "(-3, 1, 2)"):
            yield inputs, {**attributes, name: value}


def messages(operator):
    """The errors of wrong calls of an operator: (text, what torch has said)."""
    op = registry.get(operator)
    cls = mx.np.ndarray if operator.startswith("_np") else nd.NDArray
    for sample in RECORDS[operator][:2]:
        if max((a.size for a in sample.inputs), default=0) > 5000:
            continue
        for inputs, attributes in wrong_calls(sample):
            try:
                with mx.util.np_shape(True):
                    arrays = [None if a is None else cls._new(nd.array(a, dtype=a.dtype)._data, mx.cpu()) for a in inputs]
                    results = dispatch.invoke(op, arrays, attributes, None, cls)
                    for result in results if isinstance(results, list) else [results]:
                        result.asnumpy()
            except MXNetError as error:
                yield str(error), failures.first_line(error.__cause__) if error.__cause__ is not None else ""


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("family", sorted({n[:6] for n in RECORDS if n not in EXEMPT}))
def test_no_operator_speaks_as_torch_does(family):
    for operator in RECORDS:
        if operator.startswith(family) and operator[:6] == family and operator not in EXEMPT:
            for text, cause in messages(operator):
                said = text.partition(" [inputs:")[0].removeprefix(f"{operator}: ")
                assert not FOREIGN.search(said), f"{operator}: {text}"
                assert not cause or cause not in said, f"{operator}: {text}"


X, Y = nd.ones((2, 3)), nd.ones((4, 5))


@pytest.mark.parametrize("call, text", [
    (lambda: nd.dot(X, Y), "dot: dot shape error: (2, 3) X (4, 5)"),
    (lambda: nd.batch_dot(nd.ones((2, 3, 4)), nd.ones((2, 5, 6))), "batch_dot: batch_dot shape error: (2, 3, 4) X (2, 5, 6)"),
    (lambda: X + Y, "broadcast_add: shapes (2, 3) and (4, 5) can't be broadcast"),
    (lambda: nd.elemwise_add(X, Y), "elemwise_add: both inputs must have one shape, received (2, 3) and (4, 5)"),
    (lambda: nd.concat(X, Y, dim=1), "Concat: incompatible shapes: (2, -1) and (4, -1) differ in size"),
    (lambda: nd.stack(X, Y), "stack: incompatible shapes: (2, 3) and (4, 5) differ in size"),
    (lambda: nd.FullyConnected(X, Y, num_hidden=4, no_bias=True), "FullyConnected's weight: expected shape (4, 3), received (4, 5)"),
    (lambda: nd.Convolution(nd.ones((1, 3, 5, 5)), nd.ones((2, 4, 3, 3)), nd.ones(2), kernel=(3, 3), num_filter=2),
     "Convolution's weight: expected shape (2, 3, 3, 3), received (2, 4, 3, 3)"),
    (lambda: nd.LayerNorm(X, nd.ones(2), nd.ones(3)), "LayerNorm's gamma: expected shape (3,), received (2,)"),
    (lambda: nd.dot(X, nd.ones((3, 2), dtype="float64")), "dot: the inputs must have one type, received lhs float32, rhs float64; convert"),
    (lambda: nd.linalg.potrf(nd.ones((2, 2), dtype="int32")), "_linalg_potrf: int32 is not supported; convert with astype('float32')"),
    (lambda: nd.softmax(X, axis=5), "softmax: axis 5 is out of range for data with 2 axes"),
    (lambda: nd.Pooling(X, kernel=(2, 2)), "Pooling: data must have 3 to 5 axes (batch, channel, spatial...), received shape (2, 3)"),
    (lambda: mx.np.matmul(mx.np.ones((2, 3)), mx.np.ones((4, 5))), "shape error: (2, 3) X (4, 5): the axes that are summed over differ in size"),
])
def test_frequent_mistakes_are_told_with_their_numbers(call, text):
    with pytest.raises(MXNetError) as caught:
        call()
    assert text in str(caught.value)


def test_inputs_that_are_missing_or_too_many_are_named():
    op = registry.get("FullyConnected")
    with pytest.raises(MXNetError, match=r"FullyConnected: needs the inputs data, weight, bias; missing: weight, bias \["):
        dispatch.invoke(op, [X], {"num_hidden": 4})
    with pytest.raises(MXNetError, match=r"relu: takes 1 inputs \(data\), received 2 \["):
        dispatch.invoke(registry.get("relu"), [X, X], {})


def test_words_of_a_programs_own_code_are_kept():
    class Failing(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            raise ValueError("the size of tensor a is mine")

        def backward(self, *args):
            pass

    @mx.operator.register("test_failures_failing")
    class FailingProp(mx.operator.CustomOpProp):  # noqa: F841
        def create_operator(self, ctx, shapes, dtypes):
            return Failing()

    with pytest.raises(MXNetError, match="the size of tensor a is mine"):
        nd.Custom(X, op_type="test_failures_failing").wait_to_read()


@pytest.mark.parametrize("run", [
    lambda net: net.bind(mx.cpu(), {"a": X, "b": Y}).forward(),
    lambda net: mx.gluon.SymbolBlock(net, [mx.sym.var("a"), mx.sym.var("b")])(X, Y),
    lambda net: net.eval(a=X, b=Y),
    lambda net: net.infer_shape(a=(2, 3), b=(4, 5)),
])
def test_graphs_say_the_same(run):
    with pytest.raises(MXNetError) as caught:
        run(mx.sym.dot(mx.sym.var("a"), mx.sym.var("b"), name="product"))
    assert "product" in str(caught.value) and "(2, 3)" in str(caught.value) and not FOREIGN.search(str(caught.value))


def test_a_gpu_that_failed_is_named():
    error = RuntimeError("CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in the documentation")
    assert failures.in_words(error) == (
        "the GPU reports: device-side assert triggered. An earlier call may have failed, and the process cannot use this GPU any more: start it anew "
        "with CUDA_LAUNCH_BLOCKING=1 to learn which call it was")
