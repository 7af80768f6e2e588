"""Control groups with a share of the processor's time, as containers get. Needs root, and Linux's controller of that name."""
import contextlib
import os
import pathlib

_ROOT = pathlib.Path("/sys/fs/cgroup")
_PERIOD = 100_000  # microseconds, in which the share is counted


@contextlib.contextmanager
def quota(cores):
    """A function that puts the calling process into a group which gets so many cores, such as 0.5.

    Raises OSError where there can be no such group.
    """
    old = (_ROOT / "cpu" / "cpu.cfs_quota_us").exists()  # the controllers' first version, each in a folder of its own
    group = (_ROOT / "cpu" if old else _ROOT) / f"remex-{os.getpid()}"
    group.mkdir()
    try:
        microseconds = round(cores * _PERIOD)
        if old:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(microseconds))
        else:
            (group / "cpu.max").write_text(f"{microseconds} {_PERIOD}")
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()  # its last process has ended
