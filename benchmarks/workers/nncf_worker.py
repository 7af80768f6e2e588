"""Quantize an ONNX file with NNCF for OpenVINO, in an environment that has nncf.

usage: nncf_worker.py NETWORK BATCH FILE.onnx FILE.xml   write the INT8 network, calibrated with the benchmark's input
       nncf_worker.py FOLDER                             serve requests, where quantizing itself is measured
"""
import os
import sys

import nncf
import openvino

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import inputs  # noqa: E402


def quantized(name, path, batches):
    """Return the INT8 network."""
    kind = nncf.ModelType.TRANSFORMER if name == "transformer" else None
    model = openvino.Core().read_model(path)
    return nncf.quantize(model, nncf.Dataset([{"data": x} for x in batches]), subset_size=len(batches), model_type=kind)


def prepare(row):
    name, batch = row["network"], row["batch"]
    images = inputs.example(name, inputs.CALIBRATION)
    batches = [images[i:i + batch] for i in range(0, len(images), batch)]
    return (lambda: quantized(name, os.path.join(sys.argv[1], f"{name}-{batch}.onnx"), batches)), None


if __name__ == "__main__":
    if len(sys.argv) == 2:
        from harness import worker_protocol
        worker_protocol.Worker(prepare).serve()
    else:
        network, size, source, target = sys.argv[1:]
        openvino.save_model(quantized(network, source, [inputs.example(network, int(size))]), target, compress_to_fp16=False)
