"""Limits all compared libraries to AVX2: `run.py --avx2`.

Where the system lets CPUID fault (Linux on Intel's processors), CPUID reports a processor without newer instructions. Elsewhere environment variables
limit the libraries that read one; ONNX Runtime reads none, and uses all that the processor has. A 3x3 convolution of 256 channels took ONNX Runtime
10.0 ms with and without ONEDNN_MAX_CPU_ISA, and 15.2 ms with CPUID faults; OpenVINO, which reads the variable, took 10.6 ms without a limit, 16.2
with the variable and 16.7 with faults (Xeon with AMX, two cores). MXNet 1.9.1 reads the older DNNL_MAX_CPU_ISA.
"""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "isa_limit.c")
MECHANISM = "REMEX_ISA_LIMIT"  # set to the mechanism's description, for the tables
# Remex's own kernels, OpenVINO's and PyTorch's oneDNN; MXNet's oneDNN; PyTorch's own kernels and what it compiles; MKL.
VARIABLES = {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def to_avx2():
    """Limit every process that this one starts from now on; end the program with the reason where CPUID faults are possible and fail."""
    folder = tempfile.mkdtemp(prefix="remex-isa-limit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # torch.compile caches code that was made for the unlimited processor.
    os.environ.update(VARIABLES, TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"))
    if not cpuid_faults():
        os.environ[MECHANISM] = "by variables, which ONNX Runtime does not read"
        return
    library = os.path.join(folder, "isa_limit.so")
    build, smoke_test = ["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], [sys.executable, "-c", ""]
    for command, variables in ((build, {}), (smoke_test, {"LD_PRELOAD": library})):
        try:
            subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"--avx2 does not work here: {getattr(error, 'stderr', '') or error}") from None
    os.environ.update({"LD_PRELOAD": library, MECHANISM: "by CPUID faults"})


def cpuid_faults():
    """Return True if the system lets CPUID fault."""
    try:
        with open("/proc/cpuinfo") as file:
            return any(line.startswith("flags") and "cpuid_fault" in line.split() for line in file)
    except OSError:
        return False
