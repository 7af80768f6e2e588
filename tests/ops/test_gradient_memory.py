"""What a backward pass hands to the user belongs to the user: gradients lie in memory of their own, in order, and may be written to.

Every operator is tried on its records; MXNet allocates each of these arrays.
"""
import pathlib
import sys

import numpy as np
import pytest

import mxnet as mx
import mxnet.ops.numpy  # noqa: F401  registers the operators of mx.np
from mxnet import autograd, nd
from mxnet.base import MXNetError
from mxnet.ndarray import NDArray, dispatch
from mxnet.ops.registry import OPERATORS
from recorded import record_of

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from records import RECORDS  # noqa: E402


def differentiable(operator, sample):
    """The positions of the inputs of a sample that get a gradient."""
    return [i for i, a in enumerate(sample.inputs) if a is not None and np.asarray(a).dtype.kind == "f" and i not in operator.mutated_indices
            and (sample.gradient is None or i in sample.gradient)]


CASES = {f"{name}-{k}": (OPERATORS[name], sample) for name, samples in sorted(RECORDS.items()) for k, sample in enumerate(samples[:3])
         if name in OPERATORS and not OPERATORS[name].no_gradient and differentiable(OPERATORS[name], sample)}


class Seen(autograd.Function):
    """The identity, which keeps the gradients that it gets and then writes to them, as a program may."""

    def forward(self, x):
        return x * 1

    def backward(self, gradient):
        self.contiguous, self.gradient = gradient._data.is_contiguous(), gradient.copy()
        result = gradient.copy()
        gradient[:] = 7
        return result


def run(operator, sample, inputs):
    """The differentiable outputs of a call that is being recorded, and head gradients for them."""
    with mx.util.np_shape(operator.name.startswith("_np")):
        results = dispatch.invoke(operator, inputs, dict(sample.attributes))
        results = [r for r in (results if isinstance(results, list) else [results]) if r._data.requires_grad and r._data.is_floating_point()]
        return results, [nd.array(np.linspace(-1, 1, r.size).reshape(r.shape), dtype=r.dtype) for r in results]


def recorded(operator, sample, wrap=lambda x: x):
    wanted = differentiable(operator, sample)
    with mx.util.np_shape(True):
        inputs = [None if a is None else nd.array(a, dtype=np.asarray(a).dtype) for a in sample.inputs]
        variables = [inputs[i] for i in wanted]
        for v in variables:
            v.attach_grad()
    given = list(inputs)
    with autograd.record(train_mode=sample.training):
        for i in wanted:
            given[i] = wrap(inputs[i])
        heads, gradients = run(operator, sample, given)
    return inputs, variables, heads, gradients


def memory(arrays):
    return [a._data.untyped_storage().data_ptr() for a in arrays if a is not None and a.size]


def check_own(results, others):
    """Each array is contiguous and shares memory with no other."""
    for r in results:
        assert isinstance(r, NDArray) and (r.stype != "default" or r._data.is_contiguous() and not r._data.requires_grad)
    places = memory(r for r in results if r.stype == "default")
    assert len(set(places)) == len(places)
    assert not set(places) & set(memory(others))


@pytest.mark.parametrize("case", CASES)
def test_gradients_have_memory_of_their_own(case):
    operator, sample = CASES[case]
    inputs, variables, heads, gradients = recorded(operator, sample)
    if not heads:
        pytest.skip("nothing differentiable in this mode")
    autograd.backward(heads, gradients, retain_graph=True)
    check_own([v.grad for v in variables], [*inputs, *heads, *gradients])
    try:
        again = autograd.grad(heads, variables, gradients, retain_graph=True)
    except MXNetError as error:
        assert "do not depend on variable" in str(error)
        return
    check_own(again, [*inputs, *heads, *gradients, *(v.grad for v in variables)])
    if operator.mutated_indices:  # its state has moved on
        return
    for v, g in zip(variables, again):
        np.testing.assert_array_equal(v.grad.asnumpy(), g.asnumpy())


@pytest.mark.parametrize("case", CASES)
def test_functions_of_the_user_may_write_to_the_gradients_they_get(case):
    operator, sample = CASES[case]
    _, variables, heads, gradients = recorded(operator, sample)
    if not heads:
        pytest.skip("nothing differentiable in this mode")
    autograd.backward(heads, gradients)
    functions = []

    def wrap(x):
        functions.append(Seen())
        return functions[-1](x)

    _, wrapped, heads, gradients = recorded(operator, sample, wrap)
    autograd.backward(heads, gradients)
    if operator.stochastic:
        return  # other numbers each time
    for function, v, w in zip(functions, variables, wrapped):
        if hasattr(function, "contiguous"):
            assert function.contiguous
        np.testing.assert_array_equal(v.grad.asnumpy(), w.grad.asnumpy())


@pytest.mark.parametrize("case", CASES)
def test_what_was_differentiated_is_constant_afterwards(case):
    operator, sample = CASES[case]
    _, variables, heads, gradients = recorded(operator, sample)
    if not heads:
        pytest.skip("nothing differentiable in this mode")
    autograd.backward(heads, gradients)
    assert all(record_of(h) is None and not h._data.requires_grad for h in heads)
    with pytest.raises(MXNetError, match="differentiated before.*retain_graph"):
        heads[0].backward()
    with autograd.record():
        total = variables[0].sum() + heads[0].astype(variables[0].dtype).sum()
    total.backward()
    assert (variables[0].grad.asnumpy() == 1).all()
