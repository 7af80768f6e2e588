"""A module of torch's next to the block that `from_torch` makes of it."""
import numpy as np
import torch

import mxnet as mx


class Function(torch.nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def check(module, *inputs, gradient=True, atol=1e-5, kwargs=None, **options):
    """Compare a module, or a function, with its block and a JSON round trip of that: results, on more rows too, and gradients. Returns the block.

    Inputs are examples; integers and truth values have no gradients.
    """
    module = module if isinstance(module, torch.nn.Module) else Function(module)
    block = mx.gluon.from_torch(module, *inputs, kwargs=kwargs, **options)
    symbol, arrays = block.export(None)
    outputs = mx.sym.load_json(symbol.tojson())
    names = [name for name in block._cached_graph[0]]
    again = mx.gluon.SymbolBlock(outputs, [mx.sym.var(v.name) for v in names])
    for name, parameter in again.params.items():
        array = arrays.get(f"arg:{name}", arrays.get(f"aux:{name}"))
        parameter._load_init(array, mx.cpu(), cast_dtype=True, dtype_source="saved")
    given = [*inputs, *(kwargs or {}).values()]
    for data in (given, [torch.cat((t, t.flip(0), t)) for t in given] if "dynamic_shapes" not in options else given):
        expected = flat(module(*data[:len(inputs)], **dict(zip(kwargs or {}, data[len(inputs):]))))
        for network in (block, again):
            found = network(*[mx.nd.from_torch(t.detach()) for t in data])
            found = found if isinstance(found, list) else [found]
            assert len(found) == len(expected)
            for own, theirs in zip(found, expected):
                assert own.size == theirs.numel() and (own.shape == tuple(theirs.shape) or theirs.dim() == 0)
                np.testing.assert_allclose(own.asnumpy().reshape(theirs.shape), theirs.detach().numpy(), rtol=1e-4, atol=atol)
    if gradient:
        check_gradients(module, block, inputs, kwargs or {}, atol)
    return block


def check_gradients(module, block, inputs, kwargs, atol):
    given = [*inputs, *kwargs.values()]
    leaves = [t.detach().clone().requires_grad_(t.dtype.is_floating_point) for t in given]
    sum((out.float() * torch.linspace(0.5, 1.5, out.numel()).reshape(out.shape)).sum()
        for out in flat(module(*leaves[:len(inputs)], **dict(zip(kwargs, leaves[len(inputs):])))) if out.dtype.is_floating_point).backward()
    arrays = [mx.nd.from_torch(t.detach()) for t in leaves]
    for array, leaf in zip(arrays, leaves):
        if leaf.requires_grad:
            array.attach_grad()
    with mx.autograd.record(train_mode=module.training):
        found = block(*arrays)
        found = found if isinstance(found, list) else [found]
        heads = [out for out in found if out.dtype != np.int64]
        total = sum((out * mx.nd.array(np.linspace(0.5, 1.5, out.size, dtype="float32").reshape(out.shape))).sum() for out in heads)
    total.backward()
    for array, leaf in zip(arrays, leaves):
        if leaf.requires_grad:
            expected = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
            np.testing.assert_allclose(array.grad.asnumpy(), expected.numpy(), rtol=1e-3, atol=10 * atol)
    parameters = dict(module.named_parameters())
    for name, parameter in block.params.items():
        if parameter.grad_req != "null":
            np.testing.assert_allclose(parameter.grad().asnumpy(), parameters[name].grad.numpy(), rtol=1e-3, atol=10 * atol)


def flat(results):
    """The tensors of a result."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]


def real(*shape):
    """Numbers that differ from one another, none of them near 0."""
    count = int(np.prod(shape))
    values = torch.linspace(-1.7, 1.9, count)[torch.arange(count) * 7919 % count] if count % 7919 else torch.linspace(-1.7, 1.9, count)
    return (values + 0.003).reshape(shape)


def package(name):
    """A package that tests don't need, or skip: torchvision fails with other errors than ImportError where it belongs to another torch."""
    import importlib
    import warnings

    import pytest
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except Exception as error:
            pytest.skip(f"{name} cannot be imported: {error}")
