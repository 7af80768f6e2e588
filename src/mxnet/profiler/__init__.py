"""``mx.profiler``: times of operators, as a table and as a trace for chrome://tracing or https://ui.perfetto.dev.

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
import json
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any as _Any

from .. import environment, files, interrupts
from ..base import MXNetError
from ..suggestions import did_you_mean, shortened
from .objects import Counter, Domain, Event, Frame, Marker, Task
from .recorder import recorder
from .report import report
from .tables import format_json, format_table, statistics

_log = logging.getLogger(__name__)
_FLAGS = {"profile_symbolic": "symbolic", "profile_imperative": "imperative", "profile_memory": "memory", "profile_api": "api"}
_VALUES = {"filename": ("filename", str), "gpu_memory_profile_filename_prefix": ("gpu_memory_prefix", str),
           "continuous_dump": ("continuous_dump", bool), "dump_period": ("dump_period", float), "aggregate_stats": ("aggregate_stats", bool)}
_PROCESSES = ("worker", "server")
_MODES = ("symbolic", "imperative", "api", "memory")  # the bits of MXNET_PROFILER_MODE, from the lowest
_COMMAND = 5  # MXNet's number of the profiler's commands to the servers of a kvstore
_dumper: threading.Event | None = None
_writes_at_exit = False
profiler_kvstore_handle: _Any = None


def set_kvstore_handle(handle: _Any) -> None:
    """Set the kvstore whose servers ``profile_process='server'`` addresses.

    Example
    -------
    >>> mx.profiler.set_kvstore_handle(None)   # nothing needs it
    """
    global profiler_kvstore_handle
    profiler_kvstore_handle = handle


def set_config(**kwargs: _Any) -> None:
    """Configure the profiler. Everything is profiled by default; arguments switch parts off.

    Parameters
    ----------
    filename : str
        The path of the trace, ``profile.json`` by default. `dump` writes it, or the exit of the program does.
    profile_all : bool
        Profile everything below, regardless of the single arguments.
    profile_symbolic, profile_imperative : bool
        Operators of graphs, and operators called one by one.
    profile_memory : bool
        The memory in use after each operator.
    profile_api : bool
        Calls such as `autograd.backward`, `asnumpy` and `KVStore.push`, under the names of MXNet's C interface.
    aggregate_stats : bool
        Keep the sums that `dumps` shows.
    continuous_dump : bool
        Write the trace every `dump_period` seconds while profiling runs, not only at `dump`. The file is complete after each write, also if the
        process is killed, and written events are removed from memory.
    gpu_memory_profile_filename_prefix : str
        The prefix of the path of the GPU memory snapshot. `dump` writes one if ``profile_memory`` is on and a GPU is in use.
    profile_process : {'worker', 'server'}
        The processes to configure; ``'server'`` needs a distributed kvstore (`set_kvstore_handle`).

    Raises
    ------
    MXNetError
        If an argument is unknown, or `dump_period` is not above 0.

    Example
    -------
    >>> import os, tempfile
    >>> mx.profiler.set_config(filename=os.path.join(tempfile.mkdtemp(), 'profile.json'), profile_all=True, aggregate_stats=True)
    """
    if _on_servers(kwargs.pop("profile_process", "worker"), "set_config", **kwargs):
        return
    settings = type(recorder.settings)()
    everything = _truth(kwargs.pop("profile_all", False))
    for key, value in kwargs.items():
        if key in _FLAGS:
            setattr(settings, _FLAGS[key], everything or _truth(value))
        elif key in _VALUES:
            attribute, kind = _VALUES[key]
            setattr(settings, attribute, _truth(value) if kind is bool else kind(value))
        else:
            known = ["profile_all", *_FLAGS, *_VALUES, "profile_process"]
            raise MXNetError(f"set_config: unknown argument {key!r}; expected {', '.join(known)}{did_you_mean(key, known)}")
    if settings.dump_period <= 0:
        raise MXNetError(f"set_config: dump_period must be above 0 seconds, received {settings.dump_period}")
    recorder.settings = settings
    recorder.start_over()
    recorder.update()


def _truth(value: object) -> bool:
    return value.lower() in ("1", "true") if isinstance(value, str) else bool(value)


def _on_servers(process: str, command: str, **arguments: _Any) -> bool:
    """Send a command to the servers of the kvstore if `process` is ``'server'``; return True if it was sent."""
    if process not in _PROCESSES:
        raise MXNetError(f"profile_process must be one of {_PROCESSES}, received {shortened(process)}")
    if process == "worker":
        return False
    from ..kvstore.base import distributed_store  # imported here: profiles without servers need no kvstore
    store = profiler_kvstore_handle or distributed_store()
    if store is None or "dist" not in str(getattr(store, "type", "")):
        raise MXNetError("profile_process='server' needs a distributed kvstore with servers, and this process has none")
    store._send_command_to_servers(_COMMAND, json.dumps({"command": command, "arguments": arguments}))
    return True


def serve(body: str, rank: int = 0) -> None:
    """Run a profiler command that a worker has sent to this kvstore server. The server's trace is ``rank<number>_<filename>``."""
    try:
        sent = json.loads(body)
        commands: dict[str, _Any] = {"set_config": set_config, "set_state": set_state, "dump": dump, "pause": pause, "resume": resume}
        command, arguments = commands[sent["command"]], dict(sent["arguments"])
    except (ValueError, KeyError, TypeError):
        raise MXNetError(f"no command for the profiler: {body!r:.80}") from None
    if command is set_config:
        folder, name = os.path.split(str(arguments.get("filename", "profile.json")))
        arguments["filename"] = os.path.join(folder, f"rank{rank}_{name}")
    command(**arguments)


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Configure the profiler by MXNet's old interface: `mode` is ``'symbolic'``, ``'imperative'``, ``'api'``, ``'memory'`` or ``'all'``.

    Example
    -------
    >>> import os, tempfile, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # it says to use set_config()
    ...     mx.profiler.profiler_set_config(mode='all', filename=os.path.join(tempfile.mkdtemp(), 'profile.json'))
    """
    warnings.warn("profiler_set_config() is the old form; call profiler.set_config()", DeprecationWarning, stacklevel=2)
    # Only sums are new since then; the table costs little and a program of that time expects no setting for it.
    set_config(**{f"profile_{mode}": True, "filename": filename, "aggregate_stats": True})


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start profiling with ``'run'``, stop it with ``'stop'``.

    `dump` writes the recorded events, or the exit of the program does.

    Example
    -------
    >>> mx.profiler.set_state('stop')
    """
    global _dumper, _writes_at_exit
    if state not in ("run", "stop"):
        raise MXNetError(f"set_state: expected 'run' or 'stop', received {shortened(state)}")
    if _on_servers(profile_process, "set_state", state=state):
        return
    recorder.running, recorder.paused = state == "run", False
    recorder.update()
    if recorder.running and not _writes_at_exit:
        _writes_at_exit = True
        atexit.register(_write_at_exit)
    if recorder.running and recorder.settings.continuous_dump and _dumper is None:
        _dumper = threading.Event()
        threading.Thread(target=_dump_periodically, args=(_dumper,), name="mxnet-profiler", daemon=True).start()
    elif not recorder.running and _dumper is not None:
        _dumper.set()
        _dumper = None
        recorder.write_trace()


def _write_at_exit() -> None:
    if recorder.unwritten:
        try:
            set_state("stop")
            recorder.write_trace()
        except MXNetError as error:  # as when the folder is gone
            _log.warning("the profile is lost: %s", error)


def _dump_periodically(stop: threading.Event) -> None:
    while not stop.wait(recorder.settings.dump_period):
        try:
            recorder.write_trace()
        except MXNetError as error:
            _log.warning("the profile is not written for now: %s", error)


def profiler_set_state(state: str = "stop") -> None:
    """Start or stop profiling by MXNet's old interface, which also writes the trace when profiling stops.

    Example
    -------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # it says to use set_state()
    ...     mx.profiler.profiler_set_state('stop')
    """
    warnings.warn("profiler_set_state() is the old name; call profiler.set_state()", DeprecationWarning, stacklevel=2)
    set_state(state)
    if state == "stop" and recorder.unwritten:
        recorder.write_trace()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Append the events since the last call to the trace in the configured file.

    Parameters
    ----------
    finished : bool
        Also stop profiling.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'profile.json')
    >>> mx.profiler.set_config(profile_all=True, filename=path)
    >>> mx.profiler.set_state('run')
    >>> _ = mx.nd.ones((2, 2)).sqrt().asnumpy()
    >>> mx.profiler.set_state('stop')
    >>> mx.profiler.dump()
    >>> os.path.getsize(path) > 0
    True
    """
    if _on_servers(profile_process, "dump", finished=finished):
        return
    if finished:
        set_state("stop")
    recorder.write_trace()
    import torch
    if recorder.settings.memory and torch.cuda.is_available() and torch.cuda.is_initialized():
        rows = ["device,allocated bytes,reserved bytes,peak allocated bytes"]
        for i in range(torch.cuda.device_count()):
            rows.append(f"gpu/{i},{torch.cuda.memory_allocated(i)},{torch.cuda.memory_reserved(i)},{torch.cuda.max_memory_allocated(i)}")
        files.write_bytes(f"{recorder.settings.gpu_memory_prefix}-pid_{os.getpid()}.csv", "".join(f"{row}\n" for row in rows).encode())


def dump_profile() -> None:
    """Call `dump`, its new name.

    Example
    -------
    >>> import os, tempfile, warnings
    >>> mx.profiler.set_config(filename=os.path.join(tempfile.mkdtemp(), 'profile.json'))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # it says to use dump()
    ...     mx.profiler.dump_profile()
    """
    warnings.warn("dump_profile() is the old name; call profiler.dump()", DeprecationWarning, stacklevel=2)
    dump(True)


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Return the statistics of the profiled events, as text.

    Parameters
    ----------
    reset : bool
        Reset the statistics afterwards.
    format : {'table', 'json'}
    sort_by : {'total', 'avg', 'min', 'max', 'count'}
    ascending : bool

    Raises
    ------
    MXNetError
        If an argument has another value.

    Example
    -------
    >>> import os, tempfile
    >>> mx.profiler.set_config(filename=os.path.join(tempfile.mkdtemp(), 'profile.json'), profile_all=True, aggregate_stats=True)
    >>> mx.profiler.set_state('run')
    >>> _ = mx.nd.ones((2, 2)).sqrt().asnumpy()
    >>> mx.profiler.set_state('stop')
    >>> 'sqrt' in mx.profiler.dumps(reset=True)
    True
    >>> mx.profiler.dump()
    """
    if format not in ("table", "json"):
        raise MXNetError(f"dumps: format must be 'table' or 'json', received {shortened(format)}")
    recorder.collect()
    tables = statistics(recorder.events, sort_by, ascending)
    if reset:
        recorder.events.forget_sums()
    return format_table(tables) if format == "table" else format_json(tables)


def pause(profile_process: str = "worker") -> None:
    """Suspend the recording of events until `resume`.

    Example
    -------
    >>> mx.profiler.pause()    # what follows is not recorded
    >>> mx.profiler.resume()
    """
    if not _on_servers(profile_process, "pause"):
        recorder.paused = True
        recorder.update()


def resume(profile_process: str = "worker") -> None:
    """Continue the recording of events after `pause`.

    Example
    -------
    >>> mx.profiler.pause()
    >>> mx.profiler.resume()   # what follows is recorded, if the profiler runs
    """
    if not _on_servers(profile_process, "resume"):
        recorder.paused = False
        recorder.update()


@interrupts.scope
def scope(name: str) -> Iterator[Event]:
    """Record a ``with`` block as an event of the given name.

    Example
    -------
    >>> with mx.profiler.scope('preparation'):
    ...     _ = mx.nd.ones(2).asnumpy()
    """
    event = Event(name)
    event.start()
    try:
        yield event
    finally:
        event.stop()


def autostart() -> None:
    """Start profiling the whole program into ``profile.json``; ``MXNET_PROFILER_AUTOSTART=1`` calls this at import.

    ``MXNET_PROFILER_MODE`` selects the events besides graphs, as in MXNet: the sum of 2 (operators called one by one), 4 (calls of the API) and 8
    (memory); all if it is unset.
    """
    mode = environment.get_int("MXNET_PROFILER_MODE")
    chosen = {f"profile_{name}": not bit or bool(mode >> bit & 1) for bit, name in enumerate(_MODES)} if mode is not None else {}
    set_config(aggregate_stats=True, continuous_dump=True, **chosen)
    set_state("run")


__all__ = ["Counter", "Domain", "Event", "Frame", "Marker", "Task", "dump", "dump_profile", "dumps", "pause", "profiler_set_config",
           "profiler_set_state", "report", "resume", "scope", "set_config", "set_kvstore_handle", "set_state"]
