"""``mx.profiler``: how long operators take, as a table and as a trace for chrome://tracing or https://ui.perfetto.dev.

Example
-------
>>> import mxnet as mx, tempfile, os
>>> mx.profiler.set_config(filename=os.path.join(tempfile.mkdtemp(), 'profile.json'), profile_all=True, aggregate_stats=True)
>>> mx.profiler.set_state('run')
>>> y = mx.nd.ones((10, 10)).sqrt()
>>> mx.profiler.set_state('stop')
>>> 'sqrt' in mx.profiler.dumps()
True
>>> mx.profiler.dump()
"""
import atexit
import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from ..base import MXNetError
from .objects import Counter, Domain, Event, Frame, Marker, Task
from .recorder import Recorder, format_json, format_table, recorder

_FLAGS = {"profile_symbolic": "symbolic", "profile_imperative": "imperative", "profile_memory": "memory", "profile_api": "api"}
_VALUES = {"filename": ("filename", str), "gpu_memory_profile_filename_prefix": ("gpu_memory_prefix", str),
           "continuous_dump": ("continuous_dump", bool), "dump_period": ("dump_period", float), "aggregate_stats": ("aggregate_stats", bool)}
_PROCESSES = ("worker", "server")
_dumper: threading.Event | None = None
profiler_kvstore_handle = None


def set_kvstore_handle(handle: Any) -> None:
    """Name the kvstore whose servers ``profile_process='server'`` means."""
    global profiler_kvstore_handle
    profiler_kvstore_handle = handle


def set_config(**kwargs: Any) -> None:
    """Say what to profile.

    Parameters
    ----------
    filename : str
        Where `dump` writes the trace; ``profile.json`` by default.
    profile_all : bool
        Everything below.
    profile_symbolic, profile_imperative : bool
        Operators of graphs, and operators called one by one.
    profile_memory : bool
        The memory in use after each operator.
    profile_api : bool
        Calls that span several operators, such as `autograd.backward`.
    aggregate_stats : bool
        Keep the sums that `dumps` shows.
    continuous_dump : bool
        Write the trace every `dump_period` seconds while profiling runs, not only at `dump`.
    gpu_memory_profile_filename_prefix : str
        Where the snapshot of a GPU's memory goes that `dump` writes if ``profile_memory`` is on and a GPU is in use.
    profile_process : {'worker', 'server'}
        The process that is meant; ``'server'`` needs a distributed kvstore.

    Raises
    ------
    MXNetError
        If an argument is unknown.
    """
    _worker(kwargs.pop("profile_process", "worker"))
    settings = type(recorder.settings)()
    everything = bool(kwargs.pop("profile_all", False))
    for name in _FLAGS.values():
        setattr(settings, name, everything)
    for key, value in kwargs.items():
        if key in _FLAGS:
            setattr(settings, _FLAGS[key], everything or _truth(value))
        elif key in _VALUES:
            attribute, kind = _VALUES[key]
            setattr(settings, attribute, _truth(value) if kind is bool else kind(value))
        else:
            raise MXNetError(f"set_config: unknown argument {key!r}; expected {', '.join(['profile_all', *_FLAGS, *_VALUES, 'profile_process'])}")
    recorder.settings = settings
    recorder.update()


def _truth(value: object) -> bool:
    return value.lower() in ("1", "true") if isinstance(value, str) else bool(value)


def _worker(process: str) -> None:
    if process not in _PROCESSES:
        raise MXNetError(f"profile_process must be one of {_PROCESSES}, received {process!r}")
    if process == "server":
        raise MXNetError("profile_process='server' needs a distributed kvstore with servers, and this process has none")


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """The old form of `set_config`: `mode` is ``'symbolic'``, ``'imperative'``, ``'api'``, ``'memory'`` or ``'all'``."""
    warnings.warn("profiler_set_config() is the old form; call profiler.set_config()", DeprecationWarning, stacklevel=2)
    # Only sums are new since then; the table costs little and a program of that time expects no setting for it.
    set_config(**{f"profile_{mode}": True, "filename": filename, "aggregate_stats": True})


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """``'run'`` starts profiling, ``'stop'`` ends it."""
    global _dumper
    _worker(profile_process)
    if state not in ("run", "stop"):
        raise MXNetError(f"set_state: expected 'run' or 'stop', received {state!r}")
    recorder.running, recorder.paused = state == "run", False
    recorder.update()
    if recorder.running and recorder.settings.continuous_dump and _dumper is None:
        _dumper = threading.Event()
        threading.Thread(target=_dump_periodically, args=(_dumper,), name="mxnet-profiler", daemon=True).start()
    elif not recorder.running and _dumper is not None:
        _dumper.set()
        _dumper = None


def _dump_periodically(stop: threading.Event) -> None:
    while not stop.wait(recorder.settings.dump_period):
        recorder.write_trace()


def profiler_set_state(state: str = "stop") -> None:
    """The old name of `set_state`."""
    warnings.warn("profiler_set_state() is the old name; call profiler.set_state()", DeprecationWarning, stacklevel=2)
    set_state(state)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace to the configured file.

    Parameters
    ----------
    finished : bool
        Also stop profiling.
    """
    _worker(profile_process)
    if finished:
        set_state("stop")
    recorder.write_trace()
    import torch
    if recorder.settings.memory and torch.cuda.is_available() and torch.cuda.is_initialized():
        with open(f"{recorder.settings.gpu_memory_prefix}-pid_{os.getpid()}.csv", "w") as f:
            f.write("device,allocated bytes,reserved bytes,peak allocated bytes\n")
            for i in range(torch.cuda.device_count()):
                f.write(f"gpu/{i},{torch.cuda.memory_allocated(i)},{torch.cuda.memory_reserved(i)},{torch.cuda.max_memory_allocated(i)}\n")


def dump_profile() -> None:
    """The old name of `dump`."""
    warnings.warn("dump_profile() is the old name; call profiler.dump()", DeprecationWarning, stacklevel=2)
    dump(True)


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """The sums of what was profiled, as text.

    Parameters
    ----------
    reset : bool
        Start new sums afterwards.
    format : {'table', 'json'}
    sort_by : {'total', 'avg', 'min', 'max', 'count'}
    ascending : bool

    Raises
    ------
    MXNetError
        If an argument has another value.
    """
    if format not in ("table", "json"):
        raise MXNetError(f"dumps: format must be 'table' or 'json', received {format!r}")
    tables = recorder.statistics(sort_by, ascending)
    if reset:
        recorder.reset_statistics()
    return format_table(tables) if format == "table" else format_json(tables)


def pause(profile_process: str = "worker") -> None:
    """Leave out what follows, until `resume`."""
    _worker(profile_process)
    recorder.paused = True
    recorder.update()


def resume(profile_process: str = "worker") -> None:
    """Go on after `pause`."""
    _worker(profile_process)
    recorder.paused = False
    recorder.update()


@contextlib.contextmanager
def scope(name: str) -> Iterator[Event]:
    """A ``with`` block that stands in the profile as an event of that name."""
    event = Event(name)
    event.start()
    try:
        yield event
    finally:
        event.stop()


def autostart() -> None:
    """What ``MXNET_PROFILER_AUTOSTART=1`` asks for: profile the whole program into ``profile.json``."""
    set_config(profile_all=True, aggregate_stats=True)
    set_state("run")
    atexit.register(dump)


__all__ = ["Counter", "Domain", "Event", "Frame", "Marker", "Task", "dump", "dump_profile", "dumps", "pause", "profiler_set_config",
           "profiler_set_state", "resume", "scope", "set_config", "set_kvstore_handle", "set_state"]
