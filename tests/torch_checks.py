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


class Each(torch.nn.Module):
    """A module that gives the results of several modules and functions: torch.export takes longer than all else in a test."""

    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(part if isinstance(part, torch.nn.Module) else Function(part) for part in parts)

    def forward(self, *inputs):
        return tuple(part(*inputs) for part in self.parts)


def check(module, *inputs, gradient=True, atol=1e-5, kwargs=None, **options):
    """Compare a module, a function, or a list of these with its block and a JSON round trip of that: results, on more rows too, and gradients of each
    result. Returns the block.

    Inputs are examples; integers and truth values have no gradients.
    """
    module = Each(module) if isinstance(module, list) else module if isinstance(module, torch.nn.Module) else Function(module)
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
        with torch.no_grad():
            expected = flat(module(*data[:len(inputs)], **dict(zip(kwargs or {}, data[len(inputs):]))))
        for network in (block, again):
            found = listed(network(*[mx.nd.from_torch(t) for t in data]))
            assert len(found) == len(expected)
            for i, (own, theirs) in enumerate(zip(found, expected)):
                assert own.size == theirs.numel() and (own.shape == tuple(theirs.shape) or theirs.dim() == 0), f"result {i}"
                np.testing.assert_allclose(own.asnumpy().reshape(theirs.shape), theirs.numpy(), rtol=1e-4, atol=atol, err_msg=f"result {i}")
    if gradient:
        check_gradients(module, block, inputs, kwargs or {}, atol)
    return block


def check_gradients(module, block, inputs, kwargs, atol):
    """Compare the gradients of each result."""
    leaves = [t.detach().clone().requires_grad_(t.dtype.is_floating_point) for t in (*inputs, *kwargs.values())]
    parameters = {name: parameter for name, parameter in module.named_parameters() if name in block.params}
    wanted = [leaf for leaf in leaves if leaf.requires_grad] + list(parameters.values())
    arrays = [mx.nd.from_torch(leaf.detach()) for leaf in leaves]
    for array, leaf in zip(arrays, leaves):
        if leaf.requires_grad:
            array.attach_grad()
    results = flat(module(*leaves[:len(inputs)], **dict(zip(kwargs, leaves[len(inputs):]))))
    with mx.autograd.record(train_mode=module.training):
        found = listed(block(*arrays))
        totals = [(out * mx.nd.array(np.linspace(0.5, 1.5, out.size, dtype="float32").reshape(out.shape))).sum() if real.requires_grad else None
                  for out, real in zip(found, results)]
    for i, (total, out) in enumerate(zip(totals, results)):
        if total is None:
            continue
        weights = torch.linspace(0.5, 1.5, out.numel()).reshape(out.shape)
        expected = torch.autograd.grad((out.float() * weights).sum(), wanted, retain_graph=True, allow_unused=True)
        total.backward(retain_graph=True)
        own = [array.grad for array, leaf in zip(arrays, leaves) if leaf.requires_grad] + [block.params[name].grad() for name in parameters]
        for mine, theirs, leaf in zip(own, expected, wanted):
            theirs = torch.zeros_like(leaf) if theirs is None else theirs
            np.testing.assert_allclose(mine.asnumpy().reshape(theirs.shape), theirs.numpy(), rtol=1e-3, atol=10 * atol, err_msg=f"result {i}")


def listed(results):
    return results if isinstance(results, list) else [results]


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
