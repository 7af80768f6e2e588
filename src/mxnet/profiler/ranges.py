"""Ranges on the timelines of hardware profilers: Nsight (NVTX) where there is a GPU, VTune (ITT) if it started the program.

A range begins before the call that it encloses; functions are therefore wrapped, as in `points`, while the profiler runs.
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
    """The functions of a tool for a thread's nested ranges, for instants, and for ranges that may overlap (None if it has none)."""

    push: Callable[[str], Any]
    pop: Callable[[], Any]
    mark: Callable[[str], Any]
    start: Callable[[str], Any] | None = None
    end: Callable[[Any], Any] | None = None


def tools() -> list[Tool]:
    """Return the tools that may be attached to this process."""
    available = []
    if torch.cuda.is_available():
        nvtx = torch.cuda.nvtx
        available.append(Tool(nvtx.range_push, nvtx.range_pop, nvtx.mark, nvtx.range_start, nvtx.range_end))
    if any(os.environ.get(name) for name in _COLLECTORS) and torch.profiler.itt.is_available():
        itt = torch.profiler.itt
        available.append(Tool(itt.range_push, itt.range_pop, itt.mark))
    return available


def enclosing(listening: list[Tool]) -> Enclose | None:
    """Return ``enclose(name, function, args, kwargs)``, which calls a function within a range of each tool; None without tools."""
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
    """Yield (owner, attribute, wrapper) for the functions that need ranges beside the points."""
    yield dispatch, "run", _enclosed(dispatch.run, lambda args: args[0].name, enclose)
    yield fast_calls, "watched", lambda *args: None  # all go the general way, through `run`
    yield autograd, "run_engine", _enclosed(autograd.run_engine, lambda args: "MXAutogradBackwardEx", enclose)


def _enclosed(original: Callable[..., Any], name: Callable[[tuple[Any, ...]], str], enclose: Enclose) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return enclose(name(args), original, args, kwargs)

    return call
