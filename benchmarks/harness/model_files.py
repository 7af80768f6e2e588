"""Files of the networks that other libraries read: parameters, ONNX, and INT8 models by NNCF."""
import os
import subprocess
import sys

from harness import common
from harness.worker_processes import environment


def ensure_network(name, folder, module="networks"):
    """Write the network's parameters unless they are there and newer than the modules that define the networks.

    `module` is `networks` or `train_models`.
    """
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".npz")
    sources = (os.path.join(common.BENCHMARKS, "harness", source) for source in ("train_models.py", "workloads.py", "networks.py"))
    if not os.path.exists(path) or os.path.getmtime(path) < max(map(os.path.getmtime, sources)):
        _run_worker("write_network.py", module, name, folder)


def export_onnx(row, folder):
    """Return the path of the row's ONNX file, which is written if it is missing; None where the export fails."""
    path = os.path.join(folder, f"{row['network']}-{row['batch']}.onnx")
    if not os.path.exists(path):
        try:
            _run_worker("torch_worker.py", folder, "onnx", row["network"], str(row["batch"]), path + ".new")
            os.replace(path + ".new", path)  # an interrupted run leaves no partial file
        except subprocess.CalledProcessError as error:
            print("  no ONNX file:", error.stderr.strip().splitlines()[-1], file=sys.stderr)
            return None
    return path


def quantize_onnx(row, path, python):
    """Quantize an ONNX file with NNCF to NETWORK.xml, beside it, for OpenVINO; return the files that were written, [] where there is no NNCF."""
    target = os.path.join(os.path.dirname(path), row["network"] + ".xml")
    command = [python, "-W", "ignore", os.path.join(common.WORKERS, "nncf_worker.py"), row["network"], str(row["batch"]), path, target]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print("  no NNCF:", (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1], file=sys.stderr)
        return []
    return [target, target.removesuffix(".xml") + ".bin"]


def _run_worker(program, *args):
    subprocess.run([sys.executable, "-W", "ignore", os.path.join(common.WORKERS, program), *args], check=True, capture_output=True, text=True,
                   env=environment(sys.executable))
