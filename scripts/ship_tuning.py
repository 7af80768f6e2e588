"""Tune the networks of the model zoo and of benchmarks/ on this machine, and add the choices to the tuning cache in the package.

    python scripts/ship_tuning.py                  # all networks, batches 1 to 32, as many threads as there are cores
    python scripts/ship_tuning.py --convolutions   # after a change of kernels: only the convolutions in the package's tuning cache, anew

Each network scores until its kernels and backends are chosen, in a new process with an empty tuning cache. The choices are added to those for other
shapes and numbers of threads in src/mxnet/kernels/runtime/shipped_tuning. The machine must be idle.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NETWORKS = ("alexnet", "vgg11", "vgg16", "vgg19", "inceptionv3", "resnet18_v1", "resnet34_v1", "resnet50_v1", "resnet101_v1", "resnet152_v1",
            "resnet18_v2", "resnet50_v2", "resnet152_v2", "densenet121", "mobilenet1.0", "mobilenetv2_1.0", "squeezenet1.0", "inception-bn")
BENCHMARKS = pathlib.Path(__file__).resolve().parents[1] / "benchmarks"
# After it a program does not read the package's tuning cache, and it measures more often than others, so that it sees small leads.
CAREFUL = """
from mxnet.kernels.runtime import tuning
tuning._SHIPPED = tuning._SHIPPED / "none"
tuning.LAYER = tuning.LAYER._replace(least=8, most=12, enough=0.2, lead=0.98)
"""
SCORE = CAREFUL + """
import sys, time
import mxnet as mx
name, batch, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
sys.path.append(sys.argv[4])
from harness import networks
net = networks.build(name) if name in networks.LAYERED else mx.gluon.model_zoo.vision.get_model(name)
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc=True, static_shape=True)
side = 299 if name == "inceptionv3" else 224
x = mx.nd.random.uniform(shape=(batch, 3, side, side))
end = time.perf_counter() + seconds
while time.perf_counter() < end:
    net(x).wait_to_read()
    if net._cached_op.handle.settled:
        break
else:
    sys.exit(f"not tuned after {seconds:g} s")
"""

CONVOLUTIONS = """
import re, sys, torch
from mxnet.kernels.conv.prepacked_conv import PrepackedConv
from mxnet.kernels.runtime import tuning
known = [key for key in tuning._read(tuning.shipped_file("convolutions")) if key.endswith(f", {sys.argv[1]} threads")]
""" + CAREFUL + """
for key in known:
    n, c, h, w, filters, *taps_and_steps = map(int, re.findall(r"[0-9]+", key)[:-1])
    taps, stride, pad, dilate = zip(taps_and_steps[::2], taps_and_steps[1::2])
    layer = PrepackedConv(torch.randn(filters, c, *taps), None, stride, pad, dilate, 1)
    layer(torch.randn(n, c, h, w).contiguous(memory_format=torch.channels_last))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS), help="by comma")
    parser.add_argument("--batches", default="1,2,4,8,16,32", help="batch sizes, by comma")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="OMP_NUM_THREADS")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of a network")
    parser.add_argument("--convolutions", action="store_true", help="benchmark the package's convolutions for this number of threads only")
    args = parser.parse_args()
    from mxnet.kernels.runtime import libraries
    with tempfile.TemporaryDirectory() as home:
        kernels = pathlib.Path(home, "kernels")
        shutil.copytree(libraries.folder(), kernels, ignore=shutil.ignore_patterns("*.json"))
        env = {**os.environ, "MXNET_HOME": home, "OMP_NUM_THREADS": str(args.threads)}
        if args.convolutions:
            subprocess.run([sys.executable, "-W", "ignore", "-c", CONVOLUTIONS, str(args.threads)], env=env, check=True)
        for name in () if args.convolutions else args.networks.split(","):
            for batch in args.batches.split(","):
                process = subprocess.run([sys.executable, "-W", "ignore", "-c", SCORE, name, batch, str(args.seconds), str(BENCHMARKS)],
                                         env=env, check=False, capture_output=True, text=True)
                print(name, batch, "tuned" if process.returncode == 0 else process.stderr.strip().splitlines()[-1:], flush=True)
        for path in kernels.glob("*.json"):
            ship(path)


def ship(path):
    """Add the choices in a file of this machine to the package's."""
    from mxnet.kernels.runtime import tuning
    shipped = tuning.shipped_file(path.stem.rpartition("-")[0])
    shipped.parent.mkdir(exist_ok=True)
    choices = json.loads(shipped.read_text()) if shipped.exists() else {}
    choices.update({key.partition(", remex ")[0]: choice for key, choice in json.loads(path.read_text()).items() if choice})
    shipped.write_text(json.dumps(choices, indent=0, sort_keys=True) + "\n")
    print(f"{shipped}: {len(choices)}")


if __name__ == "__main__":
    main()
