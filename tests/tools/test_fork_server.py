"""Programs in forks against the same programs in processes of their own. The imported module is small, so that each test takes a moment."""
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from mxnet.tools.fork_server import ForkServer, split

pytestmark = pytest.mark.skipif(not ForkServer.available(), reason="needs Linux")

PROGRAM = """
import os, sys
print(sys.argv, __name__, sys.path[0], os.getcwd(), os.environ.get("EXTRA"), sys.stdin.read(), sys.warnoptions, sys.orig_argv[-1])
print(globals().get("__file__"), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def server():
    with ForkServer([sys.executable, "-W", "ignore::FutureWarning"], ["decimal"]) as server:
        yield server


def start(server, text, *args, **options):
    return subprocess.Popen(server.command(["-c", textwrap.dedent(text), *args]), stdout=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("words", [["program.py", "a b", "-c"], ["-m", "folder.program", "-x"], ["-c", PROGRAM, "1"]], ids=["file", "module", "text"])
def test_a_program_sees_what_it_sees_in_a_process_of_its_own(server, tmp_path, words):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "program.py", tmp_path / "folder" / "program.py"):
        path.write_text(PROGRAM)
    own, forked = [subprocess.run([*command, *words], cwd=tmp_path, input="text", capture_output=True, text=True, env={**os.environ, "EXTRA": "x"})
                   for command in ([sys.executable, "-W", "ignore::FutureWarning"], server.command())]
    assert (forked.stdout, forked.stderr) == (own.stdout, own.stderr)
    assert "text" in own.stdout and str(tmp_path) in own.stdout


def test_modules_are_there_already_and_random_numbers_differ(server):
    program = "import sys, random; print('decimal' in sys.modules, random.random())"
    lines = [start(server, program).communicate()[0].split() for _ in range(2)]
    assert [line[0] for line in lines] == ["True", "True"] and lines[0][1] != lines[1][1]


@pytest.mark.parametrize("end, status", [("sys.exit(3)", 3), ("raise KeyError", 1), ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
                                         ("os.abort()", -signal.SIGABRT)])
def test_it_ends_as_the_program_ends(server, end, status):
    with start(server, f"import os, signal, sys; {end}", stderr=subprocess.DEVNULL) as process:
        assert process.wait() == status


def test_signals_reach_the_program_and_its_children(server):
    with start(server, """
        import os, signal, time
        child = os.fork()
        if child:
            signal.signal(signal.SIGTERM, lambda *_: None)
            print("ready", flush=True)
            os._exit(10 + os.WTERMSIG(os.waitpid(child, 0)[1]))
        time.sleep(60)
        """) as process:
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait() == 10 + signal.SIGTERM


def test_sigkill_ends_the_program_as_well(server):
    with start(server, "import os, time; print(os.getpid(), flush=True); time.sleep(60)") as process:
        program = int(process.stdout.readline())
        process.kill()
        assert process.stdout.read() == ""  # both have closed it
    with pytest.raises(ProcessLookupError):
        while True:  # until it is reaped
            os.kill(program, 0)
            time.sleep(0.005)


@pytest.mark.parametrize("preload", ["no_such_module", "starts_threads"])
def test_programs_run_without_a_server_that_cannot_fork(tmp_path, preload, capfd):
    (tmp_path / "starts_threads.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n")
    with ForkServer([sys.executable], [preload], {**os.environ, "PYTHONPATH": str(tmp_path)}) as server:
        process = start(server, "import sys; print('decimal' in sys.modules); sys.exit(4)")
        assert process.communicate()[0] == "False\n" and process.returncode == 4
        assert {"no_such_module": "No module named 'no_such_module'",
                "starts_threads": "the import of starts_threads started threads, which forks lack"}[preload] in capfd.readouterr().err
    assert start(server, "print('after')").communicate()[0] == "after\n"


def test_commands_that_start_python_programs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "app.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    assert split(["/usr/bin/python3", "train.py", "-m", "x"]) == (["/usr/bin/python3"], ["train.py", "-m", "x"])
    assert split(["python", "-uW", "ignore", "-Xdev", "-OO", "-c", "1"]) == (["python", "-uW", "ignore", "-Xdev", "-OO"], ["-c", "1"])
    assert split(["python", "-Wmhc", "-m", "x"]) == (["python", "-Wmhc"], ["-m", "x"])
    for command in (["sh", "train.py"], ["python"], ["python", "-"], ["python", "-m"], ["python", "-i", "train.py"], ["python", "-V"],
                    ["python", "-mx"], ["python", "none.py"], ["python", "app.zip"], ["python", "."], ["python", "--help-all", "train.py"]):
        assert split(command) is None, command
