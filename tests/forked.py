"""Python programs in processes of their own that have torch already: forks of one that has imported it and has done nothing else.

Most of what a new process needs for ``import mxnet`` goes into ``import torch``. `python` gives the words to write for ``sys.executable``:
``subprocess.run([*python(), "-c", program])``; ``-m MODULE`` and ``FILE`` with arguments, and ``-W ACTION`` before them, are run as always.
What these words start is a small process that hands folder, variables, streams and arguments to the one with torch, passes signals on, and ends
as the program ends; SIGKILL ends both, and SIGTSTP stops the program (nobody can pass SIGSTOP on). The program imports mxnet by itself, so that
what depends on variables then is found as always. Not so: what torch and OpenMP read when they are loaded (there is one thread), and the seed of
hashes, which all programs share. Tests of those, and of what ``import torch`` brings along, start ``sys.executable``.
"""
import atexit
import contextlib
import functools
import gc
import json
import os
import select
import signal
import socket
import sys
import warnings

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
_LONGEST = 1 << 20  # bytes of a request


@functools.cache
def python():
    """Return the words in the place of ``sys.executable``; the process with torch begins with the first call and ends with this one."""
    import subprocess
    import tempfile
    if not hasattr(os, "pidfd_open"):
        return [sys.executable]
    folder = tempfile.mkdtemp(prefix="remex-")
    address = os.path.join(folder, "socket")
    server = subprocess.Popen([sys.executable, __file__, "serve", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
    if server.stdout.readline() != b"ready\n":
        raise RuntimeError("the process that imports torch for others has failed")
    server.stdout.close()

    @atexit.register
    def end():
        server.stdin.close()
        server.wait()
        os.rmdir(folder)
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), "run", address]


# -- the small process ------------------------------------------------------------------------------------------------------------


def run(address, words):
    """Have it run, and end as it ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
        server.connect(address)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        for number in _FORWARDED:
            signal.signal(number, lambda number, _: server.send(bytes([number])))
        request = {"words": words, "folder": os.getcwd(), "variables": dict(os.environ)}
        socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for fd in (0, 1, 2):  # who reads from the program sees the end when it closes them
            os.close(fd)
        status = int(server.recv(64) or 1)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    os._exit(status)


# -- the process with torch -------------------------------------------------------------------------------------------------------


def serve(address):
    """Fork for each that connects, until stdin ends; returns in the forks, with the request."""
    import torch._meta_registrations
    import torch.distributed  # noqa: F401
    gc.collect()
    gc.freeze()  # so that forks do not look through all of torch when they end
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    os.write(1, b"ready\n")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for guards
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the programs alone heed it
    while listener in select.select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return guard(connection)
        connection.close()
    os.unlink(address)
    return None


def guard(connection):
    """Start the program, watch it and who asked for it; returns in the program's process, with the request."""
    message, fds, _, _ = socket.recv_fds(connection, _LONGEST, 3)
    if not message:
        os._exit(0)
    child = os.fork()
    if child == 0:
        connection.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        return json.loads(message)
    for fd in fds:
        os.close(fd)
    watched = os.pidfd_open(child)
    while watched not in (ready := select.select([connection, watched, 0], [], [])[0]):
        numbers = b"" if 0 in ready else connection.recv(64)  # stdin ends with the tests
        for number in numbers or [signal.SIGKILL]:
            os.kill(child, signal.SIGSTOP if number == signal.SIGTSTP else number)
        if not numbers:
            break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(str(status).encode())
    os._exit(0)


def become(request, own):
    """Make this process what Python would be with the request's words; returns what is to be run: a function of no arguments."""
    import runpy
    import types
    kind, *rest = request["words"]
    if kind == "-W":
        warnings.simplefilter(rest[0])
        kind, *rest = rest[1:]
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    outside = [path for path in sys.path[1:] if path not in own]
    sys.path[:] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path] + outside
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if os.environ.get("PYTHONFAULTHANDLER"):
        import faulthandler
        faulthandler.enable()
    if kind == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv[:] = rest
        return lambda: runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    if kind == "-c":
        sys.path.insert(0, "")
        text, name, sys.argv[:] = rest[0], "<string>", ["-c", *rest[1:]]
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(kind)))
        sys.argv[:] = [kind, *rest]
        with open(kind, encoding="utf-8") as file:
            text, name = file.read(), kind
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = name
    return lambda: exec(compile(text, name, "exec"), main.__dict__)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    _own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    _request = serve(sys.argv[2])
    if _request:
        become(_request, _own)()
