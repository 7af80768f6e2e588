"""Measure the scoring throughput of networks, by batch size.

    python benchmark_score.py
    python benchmark_score.py --network resnet-50,mobilenet --batch-size 1,32
"""
import argparse
import logging
import pathlib
import time
from importlib import import_module

from common.options import add_options, numbers
from common.util import get_gpus

import mxnet as mx
from mxnet.gluon.model_zoo import vision

NETWORKS = [
    "alexnet", "vgg-16", "resnetv1-50", "resnet-50", "resnet-152", "inception-bn", "inception-v3", "inception-v4",
    "inception-resnet-v2", "mobilenet", "densenet121", "squeezenet1.1"]
FROM_GLUON = ("densenet121", "squeezenet1.1")
BATCH_SIZES = [1, 32, 64, 128, 256]
WARM_UP = 5  # batches at least; more until it is settled who runs the network
DEPTHS = {"vgg": 16, "resnet": 50, "resnetv1": 50, "resnext": 50}  # of names that give none
SHAPES = {"inception-v3": "3,299,299", "inception-v4": "3,299,299", "lenet": "1,28,28", "mlp": "1,28,28"}


def get_symbol(network, batch_size, dtype, image_shape=None):
    """The Symbol of a name such as 'resnet-50', and the shape of its input."""
    image_shape = image_shape or SHAPES.get(network, "3,224,224")
    shapes = [("data", (batch_size, *numbers(image_shape, int)))]
    if network in FROM_GLUON:
        net = vision.get_model(network)
        net.hybridize()
        return mx.sym.SoftmaxOutput(net(mx.sym.var("data")), name="softmax"), shapes
    module, _, depth = network.rpartition("-")
    if not depth.isdigit():
        module, depth = network, DEPTHS.get(network, 0)
    if module not in known():
        raise SystemExit(f"no network is called {network!r}; there are {', '.join(NETWORKS)}, and with another depth {', '.join(known())}")
    return import_module(f"symbols.{module}").get_symbol(
        num_classes=1000, image_shape=image_shape, num_layers=int(depth), dtype=dtype), shapes


def known():
    """The names of the networks of symbols/, without their depths."""
    folder = pathlib.Path(__file__).parent / "symbols"
    return sorted(path.stem for path in folder.glob("*.py") if "def get_symbol(" in path.read_text())


def score(network, dev, batch_size, num_batches, dtype, image_shape=None):
    """Images per second that a network with random parameters scores, once it is compiled for these batches, if it is to be."""
    symbol, shapes = get_symbol(network, batch_size, dtype, image_shape)
    module = mx.mod.Module(symbol=symbol, context=dev)
    module.bind(for_training=False, inputs_need_grad=False, data_shapes=shapes, label_shapes=[("softmax_label", (batch_size,))])
    module.init_params(initializer=mx.init.Xavier(magnitude=2.0))
    images = [mx.random.uniform(-1.0, 1.0, shape=shape, ctx=dev) for _, shape in module.data_shapes]
    batch = mx.io.DataBatch(images, [mx.nd.zeros((batch_size,), ctx=dev)])

    def run():
        module.forward(batch, is_train=False)
        for output in module.get_outputs():
            output.wait_to_read()

    for _ in range(WARM_UP):
        run()
    while not all(executor.settled for executor in module._exec_group.execs):
        run()
    tic = time.perf_counter()
    for _ in range(num_batches):
        run()
    return num_batches * batch_size / (time.perf_counter() - tic)


def table(speeds):
    """The speeds as a table: a line for each network, device and dtype, a column for each batch size.

    Parameters
    ----------
    speeds : dict
        (network, device, dtype, batch size) to images per second.
    """
    sizes = sorted({key[3] for key in speeds})
    rows = list(dict.fromkeys(key[:3] for key in speeds))
    width = max(len("network"), *(len(network) for network, _, _ in rows))
    lines = [f"{'network':{width}}  device  dtype    " + "".join(f"{f'batch {size}':>11}" for size in sizes) + "   (images/sec)"]
    for network, device, dtype in rows:
        cells = (speeds.get((network, device, dtype, size)) for size in sizes)
        lines.append(f"{network:{width}}  {device:6}  {dtype:7}  " + "".join(f"{'-' if c is None else f'{c:.1f}':>11}" for c in cells))
    return "\n".join(lines)


def main(argv=None):
    """Parse the options, measure, print the table; the speeds."""
    parser = argparse.ArgumentParser(description="SymbolAPI-based CNN inference performance benchmark")
    add_options(parser, [
        ("--network", str, "all",
         f"networks to run, with commas between: all, {', '.join(NETWORKS)}, or another of symbols/ with its depth"),
        ("--batch-size", str, "0", f"batch sizes to run, with commas between; 0 means {', '.join(map(str, BATCH_SIZES))}"),
        ("--num-batches", int, 10, "batches to measure, after some to warm up"),
        ("--image-shape", str, None, "what the networks receive; by default what each was made for"),
    ])
    args = parser.parse_args(argv)
    networks = NETWORKS if args.network == "all" else args.network.split(",")
    if args.network == "all":
        logging.info("all networks, one after the other; --network chooses some of them")
    sizes = numbers(args.batch_size, int)
    if sizes == [0]:
        sizes = BATCH_SIZES
        logging.info("batches of %s images; --batch-size chooses another size", sizes)

    speeds = {}
    for network in networks:
        logging.info("network: %s", network)
        if network in FROM_GLUON:
            logging.info("network: %s is converted from gluon modelzoo", network)
        for device in [*([mx.gpu(0)] if len(get_gpus()) else []), mx.cpu()]:
            logging.info("device: %s", device)
            # Half precision is for GPUs; the networks of Gluon's model zoo are float32 here.
            dtypes = ["float32"] if device.device_type == "cpu" or network in FROM_GLUON else ["float32", "float16"]
            for size in sizes:
                for dtype in dtypes:
                    speed = score(network, device, size, args.num_batches, dtype, args.image_shape)
                    speeds[network, str(device), dtype, size] = speed
                    logging.info("batch size %2d, dtype %s, images/sec: %f", size, dtype, speed)
    print(table(speeds))
    return speeds


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    main()
