"""Arrays share memory where MXNet 1.9.1's do (`aliasing_oracle.json`): results of operators, functions and methods, and arrays of programs.

Differences on purpose are listed here. A part of all calls is replayed, the same in each run; with ``ALIASING=complete`` in the environment all of
them are, which takes about a minute.
"""
import contextlib
import functools
import json
import logging
import os
import pathlib
import sys
import warnings

import pytest

import mxnet as mx
import mxnet.ops.numpy  # noqa: F401  its operators are registered when first asked for
from mxnet.ndarray import dispatch
from mxnet.ops import get

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import aliasing_calls  # noqa: E402
import aliasing_cases  # noqa: E402
import aliasing_data  # noqa: E402, F401  registers its programs
import aliasing_programs  # noqa: E402, F401
from aliasing_cases import FRONTS, PROGRAMS, samples  # noqa: E402
from records import IMPERATIVE  # noqa: E402

ORACLE = json.loads((pathlib.Path(__file__).parent / "aliasing_oracle.json").read_text())
COMPLETE = os.environ.get("ALIASING") == "complete"
EVERY = 1 if COMPLETE else 7  # of the calls that share nothing
SAMPLES = 99 if COMPLETE else 2  # of each operator

# docs/differences.md has the reasons.
DIFFERENT = {
    "mx.np: mx.np.nan_to_num(i)": [], "numpy: np.nan_to_num(i)": [],  # a copy of integers, too, as documented
    "mx.np: mx.np.vstack(x, x2)": ["x2=y0"], "mx.np: mx.np.vstack(m, m)": ["m=y0"],  # the second argument is `out`
}
# Programs whose results own their memory where MXNet hands on what it got, or lets two of them share.
OWNED = ("hybridized", "layer_hybridized")


def invoke(name, arrays, attributes, out=None, numpy=False):
    outputs = dispatch.invoke(get(name), arrays, attributes, out, mx.np.ndarray if numpy else None)
    return outputs if isinstance(outputs, list) else [outputs]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        yield
    logging.disable(logging.NOTSET)


@functools.cache
def chosen_samples():
    """The samples to replay: of each operator the first ones, which leave arrays as they are."""
    return [(name, number, sample) for name, number, sample in samples() if number < SAMPLES]


@pytest.mark.parametrize("front", FRONTS)
def test_operators(front):
    refused = set(ORACLE["refused"][front].split())
    found, expected, count = {}, {}, 0
    for name, number, sample in chosen_samples():
        key = f"{name}-{number}"
        if key in refused or name == "reset_arrays" or front == "executor" and name in IMPERATIVE:  # the first has no outputs
            continue
        found[key] = aliasing_cases.ask(invoke, front, name, sample)
        expected[key] = ORACLE["operators"].get(f"{front}: {key}", [])
        count += 1
    assert found == expected
    assert count > 700


def test_results_of_operators_are_contiguous():
    strided = []
    for name, number, sample in chosen_samples():
        for front in (aliasing_cases.eager, aliasing_cases.hybridized):
            with contextlib.suppress(Exception), aliasing_cases.semantics(name):
                arrays = front(invoke, name, sample)
                results = {n: a._data for n, a in arrays.items() if n[0] != "x" and a.stype == "default" and a.size}
                strided += [(front.__name__, name, number, n) for n, tensor in results.items() if not tensor.is_contiguous()]
    assert strided == []


def calls():
    """The calls to replay: (namespace, text, what MXNet says)."""
    sharing = {text: kind.split() for kind, texts in ORACLE["sharing"].items() for text in texts}
    count = 0
    for namespace, patterns in ORACLE["calls"].items():
        for pattern, names in patterns.items():
            for name in names.split():
                text = aliasing_calls.expression(namespace, pattern, name)
                key = f"{namespace}: {text}"
                count += 1
                if key in sharing or key in DIFFERENT or count % EVERY == 0:
                    yield namespace, text, DIFFERENT.get(key, sharing.get(key, []))


def test_functions_and_methods():
    found, expected, refused = {}, {}, []
    for namespace, text, relations_there in calls():
        try:
            result = aliasing_calls.call(namespace, text)
        except Exception:  # other tests say what is to be accepted
            result = None
        if result is None:
            refused.append(text)
        else:
            found[namespace, text], expected[namespace, text] = result, relations_there
    assert found == expected
    assert len(refused) < 0.05 * len(found), refused


def expected_of(name, there):
    """Return the relations that a program is to have here, out of MXNet's."""
    front = name.split(":")[0]
    if front.startswith(OWNED):
        return [text for text in there if not set("yz") & {part[0] for part in text.split("=")}]
    if front in ("executor", "training_executor"):  # where two outputs are a bound array, that is MXNet's rule
        bound = {text.split("=")[1] for text in there if text[0] != "y"}
        return [text for text in there if text[0] != "y" or set(text.split("=")) <= bound]
    return there


def test_programs():
    found = {name: aliasing_cases.run(name) for name in ORACLE["programs"]}
    expected = {name: expected_of(name, there) for name, there in ORACLE["programs"].items()}
    for name in [name for name in expected if name.startswith("numpy_forward_hybridized")]:
        # MXNet runs such a `forward` step by step, and so do the calls that are noted here; graphs own what they return.
        assert set(found.pop(name)) <= set(expected.pop(name)), name
    assert found == expected
    assert len(set(PROGRAMS) - set(ORACLE["programs"])) < 10
