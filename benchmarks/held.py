"""All peers on a processor with AVX2 and nothing beyond, by what it tells them: `run.py --avx2`.

Not all of them read ``ONEDNN_MAX_CPU_ISA``: a 3x3 convolution of 256 channels took ONNX Runtime 10.0 ms with it and without, and 15.2 so; MXNet 1.9.1
10.3, 10.3 and 16.4; OpenVINO, which reads it, 10.6, 16.2 and 16.7 (Xeon with AMX, two cores).
"""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "held.c")


def to_avx2():
    """Hold every process that this one starts from now on; ends the program with the reason where that cannot be."""
    folder = tempfile.mkdtemp(prefix="remex-held-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = os.path.join(folder, "held.so")
    # The variable is what Remex's own kernels go by; what torch.compile keeps was made for the whole processor.
    environment = {"LD_PRELOAD": library, "ONEDNN_MAX_CPU_ISA": "AVX2", "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor")}
    for command, more in ((["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], {}), ([sys.executable, "-c", ""], environment)):
        try:
            subprocess.run(command, env={**os.environ, **more}, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"--avx2 does not work here: {getattr(error, 'stderr', '') or error}") from None
    os.environ.update(environment)
