"""The report: one self-contained HTML file with tables, timeline, memory and advice for one profile, or two side by side."""
import html
import json
import os
import pathlib
import re
import tempfile
from typing import Any

from .. import files
from .analysis import Analysis
from .recorder import recorder
from .trace import Encoder, Writer, read

_PAGE = pathlib.Path(__file__).parent / "page"


def report(filename: str = "profile.html", profile: str | None = None, compare: str | None = None) -> str:
    """Write a page about a profile, which any browser shows without a network.

    Parameters
    ----------
    filename : str
        The page.
    profile : str, optional
        A trace; by default the events recorded so far, in the configured file and in memory.
    compare : str, optional
        A second trace, shown beside the first one.

    Returns
    -------
    str
        `filename`.

    Raises
    ------
    MXNetError
        If a file is no trace, or can't be read or written.

    Example
    -------
    >>> import mxnet as mx, tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> mx.profiler.set_config(filename=os.path.join(folder, 'profile.json'))
    >>> mx.profiler.set_state('run')
    >>> y = mx.nd.ones((10, 10)).sqrt()
    >>> mx.profiler.set_state('stop')
    >>> os.path.basename(mx.profiler.report(os.path.join(folder, 'profile.html')))
    'profile.html'
    >>> mx.profiler.dump()
    """
    profiles = [(profile or recorder.settings.filename, _recorded() if profile is None else read(profile))]
    if compare is not None:
        profiles.append((compare, read(compare)))
    files.write_bytes(filename, page([{"name": os.path.basename(name), **Analysis(events).data()} for name, events in profiles]).encode())
    return filename


def _recorded() -> list[dict[str, Any]]:
    """Return the events recorded so far: those in the file, and those that are not written yet."""
    recorder.collect()
    rows = recorder.events.copy()
    events = read(recorder.settings.filename) if recorder.written else []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        encoder = Encoder(recorder.origin, recorder.events.threads, recorder.waited_ms, recorder.idle_cores)
        Writer(path, encoder).append(recorder.events.decoded(rows))
        processes = max((int(e.get("pid", 0)) for e in events), default=-1) + 1
        fresh = read(path)
    for event in fresh:  # the processes of the second part get numbers behind those of the first
        event["pid"] += processes
    return events + fresh


def page(profiles: list[dict[str, Any]]) -> str:
    """Return the HTML text of the page for one or two profiles, which are results of `Analysis.data`."""
    text = (_PAGE / "page.html").read_text("utf-8")
    data = json.dumps(profiles).replace("<", "\\u003c")  # no name can close the script element that contains it
    parts = {"title": html.escape(" and ".join(p["name"] for p in profiles)), "data": data}
    for key, name in (("uplot_css", "uPlot.min.css"), ("css", "page.css"), ("uplot_js", "uPlot.iife.min.js"), ("js", "page.js")):
        parts[key] = (_PAGE / name).read_text("utf-8")
    return re.sub(r"/\*([a-z_]+)\*/", lambda match: parts[match.group(1)], text)
