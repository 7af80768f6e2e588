"""Every function and class of the reference has an example, and every example of the reference runs."""
import doctest
import inspect
import pathlib
import sys

import pytest

import mxnet as mx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import example_coverage  # noqa: E402

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(scope="module")
def documented():
    return example_coverage.documented()


def test_everything_has_an_example(documented):
    assert len(documented) > 1400
    assert {name for _, name, value in documented if not example_coverage.has_example(value)} == set()


def written_in_files():
    """Return the examples in docstrings that pytest finds in the package's files."""
    finder, parser, results = doctest.DocTestFinder(recurse=True, exclude_empty=True), doctest.DocTestParser(), set()
    for name, module in list(sys.modules.items()):
        if name.startswith("mxnet") and getattr(module, "__file__", "").startswith(str(ROOT / "src")):
            for test in finder.find(module, module.__name__):
                results.update(sources(parser, test.docstring))
    return results


def sources(parser, text):
    return [(example.source, example.want) for example in parser.get_examples(inspect.cleandoc(text or ""))]


def test_examples_of_functions_made_at_run_time(documented):
    """pytest runs the examples in files; the others, of functions that a table or the registry makes, run here."""
    known, parser, runner = written_in_files(), doctest.DocTestParser(), doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    failed, ran = [], set()
    for _, name, value in documented:
        text = inspect.cleandoc(value.__doc__ or "")
        if text in ran or all(one in known for one in sources(parser, text)):
            continue
        ran.add(text)
        output = []
        runner.run(parser.get_doctest(text, {"mx": mx}, name, None, 0), out=output.append)
        if output:
            failed.append(f"{name}: {''.join(output)}")
    assert failed == [] and len(ran) > 50
