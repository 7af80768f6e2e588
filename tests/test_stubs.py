import pathlib
import subprocess

from forked import python

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "make_stubs.py"


def test_stubs_are_what_the_registry_says():
    # In a process of its own: what other tests have imported on demand would be listed too.
    check = subprocess.run([*python(), str(SCRIPT), "--check"], capture_output=True, text=True, check=False, timeout=280)
    assert check.returncode == 0, f"run `make stubs`: {check.stdout}{check.stderr}"
