import pathlib

import pytest

import openvino_checks  # noqa: F401  (skips this where openvino is missing)
from mxnet.graph.backends.openvino import conversion, core
from mxnet.ops import get
from openvino_checks import registered_in

FOLDER = pathlib.Path(conversion.__file__).parent
MODULES = sorted(str(p.relative_to(FOLDER).with_suffix("")).replace("/", ".") for p in FOLDER.rglob("*.py")
                 if p.parent != FOLDER or p.stem not in ("__init__", "conversion", "integers", "layers", "model", "threads"))


@pytest.mark.parametrize("module", [m for m in MODULES if not m.endswith("__init__")])
def test_converters_stand_where_their_operators_do(module):
    names = registered_in(module)
    package = "symbol" if module == "fused" else "ops"
    assert names and [n for n in names if get(n).name != n or get(n).raw.__module__ != f"mxnet.{package}.{module}"] == []


def test_every_converter_was_found():
    assert sorted(n for m in MODULES if not m.endswith("__init__") for n in registered_in(m)) == sorted(conversion.CONVERTERS)


def test_an_operator_has_one_converter():
    with pytest.raises(ValueError, match="two converters for exp: convert and another"):
        @conversion.converts("exp")
        def another(call, data):
            return data


def test_a_converter_whose_shape_is_not_the_operator_s_is_not_used(monkeypatch):
    monkeypatch.setitem(conversion.CONVERTERS, "exp", lambda call, data: call.reshape(data, (3, 2)))
    assert openvino_checks.refusal("exp", openvino_checks.numbers(2, 3)) == \
        "exp: OpenVINO computes <Type: 'float32'> [3,2], expected torch.float32 (2, 3)"


def test_the_runtime_is_started_once():
    assert core() is core()
