import builtins
import importlib
import importlib.util
import pathlib
import re
import sys

import pytest

import mxnet as mx
from mxnet.compat import finder
from mxnet.compat.table import COMMON, NAMES, OFTEN_READ

SOURCES = pathlib.Path(mx.__file__).parent
# Extras and other packages bring these; the rest of the table leads somewhere everywhere.
OPTIONAL = {"bokeh", "h5py", "numpy_financial", "scipy"}


@pytest.mark.parametrize("path", NAMES)
def test_each_name_leads_to_the_real_thing(path):
    module = importlib.import_module(path)
    names, elsewhere = finder.entry(path)
    for name, target in names.items():
        source, _, attribute = target.partition(":")
        if source.partition(".")[0] in OPTIONAL and importlib.util.find_spec(source.partition(".")[0]) is None:
            continue
        real = importlib.import_module(source)
        for part in attribute.split(".") if attribute else ():
            real = getattr(real, part)
        assert getattr(module, name) is real, f"{path}.{name}"
    for source in elsewhere:
        lacking = [n for n in dir(importlib.import_module(source)) if not n.startswith("__") and not hasattr(module, n)]
        assert not lacking, f"{path} lacks {lacking} of {source}"


def test_a_name_that_a_module_has_itself_is_not_in_the_table():
    paths = set(NAMES) - set(OFTEN_READ)
    both = [f"{path}.{name}" for path in paths for name in finder.entry(path)[0] if name in vars(importlib.import_module(path))]
    assert not set(both) - set(sys.modules)  # a module becomes an attribute of its package when it is imported


def test_common_names_are_used_and_are_none_of_python():
    used = {word.partition("=")[2] or word for line in NAMES.values() for word in line.split()}
    assert not [name for name in COMMON if name not in used or hasattr(builtins, name)]


def test_what_is_absent_has_no_entry_and_no_file():
    files = {".".join(("mxnet", *file.relative_to(SOURCES).with_suffix("").parts)).removesuffix(".__init__") for file in SOURCES.rglob("*.py")}
    assert "mxnet.contrib.text" in files


def test_no_source_imports_names_for_programs_to_find():
    """What a module does not use itself is in the table; an import for its effect says in brackets which."""
    lines = [(f"{file.relative_to(SOURCES)}:{number}", line) for file in SOURCES.rglob("*.py")
             for number, line in enumerate(file.read_text().splitlines(), 1) if re.search(r"# noqa:.*F401", line)]
    assert not [place for place, line in lines if not re.search(r"F401  \((registers?|they register|fills) ", line)]
