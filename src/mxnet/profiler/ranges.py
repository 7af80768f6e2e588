"""Ranges on the timelines of other tools, which see what hardware does: of Nsight (NVTX) where a GPU is, of VTune (ITT) where it started the program.

A range begins before the call that it is around, so that a function is put in front, as for `points`, while the profiler runs and no longer.
"""
from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from .. import autograd
from ..ndarray import dispatch, fast_calls

_COLLECTORS = ("INTEL_LIBITTNOTIFY64", "INTEL_LIBITTNOTIFY32")  # set by VTune for the programs that it starts
Enclose = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Tool(NamedTuple):
    """How a tool is told of ranges: nested ones of a thread, moments, and ranges that may overlap, if it has such."""

    push: Callable[[str], Any]
    pop: Callable[[], Any]
    mark: Callable[[str], Any]
    start: Callable[[str], Any] | None = None
    end: Callable[[Any], Any] | None = None


def tools() -> list[Tool]:
    """Those that may listen."""
    found = []
    if torch.cuda.is_available():
        nvtx = torch.cuda.nvtx
        found.append(Tool(nvtx.range_push, nvtx.range_pop, nvtx.mark, nvtx.range_start, nvtx.range_end))
    if any(os.environ.get(name) for name in _COLLECTORS) and torch.profiler.itt.is_available():
        itt = torch.profiler.itt
        found.append(Tool(itt.range_push, itt.range_pop, itt.mark))
    return found


def enclosing(listening: list[Tool]) -> Enclose | None:
    """What calls a function within a range: ``enclose(name, function, args, kwargs)``; None if no tool listens."""
    if not listening:
        return None

    def enclose(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for tool in listening:
            tool.push(name)
        try:
            return function(*args, **kwargs)
        finally:
            for tool in reversed(listening):
                tool.pop()

    return enclose


def calls(enclose: Enclose) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """What the points don't watch: owner, attribute, and the function to put there."""
    yield dispatch, "run", _enclosed(dispatch.run, lambda args: args[0].name, enclose)
    yield fast_calls, "watched", lambda *args: None  # all go the general way, through `run`
    yield autograd, "_run", _enclosed(autograd._run, lambda args: "MXAutogradBackwardEx", enclose)


def _enclosed(original: Callable[..., Any], name: Callable[[tuple[Any, ...]], str], enclose: Enclose) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return enclose(name(args), original, args, kwargs)

    return call
