"""ONNX's own tests: those of single operators but for the expanded functions (``benchmarks/onnx_import.py`` runs them too), and whole models."""
import fnmatch

import pytest

from onnx_cases import KINDS, KNOWN, cases, failure, known_failure, round_trip

FAST = [kind for kind in KINDS if kind != "real"]


@pytest.mark.parametrize("kind", FAST)
def test_cases(kind):
    chosen = [case for case in cases(kind) if "_expanded" not in case.name]
    found = {case.name: failure(case) for case in chosen}
    unexpected = {name: reason for name, reason in found.items() if reason is not None and known_failure(name) is None}
    assert not unexpected
    assert len(chosen) > {"node": 1000, "simple": 15, "pytorch-operator": 30, "pytorch-converted": 75}[kind]
    passing = [name for name, reason in found.items() if reason is None and known_failure(name) is not None]
    assert not passing, "known to fail, but they pass: take them out of the table"


def test_the_table_of_reasons_names_cases():
    names = [case.name for case in cases("node")] + [case.name for case in cases("simple")]
    assert [pattern for pattern in KNOWN if not fnmatch.filter(names, pattern)] == []


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25", "densenet121", "squeezenet1.1"])
def test_networks_there_and_back(name, tmp_path):
    trip = round_trip(name, tmp_path)
    assert trip.difference < 1e-4 and trip.by_runtime < 1e-4 and trip.operators[0] == trip.operators[1] and trip.changed is None


@pytest.mark.parametrize("name", ["encoder", "language model", "ssd"])
def test_networks_that_come_back_by_other_operators(name, tmp_path):
    """Attention and layers of an RNN come back as the operators that ONNX has for them; the graph that is written again is the same."""
    trip = round_trip(name, tmp_path)
    assert trip.difference < 1e-4 and trip.by_runtime < 1e-4 and trip.changed is None
