import importlib.util
import pathlib


def load_script():
    path = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "make_stubs.py"
    spec = importlib.util.spec_from_file_location("make_stubs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_stubs_are_what_the_registry_says():
    stale = load_script().stale()
    assert not stale, f"run `make stubs`: {[p.name for p in stale]} are stale"
