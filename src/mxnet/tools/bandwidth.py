"""Measure a kvstore's sum of a network's gradients: ``python -m mxnet.tools.bandwidth --network resnet --num-layers 50 --kv-store device``.

The flags are those of MXNet's ``tools/bandwidth/measure.py``. With ``--batch-size`` it also measures the time of a batch of the network, and
predicts the scaling of up to 1,024 workers (`mxnet.tools.scaling`). For stores of many processes start it with the launcher:

    python -m mxnet.tools.launch -n 2 -s 0 --launcher local python -m mxnet.tools.bandwidth --kv-store dist_sync --network alexnet
"""
from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import mxnet as mx

from ..base import MXNetError
from . import scaling
from .command import command, parser

if TYPE_CHECKING:
    import argparse

_log = logging.getLogger("mxnet.tools.bandwidth")


class Result(NamedTuple):
    """The result of one round of `run`: its number, seconds, GB/s of each device, and the relative error of the sums (-1: not checked)."""

    iter: int
    time: float
    bandwidth: float
    error: float


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("bandwidth")
    p.add_argument("--network", default="resnet", help="a network of gluon.model_zoo.vision, or resnet and vgg with --num-layers")
    p.add_argument("--num-layers", type=int, default=152, help="of resnet and vgg")
    p.add_argument("--gpus", default="", help="which GPUs, such as 0,1,2,3; without, --cpus")
    p.add_argument("--cpus", type=int, default=2, help="so many CPU devices, where no GPUs are named")
    p.add_argument("--kv-store", default="device", help="the type of the kvstore, such as local, device, dist_sync or dist_async")
    p.add_argument("--num-batches", type=int, default=5, help="rounds to measure, behind one that warms up")
    p.add_argument("--disp-batches", type=int, default=1, help="say the mean of so many rounds")
    p.add_argument("--test-results", type=int, default=1, help="0: do not compare the sums with those of the values")
    p.add_argument("--image-shape", default="3,224,224", help="channels, height and width of an image")
    p.add_argument("--num-classes", type=int, default=1000, help="outputs of the network")
    p.add_argument("--optimizer", default="None", help="let the store update by it; None: it only adds up")
    p.add_argument("--gc-type", default="none", help="gradient compression: 2bit, 1bit, fp16, bf16 or none")
    p.add_argument("--batch-size", type=int, default=0, help="also measure how long a device computes a batch of this size")
    p.add_argument("--per-machine", type=int, default=1, help="for the table of what to expect: workers on each machine")
    p.add_argument("--network-bandwidth", type=float, default=0, help="for the same: GB/s between machines; 0: what was measured")
    return p


def _network(name, layers, classes):
    zoo = mx.gluon.model_zoo.vision
    known = {"resnet": f"resnet{layers}_v2", "resnet-v1": f"resnet{layers}_v1", "vgg": f"vgg{layers}", "inception-v3": "inceptionv3",
             "mobilenet": "mobilenet1.0", "squeezenet": "squeezenet1.0"}
    try:
        return zoo.get_model(known.get(name, name), classes=classes)
    except ValueError as error:
        raise MXNetError(f"--network {name}: {error}") from None


def _image(text):
    try:
        shape = tuple(int(part) for part in text.split(","))
    except ValueError:
        shape = ()
    if len(shape) != 3 or min(shape) < 1:
        raise MXNetError(f"--image-shape needs three numbers such as 3,224,224, received {text!r}")
    return shape


def _shapes(net, image):
    """Return the shapes of all parameters that have gradients."""
    symbol = net(mx.sym.var("data"))
    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=(32, *image))[0]))  # any batch size
    shapes.pop("data")
    return list(shapes.values())


def _error(devices, expected):
    wrong = sum(float(np.abs(a.asnumpy() - e).sum()) for values, e in zip(devices, expected) for a in values)
    return wrong / sum(float(np.abs(e).sum()) for e in expected)


def run(network: str, optimizer: str, gpus: str, kv_store: str, image_shape: str, disp_batches: int, num_batches: int, test_results: int,
        gc_type: str, num_layers: int = 152, num_classes: int = 1000, cpus: int = 2, **unused: Any) -> list[Any]:
    """Measure rounds of push and pull; see the command line for the arguments.

    Returns
    -------
    list of Result
    """
    if min(num_batches, disp_batches, cpus) < 1:
        raise MXNetError(f"--num-batches, --disp-batches and --cpus are at least 1, received {num_batches}, {disp_batches} and {cpus}")
    devices = [mx.gpu(int(i)) for i in gpus.split(",")] if gpus else [mx.cpu(i) for i in range(cpus)]
    kv = mx.kv.create(kv_store)
    if gc_type != "none":
        kv.set_gradient_compression({"type": gc_type})
    updater = None
    if optimizer not in (None, "None"):
        kv.set_optimizer(mx.optimizer.create(optimizer))
        updater = mx.optimizer.get_updater(mx.optimizer.create(optimizer))
    shapes = _shapes(_network(network, num_layers, num_classes), _image(image_shape))
    size = 4 * sum(int(np.prod(s)) for s in shapes)
    _log.info("num of arrays = %d, total size = %f MB", len(shapes), size / 1e6)
    keys = list(range(len(shapes)))
    weights = [[mx.nd.zeros(s, d) for d in devices] for s in shapes]
    for key, values in zip(keys, weights):
        kv.broadcast(key, values[0].copy(), out=values)
    random = np.random.RandomState(0)  # the same on all workers
    values = [[random.uniform(-1, 1, s).astype("float32") for _ in devices] for s in shapes]
    grads = [[mx.nd.array(v, d) for v, d in zip(vs, devices)] for vs in values]
    # All workers have the same values, and without an optimizer each round replaces the store's sums.
    sums = [sum(vs) * kv.num_workers for vs in values]
    expected = [mx.nd.zeros(s) for s in shapes]
    together = getattr(kv, "batches", False)
    members = len(devices) * kv.num_workers
    times, spent = [], 0.0
    for number in range(num_batches + 1):
        begin = time.perf_counter()
        if together:
            kv.pushpull(keys, grads, out=weights)
        else:
            for key in keys:
                kv.push(key, grads[key], key)
            for key in keys:
                kv.pull(key, weights[key], key)
        mx.nd.waitall()
        spent += time.perf_counter() - begin
        if updater is not None and test_results:
            for key in keys:
                updater(key, mx.nd.array(sums[key]), expected[key])
        if number % disp_batches:
            continue
        if number:  # the first round is a warm-up
            error = -1.0 if not test_results else _error(weights, [e.asnumpy() for e in expected] if updater else sums)
            took = spent / disp_batches
            times.append(Result(number, took, size * 2 * (members - 1) / members / took / 1e9, error))
            _log.info("iter %d, %f sec, %f GB/sec per device, error %f", *times[-1])
        spent = 0.0
    return times


def batch_time(network: str, num_layers: int, num_classes: int, image_shape: str, batch_size: int, gpus: str = "", num_batches: int = 2,
               **unused: Any) -> float:
    """Return a device's time for a batch, forward and backward, in seconds: the minimum of `num_batches` after a warm-up."""
    ctx = mx.gpu(int(gpus.split(",")[0])) if gpus else mx.cpu()
    net = _network(network, num_layers, num_classes)
    net.initialize(ctx=ctx)
    net.hybridize()
    data = mx.nd.random.uniform(shape=(batch_size, *_image(image_shape)), ctx=ctx)
    took = []
    for _ in range(num_batches + 1):
        begin = time.perf_counter()
        with mx.autograd.record():
            out = net(data).sum()
        out.backward()
        mx.nd.waitall()
        took.append(time.perf_counter() - begin)
    return min(took[1:])


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    chosen = build_parser().parse_args(argv)
    options = vars(chosen)
    try:
        results = run(**options)
        if not chosen.batch_size:
            return 0
        took = min(r.time for r in results)
        step = batch_time(**options)
        net = _network(chosen.network, chosen.num_layers, chosen.num_classes)
        size = 4 * sum(int(np.prod(s)) for s in _shapes(net, _image(chosen.image_shape)))
        print(f"A batch of {chosen.batch_size} takes {step:.3f} s to compute and {took:.3f} s to exchange: {100 * took / (step + took):.1f} % of a "
              "step, where nothing of it is hidden.")
        measured = max(r.bandwidth for r in results)
        bandwidth = chosen.network_bandwidth or measured
        if bandwidth <= 0:
            print("One device has nobody to exchange with: name the bandwidth between machines by --network-bandwidth for what to expect of more.")
            return 0
        local = measured * 1e9 if chosen.per_machine > 1 and measured > 0 else None
        cluster = scaling.Cluster(bandwidth * 1e9, chosen.per_machine, local)
        print(f"To expect with {bandwidth:.2f} GB/s between machines of {chosen.per_machine}:\n")
        print(scaling.table(cluster, step, size, chosen.batch_size))
    except MXNetError as error:
        print(f"bandwidth: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
