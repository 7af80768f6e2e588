"""benchmarks/held.py: processes that find a processor with less than there is."""
import pathlib
import subprocess
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPT = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import held
held.to_avx2()
inner = "import os, signal, torch; signal.signal(signal.SIGSEGV, signal.SIG_DFL); print(torch.backends.cpu.get_cpu_capability(), flush=True); {then}"
for then in ("pass", "os.kill(os.getpid(), signal.SIGSEGV)"):
    done = subprocess.run([sys.executable, "-c", inner.format(then=then)], capture_output=True, text=True)
    print(done.stdout.strip(), done.returncode)
"""


def test_no_process_sees_more_than_avx2_and_faults_end_it_as_before():
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(BENCHMARKS)], capture_output=True, text=True)
    if "--avx2 does not work here" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout.splitlines() == ["AVX2 0", "AVX2 -11"]


def test_a_machine_without_a_compiler_is_told(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import held
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="--avx2 does not work here"):
        held.to_avx2()
