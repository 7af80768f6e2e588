"""Properties of the processor, as reported by the system.

Example
-------
>>> from mxnet import processor
>>> processor.flags() & {'not_an_instruction_set'}
frozenset()
"""
import functools
import os
import pathlib
import platform

# Where Linux describes the processor, the size of its third cache, and the threads of this process.
CPUINFO = pathlib.Path("/proc/cpuinfo")
LAST_CACHE_SIZE = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
_SHIFTS = {"K": 10, "M": 20, "G": 30}
TASKS = pathlib.Path("/proc/self/task")
_TELLING = ("model name", "flags", "Features", "CPU part")


@functools.cache
def cpuinfo_lines() -> list[str]:
    """Return the lines of `CPUINFO`, read once; an empty list if the system has no such file."""
    try:
        return CPUINFO.read_text().splitlines()
    except OSError:
        return []


def flags() -> frozenset[str]:
    """Return the instruction sets by Linux's names, such as ``avx512_bf16``; empty if they are not known."""
    return next((frozenset(line.partition(":")[2].split()) for line in cpuinfo_lines() if line.startswith(("flags", "Features"))), frozenset())


def max_isa() -> str:
    """Return ``x86-64-v3`` or ``x86-64-v2`` if the user limits the instruction set to AVX2 or less by oneDNN's variable; else an empty text."""
    if platform.machine() != "x86_64":
        return ""
    return "x86-64-v3" if _most().startswith("AVX2") else "x86-64-v2" if _most() in ("SSE41", "AVX") else ""


def tiles() -> bool:
    """Return True if the processor has AMX with bfloat16, and oneDNN's variable does not limit the instruction set to less."""
    return {"amx_tile", "amx_bf16"} <= flags() and (_most() in ("", "ALL", "DEFAULT") or "AMX" in _most())


def _most() -> str:
    return os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", "")).upper()


def identity() -> str:
    """Return a text that identifies the kind of processor; empty if it is not known."""
    return "".join(line for line in cpuinfo_lines()[:40] if line.startswith(_TELLING))


def name() -> str:
    """Return the processor's model name; empty if it is not known."""
    return next((line.partition(":")[2].strip() for line in cpuinfo_lines() if line.startswith("model name")), "")


def maker() -> str:
    """Return the vendor id of x86 processors: ``GenuineIntel``, ``AuthenticAMD``; empty for others."""
    return next((line.partition(":")[2].strip() for line in cpuinfo_lines() if line.startswith("vendor_id")), "")


def family() -> int:
    """Return the vendor's family number (25 for AMD's Zen 3 and 4, 26 for Zen 5); 0 if it is not known."""
    return next((int(line.partition(":")[2]) for line in cpuinfo_lines() if line.startswith("cpu family")), 0)


def design() -> str:
    """Return vendor, family and the widest vectors in use, such as ``AuthenticAMD-25-avx512``; empty if the vendor is not known."""
    width = "amx" if tiles() else "avx512" if "avx512f" in flags() and not max_isa() else "avx2"
    return f"{maker()}-{family()}-{width}" if maker() else ""


def cores() -> int | None:
    """Return the number of physical cores of the machine; None if it is not known."""
    pairs, socket = set(), "0"
    for line in cpuinfo_lines():
        key, _, value = line.partition(":")
        if key.strip() == "physical id":
            socket = value.strip()
        elif key.strip() == "core id":
            pairs.add((socket, value.strip()))
    return len(pairs) or None


def last_cache() -> int:
    """Return the size of the level-3 cache in bytes; on virtual machines other guests may share it. 0 if the system does not report it."""
    try:  # os.sysconf has no name for it
        size = LAST_CACHE_SIZE.read_text().strip()
        return int(size[:-1]) << _SHIFTS[size[-1:]]
    except (OSError, ValueError, KeyError):
        return 0


def waited() -> float:
    """Return the total time in seconds that threads of this process were runnable but waited for a processor.

    This is the sum over the current threads; 0 if the system does not report it.
    """
    nanoseconds = 0
    for path in TASKS.glob("*/schedstat"):
        try:
            nanoseconds += int(path.read_text().split()[1])
        except (OSError, ValueError, IndexError):  # the thread has ended
            continue
    return nanoseconds * 1e-9
