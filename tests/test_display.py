"""Notebooks: tables of arrays and networks, and progress bars."""
import io
import sys
import types

import pytest
import tqdm.auto

import mxnet as mx
from mxnet import display


@pytest.fixture
def notebook(monkeypatch):
    """A Jupyter kernel, as far as the package looks at it; returns what is shown."""
    shown = []
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    shows = types.ModuleType("IPython.display")
    shows.HTML, shows.display = lambda text: text, shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    return shown


def test_a_terminal_is_no_notebook(monkeypatch):
    assert not display.in_notebook()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace()  # IPython in a terminal has no kernel
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not display.in_notebook()


def test_progress_is_shown_in_notebooks_and_logs_only(monkeypatch, notebook):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    bar = display.progress_bar(range(3), desc="batches")
    assert isinstance(bar, tqdm.auto.tqdm) and not bar.disable
    bar.close()
    monkeypatch.delitem(sys.modules, "IPython")
    assert list(display.progress_bar(range(2))) == [0, 1] and display.progress_bar().disable
    logged = display.progress_bar(range(2), desc="packing", logged=True)
    assert list(logged) == [0, 1] and "packing: 100%" in sys.stderr.getvalue()


def test_tables_escape_their_text():
    text = display.table("<caption>", ["a", "b"], [["<x>", 1]], footer="a & b")
    assert "&lt;caption&gt;" in text and "&lt;x&gt;</td>" in text and "a &amp; b" in text and 'text-align:right">1</td>' in text


def test_summary_is_a_table_in_a_notebook(notebook, capsys):
    net = mx.gluon.nn.Sequential(prefix="net_")
    net.add(mx.gluon.nn.Dense(4, in_units=3), mx.gluon.nn.Dense(2, in_units=4))
    net.initialize()
    net.summary(mx.nd.ones((1, 3)))
    table, = notebook
    assert capsys.readouterr().out == "" and "<td" in table and "Dense-1" in table and "(1, 4)" in table
    assert "26 parameters, 0 of them are not trained; 0 are used again" in table


def test_networks_are_tables():
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        inner = mx.gluon.nn.HybridSequential()
        inner.add(mx.gluon.nn.Dense(4, in_units=3))
        net.add(inner, mx.gluon.nn.Dense(2))
    text = net._repr_html_()
    assert "HybridSequential net<" in text and "\u2003\u2003(0) Dense(3 -&gt; 4, linear)" in text
    assert "weight 4x3, bias 4" in text and ">16</td>" in text
    assert "18 parameters; the first batch determines 1 more array<" in text
