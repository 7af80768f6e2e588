import doctest

import pytest

import mxnet as mx
from mxnet.ops import OPERATORS

UNIQUE = {op.name: op for op in OPERATORS.values()}


@pytest.mark.parametrize("name", sorted(n for n, op in UNIQUE.items() if ">>>" in (op.__doc__ or "")))
def test_examples(name):
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report = []
    runner.run(parser.get_doctest(UNIQUE[name].__doc__, {"mx": mx}, name, None, 0), out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_every_public_operator_is_described():
    silent = sorted(n for n, op in UNIQUE.items() if not n.startswith("_") and not (op.__doc__ or "").strip())
    assert not silent, f"operators without a docstring: {silent}"
