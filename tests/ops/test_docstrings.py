import doctest

import pytest

import mxnet as mx
from mxnet.ops import OPERATORS
from mxnet.ops import numpy as _register  # noqa: F401
from mxnet.ops.docstrings import with_example, with_sample

UNIQUE = {op.name: op for op in OPERATORS.values()}

# Where a name of this beginning is looked for, without it.
_NUMPY = (mx.np, mx.np.linalg, mx.np.random, mx.npx, mx.npx.random)
NAMESPACES = {"": (mx.nd,), "_contrib_": (mx.nd.contrib,), "_linalg_": (mx.nd.linalg,), "_random_": (mx.nd.random,), "_image_": (mx.nd.image,),
              "_sparse_": (mx.nd.sparse,), "_npx_": (mx.npx,), "_npi_": _NUMPY, "_np_": _NUMPY}


def public_names(name):
    """The functions that users know the operator of this name by."""
    for prefix, modules in NAMESPACES.items():
        rest = name[len(prefix):]
        if name.startswith(prefix) and not rest.startswith(("_", "backward_")):
            yield from (f"{module.__name__}.{rest}" for module in modules if hasattr(module, rest))


CALLED_BY_NAME = {op.name for name, op in OPERATORS.items()
                  if op.frontend and op.raw.__module__.startswith("mxnet.ops.") and any(public_names(name))}


def test_which_operators_are_called_by_name():
    assert {"relu", "_contrib_allclose", "_linalg_gemm", "_image_crop", "_random_uniform", "_np_sum", "_npi_add", "_npx_relu"} <= CALLED_BY_NAME
    assert CALLED_BY_NAME.isdisjoint({"_plus_scalar", "_npi_add_scalar", "_backward_gather_nd", "_contrib_backward_gradientmultiplier"})


@pytest.mark.parametrize("name", sorted(n for n, op in UNIQUE.items() if ">>>" in (op.__doc__ or "")))
def test_examples(name):
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report = []
    runner.run(parser.get_doctest(UNIQUE[name].__doc__, {"mx": mx}, name, None, 0), out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_every_operator_that_users_call_by_name_has_an_example():
    silent = sorted(n for n in CALLED_BY_NAME if ">>>" not in (UNIQUE[n].__doc__ or ""))
    assert not silent, f"operators without an example in their docstring: {silent}"


def test_every_public_operator_is_described():
    silent = sorted(n for n, op in UNIQUE.items() if not n.startswith("_") and not (op.__doc__ or "").strip())
    assert not silent, f"operators without a docstring: {silent}"


def test_an_example_follows_the_description():
    end = "\n\nExample\n-------\n>>> mx.np.zeros(3)\narray([0., 0., 0.])\n"
    assert with_example("Three zeros.", "mx.np.zeros(3) -> array([0., 0., 0.])") == "Three zeros." + end
    assert with_example("Three zeros.\n\n    More.\n    ", "mx.np.zeros(3) -> array([0., 0., 0.])") == "Three zeros.\n\nMore." + end


@pytest.mark.parametrize("function, sample, lines", [
    ("mx.nd.add_n", "[1] and [2] -> [3.]", [">>> mx.nd.add_n(mx.nd.array([1]), mx.nd.array([2])).asnumpy()", "array([3.], dtype=float32)"]),
    ("mx.np.sum", "[[1, 2]]; axis=1 -> [3.]", [">>> mx.np.sum(mx.np.array([[1, 2]]), axis=1)", "array([3.])"]),
])
def test_samples_are_examples(function, sample, lines):
    assert [line.strip() for line in with_sample("", function, sample).split("\n")[-3:-1]] == lines
