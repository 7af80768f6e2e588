"""All peers on a processor with AVX2 and nothing beyond: `run.py --avx2`.

Where the system lets CPUID fault (Linux on Intel's processors) they find such a processor, by what it tells them. Elsewhere variables tell those that
read one; ONNX Runtime reads none, and keeps what the processor has. A 3x3 convolution of 256 channels took ONNX Runtime 10.0 ms with
ONEDNN_MAX_CPU_ISA and without, and 15.2 with faults; OpenVINO, which reads it, 10.6, 16.2 and 16.7 (Xeon with AMX, two cores). MXNet 1.9.1
reads the older DNNL_MAX_CPU_ISA.
"""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "held.c")
BY = "REMEX_HELD_BY"  # how, for the tables
# Remex's own kernels, OpenVINO's and PyTorch's oneDNN; MXNet's oneDNN; PyTorch's own kernels and what it compiles; MKL.
VARIABLES = {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def to_avx2():
    """Hold every process that this one starts from now on; ends the program with the reason where faults are possible and fail."""
    folder = tempfile.mkdtemp(prefix="remex-held-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # What torch.compile keeps was made for the whole processor.
    os.environ.update(VARIABLES, TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"))
    if not faults():
        os.environ[BY] = "by variables, which ONNX Runtime does not read"
        return
    library = os.path.join(folder, "held.so")
    build, start = ["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], [sys.executable, "-c", ""]
    for command, more in ((build, {}), (start, {"LD_PRELOAD": library})):
        try:
            subprocess.run(command, env={**os.environ, **more}, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"--avx2 does not work here: {getattr(error, 'stderr', '') or error}") from None
    os.environ.update({"LD_PRELOAD": library, BY: "by what CPUID tells"})


def faults():
    """Whether the system lets CPUID fault."""
    try:
        with open("/proc/cpuinfo") as file:
            return any(line.startswith("flags") and "cpuid_fault" in line.split() for line in file)
    except OSError:
        return False
