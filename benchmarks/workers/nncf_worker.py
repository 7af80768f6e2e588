"""NNCF quantizes an ONNX file for OpenVINO, calibrated with the benchmark's input. Runs in an environment of its own, which has nncf.

usage: nncf_worker.py NETWORK BATCH FILE.onnx FILE.xml
"""
import os
import sys

import nncf
import openvino

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import inputs  # noqa: E402  # beside the driver

name, batch, source, target = sys.argv[1:]
model = openvino.Core().read_model(source)
data = nncf.Dataset([{"data": inputs.example(name, int(batch))}])
kind = nncf.ModelType.TRANSFORMER if name == "transformer" else None
openvino.save_model(nncf.quantize(model, data, subset_size=1, model_type=kind), target, compress_to_fp16=False)
