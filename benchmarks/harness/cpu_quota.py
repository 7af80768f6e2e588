"""Control groups (cgroups) with a CPU quota, as containers have. They need root, and Linux's cpu controller."""
import contextlib
import os
import pathlib

_ROOT = pathlib.Path("/sys/fs/cgroup")
_PERIOD = 100_000  # microseconds, in which the share is counted


@contextlib.contextmanager
def quota(cores):
    """Yield a function that moves the calling process into a group with a quota of so many cores, such as 0.5.

    Raises OSError where the system allows no such group.
    """
    version1 = (_ROOT / "cpu" / "cpu.cfs_quota_us").exists()  # one folder for each controller
    group = (_ROOT / "cpu" if version1 else _ROOT) / f"remex-{os.getpid()}"
    group.mkdir()
    try:
        microseconds = round(cores * _PERIOD)
        if version1:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(microseconds))
        else:
            (group / "cpu.max").write_text(f"{microseconds} {_PERIOD}")
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()
