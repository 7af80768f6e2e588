"""Find out who is the fastest for the model zoo's networks on this machine, and let the package know it for processors of this design.

    python scripts/ship_tuning.py                  # all networks, batches 1 to 32, as many threads as there are cores

Each network scores until it is decided who runs it, in a process of its own that knows nothing from earlier ones but compiled kernels. What is found
goes into src/mxnet/kernels/runtime/shipped_tuning, beside what stands there for other shapes and numbers of threads. The machine must be quiet.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from mxnet.kernels.runtime import libraries, tuning

NETWORKS = ("alexnet", "vgg11", "vgg16", "vgg19", "inceptionv3", "resnet18_v1", "resnet34_v1", "resnet50_v1", "resnet101_v1", "resnet152_v1",
            "resnet18_v2", "resnet50_v2", "resnet152_v2", "densenet121", "mobilenet1.0", "mobilenetv2_1.0", "squeezenet1.0")
SCORE = """
import sys, time
import mxnet as mx
from mxnet.kernels.runtime import tuning
tuning._SHIPPED = tuning._SHIPPED / "none"  # what the package knows already decides nothing
name, batch, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
net = mx.gluon.model_zoo.vision.get_model(name)
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc=True, static_shape=True)
side = 299 if name.startswith("inception") else 224
x = mx.nd.random.uniform(shape=(batch, 3, side, side))
end = time.perf_counter() + seconds
while time.perf_counter() < end:
    net(x).wait_to_read()
    if net._cached_op.handle.settled:
        break
else:
    sys.exit(f"not decided after {seconds:g} s")
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--batches", default="1,2,4,8,16,32")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=60.0, help="after which a network is given up")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        kernels = pathlib.Path(home, "kernels")
        shutil.copytree(libraries.folder(), kernels, ignore=shutil.ignore_patterns("*.json"))
        env = {**os.environ, "MXNET_HOME": home, "OMP_NUM_THREADS": str(chosen.threads)}
        for name in chosen.networks.split(","):
            for batch in chosen.batches.split(","):
                done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCORE, name, batch, str(chosen.seconds)], env=env, check=False,
                                      capture_output=True, text=True)
                print(name, batch, "found" if done.returncode == 0 else done.stderr.strip().splitlines()[-1:], flush=True)
        for path in kernels.glob("*.json"):
            ship(path)


def ship(path):
    """Add what a file of this machine knows to the package's."""
    shipped = tuning.shipped_file(path.stem.rpartition("-")[0])
    shipped.parent.mkdir(exist_ok=True)
    known = json.loads(shipped.read_text()) if shipped.exists() else {}
    known.update({key.partition(", remex ")[0]: winner for key, winner in json.loads(path.read_text()).items() if winner})
    shipped.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")
    print(f"{shipped}: {len(known)}")


if __name__ == "__main__":
    main()
