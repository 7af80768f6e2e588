"""The generated pages of the site, from the registry, the docstrings and the benchmarks' results."""
import pathlib
import re
import sys

import pytest

import mxnet as mx
from mxnet.ops.docstrings import with_parameters
from mxnet.ops.registry import get

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from site_pages import benchmarks, differences, docstrings, fingerprint, mirror, reference, traits_table  # noqa: E402


@pytest.fixture(scope="module")
def pages():
    return {path: text.decode() for path, text in reference.pages(ROOT).items()}


def test_a_page_says_all_about_an_operator(pages):
    page = pages["reference/nd/Convolution.md"]
    assert page.startswith("# Convolution\n\n```{py:function} mxnet.nd.Convolution(data, weight, bias=None, *, kernel, stride=(), ")
    assert "| `kernel` | a tuple of integers | required |" in page and "| `no_bias` | True or False | `False` |" in page
    assert "**Raises**" in page and "- **MXNetError**\\\n" in page and "```pycon\n>>> x, w = " in page
    assert "| own kernel | oneDNN | OpenVINO | GPU | INT8 | ONNX |" in page and "in JSON files `Convolution`" in page


def test_differences_stand_on_the_pages_of_their_operators(pages):
    assert "## Differences from MXNet 1.9.1" in pages["reference/nd/SoftmaxActivation.md"]
    assert "MXNet's backward always takes axis 1" in pages["reference/nd/SoftmaxActivation.md"]
    assert "## Differences" not in pages["reference/nd/FullyConnected.md"]


def test_every_public_operator_has_a_page_with_an_example(pages):
    names = reference.operator_names(mx)
    publics = [name for several in names.values() for name in several]
    listed = re.findall(r"^\| \[([^\]]+)\]\(<([^>]+)>\) \|", pages["reference/nd/index.md"], re.M)
    assert len(listed) == len(publics) > 350
    assert {page for _, page in listed} <= {path.removeprefix("reference/nd/") for path in pages}
    silent = {page for _, page in listed if "```pycon" not in pages[f"reference/nd/{page}"] and not page.startswith("contrib.backward_")}
    assert silent == set()


@pytest.mark.parametrize("page, names", [
    ("modules/gluon.nn", ["Dense", "Conv2D", "BatchNorm", "HybridSequential"]), ("modules/optimizer", ["Adam", "SGD"]),
    ("modules/metric", ["Accuracy"]), ("modules/autograd", ["record", "backward"]), ("modules/ndarray", ["NDArray", "array", "save", "zeros"]),
    ("modules/symbol", ["Symbol", "load", "var"]), ("modules/io", ["NDArrayIter", "ImageRecordIter"]),
    ("modules/module", ["Module", "BucketingModule"]), ("np/np.random", ["normal"]), ("modules/profiler", ["set_config", "dumps"]),
    ("modules/lr_scheduler", ["CosineScheduler"]), ("np/np.linalg", ["norm"])])
def test_modules_are_documented(pages, page, names):
    for name in names:
        assert re.search(rf"^## {re.escape(docstrings.escaped(name))}$", pages[f"reference/{page}.md"], re.M), name


def test_every_variable_is_in_the_table(pages):
    for name in mx.environment.VARIABLES:
        assert f"| `{name}` |" in pages["reference/environment.md"]
    assert "| `NNVM_EXEC_MATCH_RANGE` | `16` | *none*: no memory plan" in pages["reference/environment.md"]


def test_links_to_the_reference_lead_to_pages(pages):
    for path in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\{doc\}`[^`<]*<(?:/)([^>]+)>`", path.read_text()):
            assert f"{target}.md" in pages, f"{path}: {target}"


def test_where_operators_run():
    ops = [get(name) for name in ("Convolution", "FullyConnected", "relu", "_contrib_boolean_mask", "khatri_rao")]
    rows = traits_table.rows(ROOT, ops)
    assert rows["Convolution"]["OpenVINO"] == rows["Convolution"]["INT8"] == rows["Convolution"]["ONNX"] == "yes"
    assert rows["_contrib_boolean_mask"]["GPU"] == "waits for a count" and rows["relu"]["GPU"] == "yes"
    assert rows["FullyConnected"]["own kernel"] == "yes" and rows["khatri_rao"]["ONNX"] == ""


def test_help_has_types_and_defaults():
    doc = mx.nd.Convolution.__doc__
    assert "\nParameters\n----------\ndata : NDArray\nweight : NDArray\nbias : NDArray, optional\n" in doc
    assert "kernel : a tuple of integers, required\n" in doc
    assert "no_bias : True or False, optional, default=False\n" in doc
    assert doc.index("Parameters") < doc.index("Raises") < doc.index("Example")
    assert "*data : any number of Symbol" in mx.sym.concat.__doc__ and "dim : an integer, optional, default=1" in mx.sym.concat.__doc__
    assert with_parameters(get("relu"), "NDArray").count("Parameters") == 1


def test_docstrings_become_markdown():
    doc = """Sums `x` over *axes* of <shape>.

    Two rows_of_text, ``code_here``::

        literal * block

    - an item of `it`

    Parameters
    ----------
    x : NDArray
        The input [a].

    Raises
    ------
    MXNetError
        If it fails.

    Example
    -------
    >>> f(1)
    2
    """
    assert docstrings.markdown(doc) == r"""Sums `x` over \*axes\* of \<shape\>.

Two rows\_of\_text, `code_here`:

```text
literal * block
```

- an item of `it`

**Parameters**

- **x**: NDArray\
  The input \[a\].

**Raises**

- **MXNetError**\
  If it fails.

**Example**

```pycon
>>> f(1)
2
```
"""
    assert docstrings.summary(doc) == r"Sums `x` over \*axes\* of \<shape\>"


def test_signatures_show_defaults():
    def f(self, a, b: int = 2, *, c="x", d=mx.nd.array, e=ROOT):
        pass
    assert docstrings.signature(f, "g") == 'g(a, b: int = 2, *, c="x", d=array, e=...)'
    f.__annotations__["a"] = "int | NDArray"  # as `from __future__ import annotations` leaves them
    assert docstrings.signature(f, "g").startswith("g(a: int | NDArray, b: int = 2, ")


def test_the_same_takes_the_reason_above():
    rows = [(["a"], "accepts", "*", "Why."), (["b*"], "accepts", "*", "The same."), (["c"], "refuses", "x", "The same for c. More.")]
    assert differences.of(get("broadcast_add"), rows) == [("accepts", "*", "Why.")]


def test_means_of_benchmarks():
    rows = {"a": {"Remex": [1.0, 2.0, 3.0], "MXNet": [4.0]}, "b": {"Remex": [1.0], "MXNet": [2.0], "torch": [1.5]}}
    means = benchmarks.ratios({"rows": {name: {"values": values} for name, values in rows.items()}})
    assert list(means) == ["torch", "MXNet"]
    assert means["torch"] == pytest.approx((1.5, 1)) and means["MXNet"] == pytest.approx((2.0, 2))
    assert benchmarks.ratios({"rows": []}) == {}


def test_links_to_folders_lead_to_their_first_page(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks" / "results" / "zen5").mkdir(parents=True)
    (tmp_path / "benchmarks" / "results" / "zen5" / "training.md").write_text("# T\n")
    page = tmp_path / "docs" / "a.md"
    text = "[x](../benchmarks/results/zen5) [y](../benchmarks/results/zen5/training.md) [z](https://z) [w](#w)"
    assert mirror.with_pages_for_folders(tmp_path, page, text) == text.replace("zen5)", "zen5/training.md)")


def test_the_mirror_forgets_pages_that_are_gone(tmp_path):
    for name in ("a.md", "b/c.md"):
        mirror.update(tmp_path / name, b"x")
    mirror.remove_others(tmp_path, {"a.md": b"x"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


def test_the_fingerprint_follows_the_code(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    before = fingerprint.of_code(tmp_path)
    (tmp_path / "notes.txt").write_text("no code")
    assert fingerprint.of_code(tmp_path) == before
    (tmp_path / "a.py").write_text("x = 2")
    assert fingerprint.of_code(tmp_path) != before
