"""Python programs in forks of one process that has imported slow libraries, such as torch, before.

Most of what a new process needs until ``import mxnet`` is over goes into ``import torch``. A `ForkServer` is a process that does so once; whatever
`ForkServer.command` returns is a small process that asks it for a fork, hands folder, variables, streams and arguments to that, passes signals on,
and ends as the fork ends. SIGKILL ends both, and SIGTSTP stops the program (nobody can pass SIGSTOP on). If the server is gone, the small process
becomes the program itself.

The fork runs the program from its beginning, as ``__main__``, and imports mxnet by itself. It shares with other forks the seed of hashes, and what
the imported modules read from the environment when they were imported.

This file runs as a program, too, in processes that do without the package.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_FORWARDED = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGTSTP") if hasattr(signal, name)]
_LONGEST = 1 << 20  # bytes of a request
_OPTIONS, _WITH_VALUE = set("bBdEIOPqsSuv"), set("WX")  # of Python that apply to forks, too
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>


def split(command: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the interpreter with its options, and the program with its arguments; None if the command starts no Python program.

    Example
    -------
    >>> from mxnet.tools import fork_server
    >>> fork_server.split(['python3', '-W', 'ignore', '-m', 'train', '--lr', '0.1'])
    (['python3', '-W', 'ignore'], ['-m', 'train', '--lr', '0.1'])
    >>> fork_server.split(['sh', 'train.sh']) is None
    True
    """
    if not os.path.basename(command[0]).lower().startswith("python"):
        return None
    at = 1
    while at < len(command) and command[at].startswith("-") and command[at] not in ("-m", "-c"):
        letters = command[at][1:]
        flags = "".join(itertools.takewhile(_OPTIONS.__contains__, letters))
        if not letters or flags != letters and letters[len(flags)] not in _WITH_VALUE:
            return None
        at += 2 if len(flags) == len(letters) - 1 else 1
    words = list(command[at:])
    fits = len(words) > 1 if words[:1] in (["-m"], ["-c"]) else bool(words) and _is_source(words[0])
    return (list(command[:at]), words) if fits else None


def _is_source(path: str) -> bool:
    return os.path.isfile(path) and not path.endswith(".pyc") and not zipfile.is_zipfile(path)


class ForkServer:
    """A process that imports modules once, and forks for each program; Linux only.

    It ends with `close`, or with the process that made it; running programs go on. Programs start without it if a module can't be imported or starts
    threads, which forks would lack.

    Parameters
    ----------
    interpreter : sequence of str
        A Python with its options.
    preload : iterable of str
        The modules to import.
    env : mapping of str to str, optional
        The environment variables during these imports. Programs get their own.

    Example
    -------
    >>> import subprocess, sys
    >>> from mxnet.tools.fork_server import ForkServer
    >>> with ForkServer([sys.executable], ['decimal']) as server:
    ...     subprocess.run(server.command(['-c', 'import sys; print("decimal" in sys.modules)']), stdout=subprocess.PIPE, text=True).stdout
    'True\\n'
    """

    def __init__(self, interpreter: Sequence[str], preload: Iterable[str], env: Mapping[str, str] | None = None) -> None:
        self._interpreter = list(interpreter)
        self._folder = tempfile.mkdtemp(prefix="remex-")
        self._address = os.path.join(self._folder, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._address)
            listener.listen(64)  # whoever connects during the imports waits
            words = [*self._interpreter, os.path.abspath(__file__), "serve", str(listener.fileno()), *preload]
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[listener.fileno()], env=env, start_new_session=True)

    @staticmethod
    def available() -> bool:
        """Return True if this system has what a fork server needs.

        Example
        -------
        >>> from mxnet.tools.fork_server import ForkServer
        >>> ForkServer.available() in (True, False)
        True
        """
        return hasattr(os, "pidfd_open") and hasattr(socket, "send_fds")

    def command(self, words: Iterable[str] = ()) -> list[str]:
        """Return the command that runs ``FILE ...``, ``-m MODULE ...`` or ``-c TEXT ...`` in a fork; more words may be added to it."""
        return [sys.executable, "-I", "-S", os.path.abspath(__file__), "run", self._address, str(len(self._interpreter)), *self._interpreter, *words]

    def close(self) -> None:
        """End the server."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.terminate()
            self.process.wait()
            self.process.stdin.close()
            os.unlink(self._address)
            os.rmdir(self._folder)

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


# -- the small process ------------------------------------------------------------------------------------------------------------


def run(address: str, interpreter: Sequence[str], words: Sequence[str]) -> None:
    """Have the program run in a fork, and end as it ends; without a server this process becomes the program."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        request = {"interpreter": interpreter, "words": words, "folder": os.getcwd(), "variables": dict(os.environ)}
        try:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
            server.connect(address)
            socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
        except OSError:  # no server, or one that has ended
            started = False
        else:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)  # until the program has begun, a signal ends this process as usual
            started = bool(_received(server))
            signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        if not started:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            os.execvp(interpreter[0], [*interpreter, *words])
        for number in _FORWARDED:
            signal.signal(number, functools.partial(_forward, server))
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for fd in (0, 1, 2):  # who reads from the program sees the end when it closes them
            os.close(fd)
        status = int(_received(server) or -signal.SIGKILL)
    if status < 0:
        _end_by(-status)
    os._exit(status)


def _forward(server: socket.socket, number: int, _: Any) -> None:
    with contextlib.suppress(OSError):  # the program has just ended
        server.send(bytes([number]))


def _received(server: socket.socket) -> bytes:
    try:
        return server.recv(64)
    except ConnectionError:
        return b""


def _end_by(number: int) -> None:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # the program's is the one of interest
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


# -- the process with the modules -------------------------------------------------------------------------------------------------


def serve(listener: socket.socket, preload: Iterable[str]) -> dict[str, Any] | None:
    """Import the modules, and fork for each that connects, until stdin ends; returns in the forks, with the request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # during the imports as well
    for name in preload:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit(f"fork server: the import of {', '.join(preload)} started threads, which forks lack; each worker imports for itself")
    gc.collect()
    gc.freeze()  # so that forks do not look through all modules when they end
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for guards
    while listener in select.select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _guard(connection)
        connection.close()
    return None


def _guard(connection: socket.socket) -> dict[str, Any] | None:
    """Start the program, watch it and who asked for it; returns in the program's process, with the request."""
    message, fds, _, _ = socket.recv_fds(connection, _LONGEST, 3)
    if not message:
        os._exit(0)
    child = os.fork()
    if child == 0:
        connection.close()
        os.setpgid(0, 0)  # a group for signals; no session of its own, whose leader could not begin a group as programs do
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        return dict(json.loads(message))
    for fd in fds:
        os.close(fd)
    with contextlib.suppress(OSError):
        connection.send(b"started")
    watched = os.pidfd_open(child)
    while watched not in select.select([connection, watched], [], [])[0]:
        numbers = _received(connection)
        for number in numbers or [signal.SIGKILL]:  # none: who asked for it is gone
            _signal_group(child, signal.SIGSTOP if number == signal.SIGTSTP else number)
        if not numbers:
            break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(str(status).encode())
    os._exit(0)


def _signal_group(child: int, number: int) -> None:
    try:
        os.killpg(child, number)
    except ProcessLookupError:  # it has not made its group yet
        os.kill(child, number)


def become(request: Mapping[str, Any], own: Sequence[str]) -> Callable[[], Any]:
    """Make this process what Python would be with the request's words.

    Parameters
    ----------
    request : mapping
        As `run` makes it.
    own : sequence of str
        The folders of ``sys.path`` that this process has by its own ``PYTHONPATH``.

    Returns
    -------
    function
        Runs the program.
    """
    import runpy
    kind, *rest = request["words"]
    if kind == "-W":
        warnings.simplefilter(rest[0])
        kind, *rest = rest[1:]
    sys.orig_argv[:] = [*request["interpreter"], *request["words"]]
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    if not sys.flags.ignore_environment:
        sys.path[:] = [*_python_path(), *(path for path in sys.path if path not in own)]
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if os.environ.get("PYTHONFAULTHANDLER"):
        import faulthandler
        faulthandler.enable()
    first = {"-m": os.getcwd(), "-c": ""}.get(kind, os.path.dirname(os.path.abspath(kind)))
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, first)
    if kind == "-m":
        sys.argv[:] = rest
        return lambda: runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if kind == "-c":
        text, name, sys.argv[:] = rest[0].encode(), "<string>", ["-c", *rest[1:]]
    else:
        name, sys.argv[:] = os.path.abspath(kind), [kind, *rest]
        main.__file__ = name
        with open(kind, "rb") as file:
            text = file.read()
    return lambda: exec(compile(text, name, "exec", dont_inherit=True), main.__dict__)


def _python_path() -> list[str]:
    return [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _main(mode: str, *given: str) -> None:
    if mode == "run":
        address, count, *words = given
        run(address, words[:int(count)], words[int(count):])
        return
    beside = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != beside]  # the folder of this program, whose modules are no programs'
    own = _python_path()
    with socket.socket(fileno=int(given[0])) as listener:
        request = serve(listener, given[1:])
    if request:
        become(request, own)()


if __name__ == "__main__":
    _main(*sys.argv[1:])
