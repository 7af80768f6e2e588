"""What the system says about its processor.

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

_SOURCE = pathlib.Path("/proc/cpuinfo")
_THIRD_CACHE = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
_SHIFTS = {"K": 10, "M": 20, "G": 30}
_TASKS = pathlib.Path("/proc/self/task")  # the threads of this process
_TELLING = ("model name", "flags", "Features", "CPU part")


@functools.cache
def _lines() -> list[str]:
    try:
        return _SOURCE.read_text().splitlines()
    except OSError:
        return []


def flags() -> frozenset[str]:
    """Instruction sets by Linux's names, such as ``avx512_bf16``; empty where they are not known."""
    return next((frozenset(line.partition(":")[2].split()) for line in _lines() if line.startswith(("flags", "Features"))), frozenset())


def max_isa() -> str:
    """``x86-64-v3`` or ``x86-64-v2`` where the user holds programs to AVX2, or to less, by oneDNN's variable; else empty."""
    if platform.machine() != "x86_64":
        return ""
    return "x86-64-v3" if _most().startswith("AVX2") else "x86-64-v2" if _most() in ("SSE41", "AVX") else ""


def tiles() -> bool:
    """Whether it multiplies tiles of bfloat16 (AMX), and the user does not hold programs to less by oneDNN's variable."""
    return {"amx_tile", "amx_bf16"} <= flags() and (_most() in ("", "ALL", "DEFAULT") or "AMX" in _most())


def _most() -> str:
    return os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", "")).upper()


def identity() -> str:
    """A text that two kinds of processors do not have in common; empty where that is not known."""
    return "".join(line for line in _lines()[:40] if line.startswith(_TELLING))


def name() -> str:
    """What its maker calls it; empty where that is not known."""
    return next((line.partition(":")[2].strip() for line in _lines() if line.startswith("model name")), "")


def maker() -> str:
    """Its maker, as x86 processors have it: ``GenuineIntel``, ``AuthenticAMD``; empty for others."""
    return next((line.partition(":")[2].strip() for line in _lines() if line.startswith("vendor_id")), "")


def family() -> int:
    """The number by which its maker tells generations apart (25 for AMD's Zen 3 and 4, 26 for Zen 5); 0 where that is not known."""
    return next((int(line.partition(":")[2]) for line in _lines() if line.startswith("cpu family")), 0)


def design() -> str:
    """Its maker and generation, and the widest vectors that programs use, such as ``AuthenticAMD-25-avx512``; empty where the maker is not known."""
    width = "amx" if tiles() else "avx512" if "avx512f" in flags() and not max_isa() else "avx2"
    return f"{maker()}-{family()}-{width}" if maker() else ""


def cores() -> int | None:
    """How many cores the machine has, where several threads that share one count as one; None where that is not known."""
    found, socket = set(), "0"
    for line in _lines():
        key, _, value = line.partition(":")
        if key.strip() == "physical id":
            socket = value.strip()
        elif key.strip() == "core id":
            found.add((socket, value.strip()))
    return len(found) or None


def last_cache() -> int:
    """The size of the third cache in bytes, as the system says, which may count what other machines have a share in; 0 where it does not say."""
    try:  # os.sysconf has no name for it
        size = _THIRD_CACHE.read_text().strip()
        return int(size[:-1]) << _SHIFTS[size[-1:]]
    except (OSError, ValueError, KeyError):
        return 0


def waited() -> float:
    """For how many seconds, so far, threads of this process were ready to run while others had the processors.

    The sum over the threads that there are; 0 where the system does not say.
    """
    found = 0
    for path in _TASKS.glob("*/schedstat"):
        try:
            found += int(path.read_text().split()[1])
        except (OSError, ValueError, IndexError):  # the thread has ended
            continue
    return found * 1e-9
