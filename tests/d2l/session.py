"""A process that runs sections, each in a fork of its own, its cells in order: ``python -m tests.d2l.session TASKS VERSION SEED SECONDS JOBS``.

TASKS is a JSON file, a list of {section, place, cells: [[name, source], ...], report, log}; a report gets a JSON line a cell, and the standard output
the name of a section when it has ended. Trainings are short: an epoch where a cell says ``num_epochs`` or
``max_epochs``, and `BATCHES` batches of each loader in the book's `Trainer`. Loaders read in this process, without workers.
"""
import ast
import contextlib
import faulthandler
import importlib
import io
import itertools
import json
import os
import pathlib
import random
import signal
import sys
import time
import traceback
import types
from unittest import mock

import numpy

from . import standins

BATCHES = 3
EPOCHS = ("num_epochs", "max_epochs")


class Shorter(ast.NodeTransformer):
    """Change numbers of epochs to one, in assignments and in keywords; `changed` tells whether there was one."""

    changed = False

    def _one(self, name, value):
        if name in EPOCHS and isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value > 1:
            self.changed, value.value = True, 1

    def visit_Assign(self, node):
        for target in node.targets:
            names, values = ([target], [node.value])
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                names, values = target.elts, node.value.elts
            for name, value in zip(names, values, strict=False):
                self._one(getattr(name, "id", None), value)
        return self.generic_visit(node)

    def visit_keyword(self, node):
        self._one(node.arg, node.value)
        return self.generic_visit(node)


def bound(tree):
    """Return the names that a cell binds in its module."""
    names, waiting = set(), list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.split(".")[0])
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp):
            waiting.extend(ast.iter_child_nodes(node))
    return names


class Section:
    """The names of a section, those that are missing because a cell was left out, and whether a training was shortened or data synthetic."""

    def __init__(self, asked, refused):
        self.module = types.ModuleType("__main__")
        self.names, self.missing, self.altered = self.module.__dict__, {}, False
        self.names["tab"] = types.SimpleNamespace(selected=lambda *tabs: "mxnet" in tabs)  # what the book's plugin for notebooks defines
        self._asked, self._refused = asked, refused

    def run(self, name, source, seconds):
        """Run a cell; ``{outcome: ran | failed | left out, why, output, altered, seconds}``."""
        shorter, start, refused = Shorter(), time.monotonic(), len(self._refused)
        outcome, why, binds, output = "ran", "", set(), io.StringIO()
        try:
            tree = ast.parse(source)
            binds = bound(tree)
            tree = ast.fix_missing_locations(shorter.visit(tree))
            signal.setitimer(signal.ITIMER_PROF, seconds)  # processor time
            with contextlib.redirect_stdout(output):
                self._execute(tree, name, quiet=source.rstrip().endswith(";"))
        except Exception as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            outcome, why = self._explain(error, refused)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if outcome == "left out":
            for bind in binds:
                self.names.pop(bind, None)
                self.missing[bind] = why
        else:
            for bind in binds & set(self.missing):
                del self.missing[bind]
        self.altered |= shorter.changed or bool(self._asked)
        return {"outcome": outcome, "why": why, "output": output.getvalue(), "altered": self.altered, "seconds": round(time.monotonic() - start, 1)}

    def _execute(self, tree, name, quiet):
        result = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self.names)
        if result is not None:
            value = eval(compile(ast.Expression(result.value), name, "eval"), self.names)
            if value is not None and not quiet:
                print(repr(value))

    def _explain(self, error, refused):
        if len(self._refused) > refused:
            return "left out", f"it needs a download: {self._refused[-1]}"
        if isinstance(error, NameError) and error.name in self.missing:
            return "left out", self.missing[error.name]
        traceback.print_exception(error)
        return "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def prepare(version):
    """Make notebooks' displays silent, refuse the network, and import what all sections use; the module `d2l.mxnet`."""
    os.environ["MPLBACKEND"] = "Agg"
    import IPython.display
    import matplotlib.pyplot
    import matplotlib_inline.backend_inline

    import mxnet as mx

    if version == "2.0":
        mx.util.set_version(version)
    IPython.display.display = mock.MagicMock()
    IPython.display.clear_output = mock.MagicMock()
    matplotlib_inline.backend_inline.set_matplotlib_formats = mock.MagicMock()
    matplotlib.pyplot.show = mock.MagicMock()
    stem = matplotlib.pyplot.stem
    matplotlib.pyplot.stem = lambda *values, use_line_collection=True, **looks: stem(*values, **looks)  # an argument until matplotlib 3.7
    init = mx.gluon.data.DataLoader.__init__
    mx.gluon.data.DataLoader.__init__ = lambda *values, num_workers=0, **more: init(*values, num_workers=0, **more)
    standins.install()
    return importlib.import_module("d2l.mxnet")


def shorten_trainer(section, d2l):
    whole = d2l.Trainer.prepare_data

    def prepare_data(self, data):
        whole(self, data)
        for part in ("train", "val"):
            loader = getattr(self, f"{part}_dataloader")
            if loader is not None:
                batches = list(itertools.islice(loader, BATCHES + 1))
                section.altered |= len(batches) > BATCHES
                setattr(self, f"{part}_dataloader", batches[:BATCHES])
                setattr(self, f"num_{part}_batches", len(batches[:BATCHES]))

    d2l.Trainer.prepare_data = prepare_data


def alarm(number, frame):
    raise TimeoutError("the cell took too long")


def run_section(d2l, place, report, cells, seed, seconds):
    import mxnet as mx

    os.chdir(place)
    for seeded in (random.seed, numpy.random.seed, mx.random.seed):
        seeded(seed)
    section = Section(standins.used, standins.refused)
    sys.modules["__main__"] = section.module
    signal.signal(signal.SIGPROF, alarm)
    faulthandler.dump_traceback_later(10 * seconds, exit=True)  # where Python cannot look for the alarm
    shorten_trainer(section, d2l)
    with open(report, "w") as file:
        for name, source in cells:
            print(json.dumps({"cell": name, **section.run(name, source, seconds)}), file=file, flush=True)
            sys.modules["matplotlib.pyplot"].close("all")


def start(d2l, task, seed, seconds):
    """Fork a process for a section; its number."""
    if child := os.fork():
        return child
    try:
        log = os.open(task["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        run_section(d2l, task["place"], task["report"], task["cells"], seed, seconds)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)  # whatever threads the cells have left


def main(tasks, version, seed, seconds, jobs):
    d2l, running = prepare(version), {}
    waiting = json.loads(pathlib.Path(tasks).read_text())
    while waiting or running:
        while waiting and len(running) < int(jobs):
            task = waiting.pop(0)
            running[start(d2l, task, int(seed), int(seconds))] = task["section"]
        print(running.pop(os.wait()[0]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
