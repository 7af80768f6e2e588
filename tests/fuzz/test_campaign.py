"""What a campaign notices."""
import json
import os
import random
import subprocess
import sys

import pytest

from fuzz import campaign, mutations, supervise
from fuzz.progress import Progress
from mxnet import MXNetError

ROOT = supervise.CASES.parents[2]


def _target(run, name="some"):
    return campaign.Target(name, lambda rng: bytes([rng.randrange(256)]), run)


def _refuse(case):
    raise MXNetError("no")


def _fail(case):
    raise KeyError(case)


def test_what_a_case_did(monkeypatch):
    def hang(case):
        while True:
            pass

    assert campaign.attempt(_target(_refuse), b"x") is True
    assert campaign.attempt(_target(len), b"x") is False
    assert "KeyError: b'x'" in campaign.attempt(_target(_fail), b"x")
    assert "MiB" in campaign.attempt(_target(lambda case: bytearray(random.Random(0).randbytes(1 << 20) * 600)), b"x")
    monkeypatch.setattr(campaign, "_SECONDS", 1)
    assert "took over 1 s" in campaign.attempt(_target(hang), b"x")


def test_one_fault_is_reported_once():
    number, failed = campaign.run([_target(_fail), _target(_refuse, "other")], seed=1, seconds=60, count=50)
    assert number == 50 and [(t.name, text.splitlines()[-1].split(":")[0]) for t, _, text in failed] == [("some", "KeyError")]


def test_a_seed_gives_the_same_cases_in_the_same_shares():
    def cases(names):
        tried = []
        chosen = [campaign.Target(n, lambda rng: bytes([rng.randrange(256)]), lambda case, n=n: tried.append((n, case)), share=s) for n, s in names]
        campaign.run(chosen, seed=5, seconds=60, count=12)
        return tried

    both, one = cases([("a", 1), ("b", 3)]), cases([("b", 1)])
    assert both == cases([("a", 1), ("b", 3)])
    assert [n for n, _ in both].count("b") == 9
    assert [c for c in both if c[0] == "b"] == one[:9]  # whatever runs beside it


def test_progress_is_seen_through_the_file(tmp_path):
    own, other = Progress(tmp_path / "progress"), Progress(tmp_path / "progress")
    assert other.current() is None and other.table() == {}
    own.name(["a", "b"])
    own.begin("b", b"x\ny")
    assert other.current() == ("b", b"x\ny") and other.begun == 1
    own.end(1, True, 0.5, 0.25, False)
    assert other.table() == {"a": (0, 0, 0, 0, 0), "b": (1, 1, 0, 0.5, 0.25)}


@pytest.mark.parametrize("mutate, seed", [
    (mutations.mutated_json, b'{"nodes": [{"op": "null", "name": "x", "inputs": [[0, 0, 0]]}], "heads": [[0, 0]]}'),
    (mutations.mutated_pickle, b"\x80\x03}q\x00X\x01\x00\x00\x00aq\x01K\x01s."),
    (mutations.mutated, b"1 2:3\n")])
def test_mutations_differ_and_follow_from_the_seed(mutate, seed):
    made = [mutate(seed, random.Random(i), [seed]) for i in range(300)]
    assert made == [mutate(seed, random.Random(i), [seed]) for i in range(300)]
    assert len(set(made)) > 150


_FORBIDDEN = """
import os, sys, threading
from fuzz import campaign
folder = sys.argv[1]

def thread():
    started = threading.Thread(target=lambda: 1 / 0)
    started.start()
    started.join()

campaign.forbid(folder)
campaign.limit_addresses()
for run in (lambda: os.system("true"), lambda: open(folder + "/../elsewhere", "w").close(), lambda: open(folder + "/inside", "w").close(),
            lambda: bytearray(1 << 36), thread):
    print(repr(campaign.attempt(campaign.Target("some", None, lambda case: run()), b"x")))
"""


def test_what_no_case_may_do(tmp_path):
    path = os.pathsep.join([str(ROOT / "tests"), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, "-c", _FORBIDDEN, str(tmp_path)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path})
    executes, elsewhere, inside, large, thread = done.stdout.splitlines()
    assert executes == "\"os.system(b'true',)\"" and elsewhere.startswith('"open(') and inside == "False", done.stderr
    assert "MemoryError" in large and "an error that nobody sees" in thread and "ZeroDivisionError" in thread


def test_the_command(tmp_path):
    done = subprocess.run([sys.executable, "-m", "tests.fuzz", "--cases", "60", "--seed", "3", "--jobs", "2", "--only", "readers.list",
                           "--only", "readers.states"], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "- Command: `python -m tests.fuzz --cases 60 --seed 3 --jobs 2" in done.stdout
    assert "- Seeds: 3 to 3, one for each process; 2 at a time" in done.stdout
    assert "- Cases: 60," in done.stdout and "- Failures: none" in done.stdout
    rows = [line.split(" | ")[:2] for line in done.stdout.splitlines() if line.startswith("| readers.")]
    assert [name for name, _ in rows] == ["| readers.list", "| readers.listed", "| readers.states"] and sum(int(count) for _, count in rows) == 60
    assert list(supervise.CASES.glob("*.tmp")) == []


def test_a_process_that_dies_is_reported_with_its_case(tmp_path, monkeypatch):
    (tmp_path / "cases").mkdir()
    monkeypatch.setattr(supervise, "CASES", tmp_path / "cases")
    child = object.__new__(supervise._Child)
    child.folder, child.stuck, child.progress = tmp_path, False, Progress(tmp_path / "progress")
    child.progress.begin("readers.x", b"case")
    (tmp_path / "out").write_text(json.dumps({"target": "readers.y", "case": "YQ==", "text": "wrong"}) + "\n")
    (tmp_path / "crash").write_text("Fatal Python error: Segmentation fault")
    (tmp_path / "errors").write_text("noise\n==7==ERROR: AddressSanitizer: heap-buffer-overflow\n#0 in pool\n")
    child.process = subprocess.Popen(["sleep", "60"])
    child.process.kill()
    child.process.wait()
    assert child.failures() == [("readers.y", b"a", "wrong"), ("readers.x", b"case",
                                 "killed by SIGKILL\nFatal Python error: Segmentation fault\n"
                                 "==7==ERROR: AddressSanitizer: heap-buffer-overflow\n#0 in pool")]
    kept = supervise.keep("readers.x", b"case")
    assert kept.read_bytes() == b"case" and kept.name.startswith("readers.x--")
