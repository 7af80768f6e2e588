"""A pytest plugin for tests of MXNet 2.0: it switches 2.0's names and defaults on, and gives the tests the names of old versions of NumPy.

`python -m tests.mxnet2` loads it. It writes a JSON line a test to the file MXNET2_REPORT; MXNET2_CASES is the number of cases of each function to run
(all, if it is empty), and MXNET2_LEFT_OUT a file with the patterns of tests that are not to run, one a line.
"""
import gc
import json
import os
import pathlib

import numpy
import pytest

import mxnet as mx

from .selection import evenly, matches, short


def prepare():
    """Change what the tests need changed in this process: MXNet's version, its check for leaks, and NumPy's old names."""
    mx.util.set_version("2.0")
    # MXNet's check for leaks asks arrays that the garbage collector has found in a cycle whether their memory, which MXNet frees in
    # `__del__`, is still in use. Here it is an object's, and goes with it.
    mx.nd._internal.NDArrayBase._alive = False
    # What tests from before NumPy 1.24 call types and constants, and NumPy 2 functions.
    for alias, value in {"bool": bool, "int": int, "float": float, "object": object, "str": str,
                         "Inf": numpy.inf, "PINF": numpy.inf, "NINF": -numpy.inf}.items():
        if alias not in numpy.__dict__:
            setattr(numpy, alias, value)
    for alias, name in {"NaN": "nan", "product": "prod", "row_stack": "vstack", "in1d": "isin", "round_": "round", "float_": "float64"}.items():
        if alias not in numpy.__dict__ and hasattr(numpy, name):
            setattr(numpy, alias, getattr(numpy, name))


def write(**row):
    if path := os.environ.get("MXNET2_REPORT"):
        with open(path, "a") as file:
            file.write(json.dumps(row) + "\n")


def pytest_configure(config):
    prepare()
    for mark in ("flaky", "serial", "seed(value)", "garbage_expected", "integration"):
        config.addinivalue_line("markers", f"{mark}: one of MXNet's marks")


def pytest_collection_modifyitems(config, items):
    left_out = os.environ.get("MXNET2_LEFT_OUT")
    if left_out:
        patterns = pathlib.Path(left_out).read_text().splitlines()
        kept = [i for i in items if not any(matches(short(i.nodeid), p) for p in patterns)]
    else:
        kept = list(items)
    if cases := os.environ.get("MXNET2_CASES"):
        names = set(evenly([i.nodeid for i in kept], int(cases)))
        kept = [i for i in kept if i.nodeid in names]
    keep = set(kept)
    config.hook.pytest_deselected(items=[i for i in items if i not in keep])
    items[:] = kept


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    for item in session.items:
        write(id=short(item.nodeid), outcome="did not run", error="")
    gc.collect()
    gc.freeze()  # MXNet's check for leaks goes through all objects twice a test


def pytest_collectreport(report):
    if report.failed:
        write(id=short(report.nodeid), outcome="failed", error=last_line(report))


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        write(id=short(report.nodeid), outcome=report.outcome, seconds=round(report.duration, 2), error=last_line(report) if report.failed else "")


def last_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return (text.strip().splitlines() or [""])[0][:300]
