"""Run the rows of `run.py` in ONNX Runtime or OpenVINO, from the row's ONNX file. usage: onnx_worker.py FOLDER onnxruntime|openvino"""
import os
import sys

from harness import inputs, worker_protocol

FOLDER, ENGINE = sys.argv[1:3]


def onnxruntime(path, x, row):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {"data": x}
    return lambda: session.run(None, feed)[0]


def openvino(path, x, row):
    import openvino
    core = openvino.Core()
    model = core.read_model(path)
    if list(model.input(0).shape) != list(x.shape):
        model.reshape(x.shape)
    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "bf16" if row["dtype"] == "bfloat16" else "f32"})
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(x, shared_memory=True))

    def call(_owners=(x, core)):  # the request holds neither its input's memory nor the library
        request.infer()
        return request.get_output_tensor().data
    return call


def prepare(row):
    path = os.path.join(FOLDER, row["network"] + (".xml" if row["dtype"] == "int8" else f"-{row['batch']}.onnx"))
    x = inputs.example(row["network"], row["batch"])
    make = {"onnxruntime": onnxruntime, "openvino": openvino}[ENGINE]
    if row["task"] == "compile":
        return (lambda: make(path, x, row)()), None
    call = make(path, x, row)
    return call, call


if __name__ == "__main__":
    worker_protocol.Worker(prepare).serve()
