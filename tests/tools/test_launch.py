import os
import pathlib
import shlex
import signal
import stat
import subprocess
import sys

import pytest

import mxnet
from forked import python
from mxnet.tools import launch

PROGRAM = """
import os, sys, time
import mxnet as mx
kv = mx.kv.create('dist_async' if os.environ.get('DMLC_NUM_SERVER') != '0' else 'dist_sync')
kv.init('w', mx.nd.ones((2,)))
kv.set_optimizer(mx.optimizer.create('test'))
kv.push('w', mx.nd.ones((2,)) * (kv.rank + 1))
kv._barrier()
w = mx.nd.zeros((2,))
kv.pull('w', out=w)
# In one piece, since the other worker writes to the same pipe.
os.write(1, f"worker {kv.rank} of {kv.num_workers}: {w.asnumpy().tolist()} {sys.argv[1:]} {os.environ.get('EXTRA')}\\n".encode())
kv._barrier()
if sys.argv[1] == 'fail' and kv.rank == 1:
    sys.exit(3)
if sys.argv[1] == 'fail':
    time.sleep(100)
"""


def start(tmp_path, *args, **env):
    (tmp_path / "program.py").write_text(PROGRAM)
    return subprocess.run([*python(), "-m", "mxnet.tools.launch", *args], capture_output=True, text=True, timeout=200, cwd=tmp_path, env={
        **os.environ, "PYTHONPATH": str(pathlib.Path(mxnet.__file__).parent.parent), "OMP_NUM_THREADS": "1", **env})


def test_workers_and_servers_on_this_machine(tmp_path):
    done = start(tmp_path, "-n", "2", "-s", "1", "--launcher", "local", "--env-worker", "EXTRA:a:b", *python(), "program.py", "--kv-store", "x")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"worker {i} of 2: [4.0, 4.0] ['--kv-store', 'x'] a:b" for i in range(2)]


def test_a_program_that_calls_it_keeps_its_signals_and_variables():
    numbers = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT
    before = [signal.getsignal(n) for n in numbers], dict(os.environ)
    assert launch.main(["-n", "1", "-s", "0", "--launcher", "local", "--env-worker", "EXTRA:1", sys.executable, "-c", "import sys; sys.exit(4)"]) == 4
    assert ([signal.getsignal(n) for n in numbers], dict(os.environ)) == before


def test_a_worker_that_fails_ends_the_others_and_the_job_starts_again(tmp_path):
    done = start(tmp_path, "-n", "2", "-s", "0", "--launcher", "local", "--max-restarts", "1", f"{shlex.join(python())} program.py fail")
    assert done.returncode == 3, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"worker {i} of 2: [4.0, 4.0] ['fail'] None" for i in (0, 0, 1, 1)]
    assert "worker 1 ended with status 3; the others were stopped" in done.stderr
    assert "the job has failed with status 3 and starts again (1 of 1)" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_job_for_good(tmp_path, number):
    (tmp_path / "wait.py").write_text("import os, time\nos.write(1, f'{os.getpid()}\\n'.encode())\ntime.sleep(100)\n")
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(mxnet.__file__).parent.parent)}
    command = [*python(), "-m", "mxnet.tools.launch", "-n", "2", "-s", "0", "--launcher", "local", "--max-restarts", "2", sys.executable, "wait.py"]
    with subprocess.Popen(command, text=True, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as job:
        try:
            workers = [int(job.stdout.readline()) for _ in range(2)]
            job.send_signal(number)
            _, errors = job.communicate(timeout=60)
        finally:
            job.kill()
    assert job.returncode == 128 + number, errors
    assert "starts again" not in errors and "SignalException" not in errors
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


@pytest.mark.parametrize("launcher, script", [
    # ssh -o OPTION HOST WORDS: the remote shell runs the words
    ("ssh", 'echo "$3" >> hosts.log\nexec sh -c "$(echo "$4" | sed "s|{python} -m|{forked} -m|")"'),
    # mpirun -n COUNT --map-by node --hostfile FILE [-x NAME ...] PYTHON ...
    ("mpi", 'count=$2; shift 6; while [ "$1" = -x ]; do shift 2; done; shift\n'
            'for i in $(seq 0 $((count - 1))); do OMPI_COMM_WORLD_RANK=$i {forked} "$@" & pids="$pids $!"; done\n'
            'for p in $pids; do wait $p || exit $?; done'),
], ids=["ssh", "mpi"])
def test_other_machines(tmp_path, launcher, script):
    """With programs that do on this machine what the real ones do on others."""
    program = tmp_path / {"ssh": "ssh", "mpi": "mpirun"}[launcher]
    script = script.replace("{python}", sys.executable).replace("{forked}", shlex.join(python()))
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "hosts").write_text("# ours\nlocalhost slots=4\n\n127.0.0.1\n")
    done = start(tmp_path, "-n", "2", "-s", "0", "-H", "hosts", "--launcher", launcher, *python(), "program.py", "two words",
                 PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"worker {i} of 2: [4.0, 4.0] ['two words'] None" for i in range(2)]
    if launcher == "ssh":
        assert sorted((tmp_path / "hosts.log").read_text().split()) == ["127.0.0.1", "localhost"]


def test_slurm_starts_this_program_once_on_each_machine(tmp_path, monkeypatch, capfd):
    program = tmp_path / "srun"
    program.write_text('#!/bin/sh\necho "$@"\nexit 5\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "3")
    assert launch.main(["-n", "5", "-s", "1", "--launcher", "slurm", "--env-worker", "A:1", "python", "program.py", "--x"]) == 5
    words = capfd.readouterr().out.split()
    assert words[:8] == ["--nodes", "3", "--ntasks", "3", "--ntasks-per-node", "1", "--export", "ALL"]
    assert words[8:17] == [sys.executable, "-m", "mxnet.tools.launch", "-n", "5", "-s", "1", "--launcher", "slurm"]
    assert words[words.index("--node") + 1:] == ["auto", "--layout", "2:1,2:0,1:0", "--env-worker", "A:1", "--", "python", "program.py", "--x"]


def test_workers_and_servers_are_dealt_out():
    assert launch.layout(4, 2, 1) == [(4, 2)]
    assert launch.layout(5, 2, 3) == [(2, 1), (2, 1), (1, 0)]


@pytest.mark.parametrize("args, message", [
    ([], "the following arguments are required: -n/--num-workers"),
    (["-n", "2", "--launcher", "local"], "the command is missing"),
    (["-n", "0", "x"], "must be 1 or more, received 0"),
    (["-n", "two", "x"], "invalid number value: 'two'"),
    (["-n", "2", "x"], "--launcher ssh needs -H, a file with the names of the machines; --launcher local uses this one only"),
    (["-n", "2", "--launcher", "local", "--env-worker", "A=1", "x"], "--env-worker takes NAME:VALUE, received 'A=1'"),
])
def test_wrong_flags(args, message, capsys):
    with pytest.raises(SystemExit):
        launch.main(args)
    assert message in capsys.readouterr().err


def test_the_worker_that_failed_first_is_named(tmp_path):
    """The other one fails 30 ms later, within the same look of torch's agent."""
    (tmp_path / "order.py").write_text("import os, time\n"
                                       "if os.environ['RANK'] == '1':\n"
                                       "    open('failed', 'w').close()\n"
                                       "    os._exit(3)\n"
                                       "while not os.path.exists('failed'):\n"
                                       "    time.sleep(0.001)\n"
                                       "time.sleep(0.03)\n"
                                       "os._exit(7)\n")
    done = start(tmp_path, "-n", "2", "-s", "0", "--launcher", "local", sys.executable, "order.py")
    assert done.returncode == 3
    assert "worker 1 ended with status 3; the others were stopped" in done.stderr


def test_a_server_that_failed_first_is_named(tmp_path):
    (tmp_path / "order.py").write_text("import os, time\n"
                                       "if os.environ['DMLC_ROLE'] == 'server':\n"
                                       "    open('failed', 'w').close()\n"
                                       "    os._exit(3)\n"
                                       "while not os.path.exists('failed'):\n"
                                       "    time.sleep(0.001)\n"
                                       "time.sleep(0.03)\n"
                                       "os._exit(7)\n")
    done = start(tmp_path, "-n", "1", "-s", "1", "--launcher", "local", sys.executable, "order.py")
    assert done.returncode == 3
    assert "server 0 ended with status 3; the others were stopped" in done.stderr


@pytest.mark.parametrize("args, status, message", [
    (["--launcher", "local", "nosuchprog"], 127, "the program 'nosuchprog' was not found on PATH; check its spelling"),
    (["--launcher", "local", "./nosuchprog", "x"], 127, "the program './nosuchprog' was not found; check its spelling"),
    (["--launcher", "local", "./script.py"], 126, "the program './script.py' is not executable; start a Python script as `python ./script.py`"),
    (["--launcher", "ssh", "-H", "nosuchfile", "x"], 127, "nosuchfile: not found; --launcher ssh needs it"),
    (["--launcher", "mpi", "-H", "hosts", "x"], 127, "mpirun: not found; --launcher mpi needs it"),
])
def test_what_is_missing_is_said_in_one_line(tmp_path, monkeypatch, caplog, args, status, message):
    (tmp_path / "script.py").write_text("")
    (tmp_path / "hosts").write_text("localhost\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch.main(["-n", "1", "-s", "0", *args]) == status
    assert caplog.messages[-1] == message


def test_a_job_that_starts_again_forks_its_workers(tmp_path):
    (tmp_path / "kill.py").write_text("import os, sys, time\n"
                                      "attempt, rank = os.environ['TORCHELASTIC_RUN_ID'].split('.')[1], os.environ['RANK']\n"
                                      "os.write(1, f'{attempt} {rank} {\"decimal\" in sys.modules} {sys.argv[1]}\\n'.encode())\n"
                                      "if attempt == '0' and rank == '1':\n"
                                      "    os.kill(os.getpid(), 9)\n"
                                      "time.sleep(60 if attempt == '0' else 0)\n")
    restarts = ["--max-restarts", "1", "--preload", "decimal,json"]
    done = start(tmp_path, "-n", "2", "-s", "0", "--launcher", "local", *restarts, sys.executable, "kill.py", "x")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines())[-2:] == ["1 0 True x", "1 1 True x"] and "0 1 True x" in done.stdout
    assert "worker 1 ended with SIGKILL" in done.stderr


def test_a_command_that_cannot_be_forked_is_reported(tmp_path, caplog):
    caplog.set_level("INFO")
    assert launch.main(["-n", "1", "-s", "0", "--launcher", "local", "--preload", "decimal", "sh", "-c", "exit 4"]) == 4
    assert "each worker imports decimal for itself: forks need Linux, and a command such as `python FILE`" in caplog.text
