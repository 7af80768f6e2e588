"""Run the rows of `run.py` in PyTorch. usage: torch_worker.py FOLDER [compile] [tuned]

`tuned`: channels-last, freed memory cached by malloc, and for scoring batch norm folded (eager) or weights frozen (compiled).
"""
import contextlib
import sys

import torch
from torch.nn import functional as F

from harness import inputs, torch_models, worker_protocol, workloads

FOLDER, OPTIONS = sys.argv[1], set(sys.argv[2:])


def prepare(row):
    torch._dynamo.reset()
    name, batch = row["network"], row["batch"]
    training = row.get("mode") == "training"
    net = torch_models.load(name, FOLDER).train(training)
    if row["task"] == "steps":
        return small_training(net, torch.compile(net) if "compile" in OPTIONS else net, row)
    x = torch.from_numpy(inputs.example(name, batch))
    if "tuned" in OPTIONS:
        if "compile" not in OPTIONS and not training and isinstance(net, torch.fx.GraphModule):
            net = torch_models.fold_batch_norm(net)
        if x.ndim == 4:
            net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        if "compile" in OPTIONS and not training:
            from torch._inductor import config
            config.freezing = True
    low = row["dtype"] == "bfloat16"
    run = torch.compile(net) if "compile" in OPTIONS else net
    precision = (lambda: torch.autocast("cpu", torch.bfloat16)) if low else contextlib.nullcontext
    return train(net, run, x, name, precision) if training else score(run, x, precision)


def score(run, x, precision):
    def call():
        with torch.no_grad(), precision():
            return run(x)
    return call, lambda: call().float().numpy()


def train(net, run, x, name, precision):
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.001, momentum=0.9)
    batch = x.shape[1] if inputs.is_recurrent(name) else x.shape[0]
    label = torch.arange(batch) % 10

    def step():
        optimizer.zero_grad(set_to_none=True)
        with precision():
            out = run(x)
            loss = (out * out).mean() if inputs.is_recurrent(name) else F.cross_entropy(out, label)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step, lambda: [step(), step()]


def small_training(net, run, row):
    """Return the training step of `train_models` in torch."""
    x, y = map(torch.from_numpy, workloads.batch(row["network"], row["batch"]))
    forecasts = row["network"].startswith("deepar")
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], workloads.settings(row["network"], "sgd")["learning_rate"], 0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        out = run(x)
        if forecasts:
            mean, spread = out[..., 0], F.softplus(out[..., 1]) + 0.01
            loss = (spread.log() + 0.5 * ((y - mean) / spread).square()).mean()
        else:
            loss = F.cross_entropy(out.flatten(0, -2), y.flatten().long())
        loss.backward()
        optimizer.step()
        return loss.item()
    return step, lambda: [step(), step()]


def write_onnx(name, batch, path):
    """Write the network as an ONNX file with fixed shapes, for ONNX Runtime and OpenVINO."""
    net = torch_models.load(name, FOLDER).eval()
    torch.onnx.export(net, (torch.from_numpy(inputs.example(name, batch)),), path, input_names=["data"], opset_version=17, dynamo=False)


if __name__ == "__main__":
    if "onnx" in OPTIONS:
        write_onnx(sys.argv[3], int(sys.argv[4]), sys.argv[5])
        sys.exit()
    if "tuned" in OPTIONS:
        worker_protocol.keep_memory()
    worker_protocol.Worker(prepare).serve()
