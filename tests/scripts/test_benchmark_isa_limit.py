"""Tests of benchmarks/harness/isa_limit.py: child processes see a processor with AVX2 at most."""
import os
import pathlib
import subprocess
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPT = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from harness import isa_limit
isa_limit.to_avx2()
inner = "import os, signal, torch; signal.signal(signal.SIGSEGV, signal.SIG_DFL); print(torch.backends.cpu.get_cpu_capability(), flush=True); {then}"
for then in ("pass", "os.kill(os.getpid(), signal.SIGSEGV)"):
    done = subprocess.run([sys.executable, "-c", inner.format(then=then)], capture_output=True, text=True)
    print(done.stdout.strip(), done.returncode)
"""


def run():
    return subprocess.run([sys.executable, "-c", SCRIPT, str(BENCHMARKS)], capture_output=True, text=True)


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from harness import isa_limit
    for name in ("TORCHINDUCTOR_CACHE_DIR", "LD_PRELOAD", isa_limit.MECHANISM, *isa_limit.VARIABLES):
        monkeypatch.setenv(name, "")
    return isa_limit


def test_no_process_sees_more_than_avx2_and_faults_end_it_as_before():
    done = run()
    if "--avx2 does not work here" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout.splitlines() == ["AVX2 0", "AVX2 -11"]


def test_the_option_ends_with_the_reason_where_there_is_no_compiler(monkeypatch, limit):
    monkeypatch.setattr(limit, "cpuid_faults", lambda: True)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="--avx2 does not work here"):
        limit.to_avx2()


def test_without_cpuid_faults_variables_limit_and_the_tables_name_the_library_that_reads_none(monkeypatch, limit):
    from harness import common
    monkeypatch.setattr(limit, "cpuid_faults", lambda: False)
    limit.to_avx2()
    assert {name: os.environ[name] for name in limit.VARIABLES} == limit.VARIABLES and not os.environ["LD_PRELOAD"]
    assert os.path.basename(os.environ["TORCHINDUCTOR_CACHE_DIR"]) == "inductor"
    assert common.processor().endswith(", limited to AVX2 by variables, which ONNX Runtime does not read")
