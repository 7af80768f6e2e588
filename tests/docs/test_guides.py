"""The guides: their structure, their links, and their cells."""
import ast
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import run_guides  # noqa: E402

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
EXECUTED = [path for path in GUIDES if run_guides.cells(path.read_text())]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
# Together they take over a minute of a processor: `python scripts/run_guides.py` and `make docs` run the others, too.
QUICK = ("ten_minutes", "ndarray", "autograd", "custom_layers", "parameters", "hybridize", "losses", "saving", "symbol_module", "inference", "sparse",
         "numpy", "troubleshooting", "profiler")
TUTORIALS = """Manipulate data with `ndarray`; Create a neural network; Automatic differentiation with `autograd`; Train the neural network;
    Predict with a pre-trained model; Use GPUs; Gluon: from experiment to deployment; Logistic regression explained; PyTorch vs Apache MXNet;
    Automatic Differentiation; Activation Blocks; Custom Layers; Customer Layers (Beginners); Hybridize; Initialization; Parameter and Block Naming;
    Layers and Blocks; Parameter Management; Saving and Loading Gluon Models; Image Augmentation; Gluon `Dataset`s and `DataLoader`;
    Image similarity search with InfoGAN; Handwritten Digit Recognition; Using pre-trained models in MXNet; Custom Loss Blocks;
    Kullback-Leibler (KL) Divergence; Loss functions; Google Neural Machine Translation; Machine Translation with Transformer; MXNet Gluon Fit API;
    Learning Rate Finder; Learning Rate Schedules; Advanced Learning Rate Schedules; Normalization Blocks; Trainer; Distributed Key-Value Store;
    An Intro: Manipulate Data the MXNet...; NDArray Operations; NDArray Contexts; Gotchas using NumPy in Apache MXNet;
    CSRNDArray - NDArray in Compressed Sparse Row Storage Format; RowSparseNDArray - NDArray for Sparse Gradient Updates;
    Train a Linear Regression Model with Sparse Symbols; Sparse NDArrays with Gluon; Exporting to ONNX format; Fine-tuning an ONNX model;
    Running inference on MXNet/Gluon from...; Importing an ONNX model into MXNet; Optimizers; Visualize networks;
    Using AMP: Automatic Mixed Precision; Quantize with MKL-DNN backend; Deploy with int-8; Install MXNet with MKL-DNN; Profiling MXNet Models;
    Optimizing Deep Learning Computation Graphs with TensorRT; Use TVM; Custom Numpy Operators; Deploy into C++;
    Deploy into a Java or Scala Environment; Image Classication using pretrained ResNet-50...;
    Real-time Object Detection with MXNet...; MXNet on the Cloud; Run on an EC2 Instance; Run on Amazon SageMaker"""


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.M | re.S))


def anchors(path):
    """The anchors that GitHub and the site give to the headings of a page."""
    headings = re.findall(r"^#{1,6} (.*)$", re.sub(r"^(`{3,}).*?^\1$", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-") for heading in headings}


def dead_links(path):
    dead = []
    for target in re.findall(r"\]\(<?([^)>\s]+)>?\)", without_code(path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file) if file else path
        if not place.exists() or anchor and anchor not in anchors(place):
            dead.append(target)
    return dead


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert dead_links(path) == []


def test_a_dead_link_is_reported(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Here it is\n[a](page.md) [b](page.md#here-it-is) [c](#here) [d](none.md) `[e](code.md)`\n```\n[f](g.md)\n```\n[h](https://h)\n")
    assert dead_links(page) == ["#here", "none.md"]


def test_every_guide_is_listed_once():
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (ROOT / "docs/guides/index.md").read_text(), re.S)
    listed = re.findall(r"^(?!\.\.)(\w+)$", "\n".join(trees), re.M)
    assert sorted(listed) == sorted(path.stem for path in GUIDES if path.stem != "index")
    topics = re.findall(r"^([\w-]+)$", (ROOT / "docs/topics.md").read_text(), re.M)
    assert sorted([*topics, "migrating", "index", "topics", "project"]) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("path", EXECUTED, ids=lambda path: path.stem)
def test_guides_are_notebooks(path):
    text = path.read_text()
    assert text.startswith("---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n---\n# ")
    assert text.count("```{code-cell}") == len(run_guides.cells(text))
    for tags, source, _ in run_guides.cells(text):
        assert tags <= {"picture", "raises-exception"}
        assert "picture" in tags or not re.search("matplotlib|plt", source), "cells that draw are tagged `picture`"
        ast.parse(source)


def test_each_tutorial_has_a_counterpart():
    rows = dict(re.findall(r"^\| ([^|]+) \| (\[[^|]*\)) \|$", (ROOT / "docs/guides/tutorials.md").read_text(), re.M))
    titles = [" ".join(title.split()) for title in TUTORIALS.split(";")]
    assert [(row, title) for row, title in zip(sorted(rows), sorted(titles)) if row != title and not row.startswith(title.removesuffix("..."))] == []
    assert len(rows) == len(titles)


def run(*arguments):
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "run_guides.py"), *arguments], capture_output=True, text=True, timeout=230)


def test_cells_of_quick_guides_run():
    assert set(QUICK) <= {path.stem for path in EXECUTED}
    done = run(*QUICK)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.findall(r"^(\w+) +ok ", done.stdout, re.M) == list(QUICK)


def test_a_cell_that_fails_is_reported(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n```{code-cell}\nx = 1\nx\n```\n```{code-cell}\n:tags: [raises-exception]\nx / 0\n```\n")
    run_guides.run_page(page)
    page.write_text("# Page\n```{code-cell}\n:tags: [raises-exception]\n1\n```\n")
    with pytest.raises(AssertionError, match="page.md:4: this cell should raise an exception"):
        run_guides.run_page(page)
    page.write_text("# Page\n```{code-cell}\n1\n```\n\n```{code-cell}\nnone\n```\n")
    with pytest.raises(NameError, match="none") as raised:
        run_guides.run_page(page)
    assert raised.traceback[-1].lineno == 6  # counted from 0


def test_tags_and_lines_of_cells():
    text = "# A\n```{code-cell}\n:tags: [picture, raises-exception]\nx\n```\n```python\nno cell\n```\n```{code-cell} ipython3\ny\n```\n"
    assert run_guides.cells(text) == [({"picture", "raises-exception"}, "x\n", 4), (set(), "y\n", 10)]
