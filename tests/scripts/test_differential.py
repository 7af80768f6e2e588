"""The comparing half of scripts/differential.py; the asking half needs an installed MXNet 1.9.1."""
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import differential  # noqa: E402
import differential_worker as worker  # noqa: E402

import mxnet as mx  # noqa: E402


def case(operator, *inputs, attributes=(), gradient=(), out=None, semantics="legacy", bfloat16=False):
    return dict(operator=operator, inputs=[worker.pack(np.array(a, "float32")) for a in inputs], attributes=dict(attributes), gradient=list(gradient),
                grad_req="write", training=True, out=out, semantics=semantics, bfloat16=bfloat16)


def evaluate(*args, **kwargs):
    return worker.evaluate(mx, differential.invoke, case(*args, **kwargs))


def test_a_case_gives_outputs_and_gradients():
    found = evaluate("square", [2, 3], gradient=[0])
    assert worker.unpack(found["outputs"][0]).tolist() == [4, 9]
    head = worker.head_gradient((2,), "float32")
    assert worker.unpack(found["gradients"][0]).tolist() == pytest.approx([4 * head[0], 6 * head[1]])


def test_a_case_tells_which_inputs_it_changed():
    found = evaluate("multi_sgd_update", [1, 2], [1, 1], attributes={"lrs": "(0.5,)", "wds": "(0,)", "num_weights": "1"}, out=[0])
    assert list(found["inputs"]) == [0]
    assert worker.unpack(found["inputs"][0]).tolist() == [0.5, 1.5]


def test_a_case_runs_under_the_semantics_it_names():
    assert evaluate("_npi_add", [], [], semantics="numpy")["outputs"][0][:2] == ("float32", (0,))
    assert evaluate("_copy", 3, semantics="np_shape")["outputs"][0][1] == ()
    assert worker.unpack(evaluate("_copy", [1 + 2 ** -10], bfloat16=True)["outputs"][0]).tolist() == [1]


def test_an_error_is_told_with_its_kinds():
    found = evaluate("gather_nd", [1, 2], [[5]])
    assert found["error"] == "IndexOutOfBoundsError" and "IndexError" in found["kinds"] and "MXNetError" in found["kinds"]


@pytest.mark.parametrize("found, expected, difference", [
    (np.ones(2, "float32"), np.ones(2, "float64"), ("dtype", "float32 instead of float64")),
    (np.ones(2), np.ones((2, 1)), ("shape", "(2,) instead of (2, 1)")),
    (np.array([1.0, 2, 9]), np.array([1.0, 2, 3]), ("value", "1 of 3; at (2,) 9 instead of 3")),
    (np.array([np.nan, 1]), np.array([np.nan, 1 + 1e-7]), None)])
def test_what_differs_between_arrays(found, expected, difference):
    assert differential.unequal(found, expected, 1e-6, random=False) == difference


def test_memory_that_was_never_set_is_told_from_rounding():
    first, second, other = (worker.pack(np.array(a)) for a in ([1.0, 2], [1.0, 2 + 1e-9], [1.0, 7]))
    assert not differential.unset(first, second) and differential.unset(first, other)


def test_a_row_accepts_by_operator_kind_and_case():
    rows = [("sum,mean", "output value", "*; axis=*", "why"), ("*", "accepts", "*", "why")]
    difference = differential.Difference("mean", "sample 0; axis=1", "output value", "")
    assert differential.reason_for(difference, rows) == 0
    assert differential.reason_for(difference._replace(operator="max"), rows) is None
    assert differential.reason_for(difference._replace(kind="accepts"), rows) == 1


def test_every_row_of_the_page_says_why():
    rows = differential.accepted_rows()
    assert len(rows) > 20 and all(len(why) > 8 for *_, why in rows)
