"""Train with insightface's programs, unchanged, on one rank and on two, and compare the losses of each step.

    python scripts/run_insightface.py GIT_DIR [--steps 20] [--lr 0.1] [--size 112] [--only whole,split] [--folder FOLDER]

GIT_DIR is a repository of deepinsight/insightface with commit 7fadd420. Needed: ``pip install easydict scikit-learn scipy opencv-python-headless``.
Runs named "whole" are `recognition/arcface_mxnet/train.py`, data parallel with ``--kvstore dist_sync``. Those named "split" are
`recognition/partial_fc/mxnet/train_memory.py`, which divides the classes over the ranks with Horovod's functions. Both train their ResNet with 18
layers and the loss CosFace on synthetic images. The files of the programs are unchanged. They are started with

- the packages that are missing: ``horovod`` is `mxnet.contrib.horovod`, ``mxboard`` prints its numbers, and ``mx.gpu`` is `mx.cpu`;
- fixed random numbers: initial weights depend on their names, and images are neither shuffled nor mirrored.

BatchNorm uses a rank's own batch. So two ranks get the same batch, and one rank gets that batch twice: means and variances agree, and losses must
agree up to rounding. Runs named "different" give the ranks different batches, and compare the two programs on two ranks.
Rounding errors grow in training. The controls show how fast: the same run, with initial weights changed by 2^-23 of their values, one unit in the
last place.
"""
import argparse
import functools
import io
import json
import logging
import os
import pathlib
import random
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import zlib

import numpy as np

COMMIT, PROGRAMS = "7fadd420", ("recognition/arcface_mxnet", "recognition/partial_fc/mxnet")
CLASSES, BATCH, ULP = 64, 4, 2.0 ** -23
CONFIG = f"""
import os
network.r18 = edict(net_name='fresnet', num_layers=18, net_output='FC')
dataset.faces = edict(dataset='faces', dataset_path=os.environ['FACES'] + '/' + os.environ.get('RANK', '0'), num_classes={CLASSES},
                      image_shape=(int(os.environ['SIZE']), int(os.environ['SIZE']), 3), val_targets=[])
loss.cosface.loss_m3 = 0.4  # as in partial_fc
config.max_steps = int(os.environ['STEPS'])
"""
MXBOARD = """
class SummaryWriter:
    def __init__(self, logdir=None, verbose=True):
        pass

    def add_scalar(self, tag, value, global_step):
        print(f'{tag}: step {global_step}: {value:.9g}', flush=True)

    def flush(self):
        pass
"""
# By name: program, images, ranks, arguments or settings, the relative change of initial weights.
WHOLE, SPLIT = PROGRAMS[0] + "/train.py", PROGRAMS[1] + "/train_memory.py"
_ARGUMENTS = "--network r18 --loss cosface --dataset faces --frequent 1 --ckpt 0 --verbose 1000000"
_SPLIT_ARGUMENTS = "--network r50 --loss cosface --dataset webface"
_TWO_RANKS = f"{_ARGUMENTS} --kvstore dist_sync --per-batch-size {BATCH} --wd 0.001"
_ONE_RANK = f"{_ARGUMENTS} --per-batch-size {2 * BATCH} --wd 0.0005"
RUNS = {
    "whole-1": (WHOLE, "twice", 1, _ONE_RANK, 0),
    "whole-1-control": (WHOLE, "twice", 1, _ONE_RANK, ULP),
    "whole-2": (WHOLE, "same", 2, _TWO_RANKS, 0),
    "split-1": (SPLIT, "twice", 1, 2 * BATCH, 0),
    "split-1-control": (SPLIT, "twice", 1, 2 * BATCH, ULP),
    "split-2": (SPLIT, "same", 2, BATCH, 0),
    "whole-2-different": (WHOLE, "different", 2, _TWO_RANKS, 0),
    "whole-2-different-control": (WHOLE, "different", 2, _TWO_RANKS, ULP),
    "split-2-different": (SPLIT, "different", 2, BATCH, 0),
    "split-2-different-control": (SPLIT, "different", 2, BATCH, ULP),
}
PAIRS = [("whole-1", "whole-2"), ("whole-1", "whole-1-control"), ("split-1", "split-2"), ("split-1", "split-1-control"), ("whole-1", "split-1"),
         ("whole-2-different", "split-2-different"), ("whole-2-different", "whole-2-different-control"),
         ("split-2-different", "split-2-different-control")]


def extract(git, folder):
    """Write the programs' files, `config.py` as their README wants it, and the packages that are missing."""
    archive = subprocess.run(["git", "--git-dir", git, "archive", COMMIT, *PROGRAMS], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    sample = folder / PROGRAMS[0] / "sample_config.py"
    sample.with_name("config.py").write_text(sample.read_text() + CONFIG)
    (folder / "packages/horovod").mkdir(parents=True)
    (folder / "packages/horovod/__init__.py").write_text("")
    (folder / "packages/horovod/mxnet.py").write_text("from mxnet.contrib.horovod import *\n")
    (folder / "packages/mxboard.py").write_text(MXBOARD)


def write_faces(folder, order, size):
    """Write `train.rec` and `train.idx` with the images of these numbers, in this order: smooth patterns, of a few identities, with noise."""
    import cv2

    from mxnet import recordio
    folder.mkdir(parents=True)
    record = recordio.MXIndexedRecordIO(str(folder / "train.idx"), str(folder / "train.rec"), "w")
    first = len(order) + 1  # one identity holds all images: the programs take labels from these
    record.write_idx(0, recordio.pack(recordio.IRHeader(2, np.array([first, first + 1], "float32"), 0, 0), b""))
    for key, number in enumerate(order, 1):
        label = number * 7 % CLASSES
        pattern = cv2.resize(np.random.RandomState(label).randint(0, 256, (6, 6, 3)).astype("uint8"), (size, size))
        image = np.clip(pattern + np.random.RandomState(1000 + number).normal(0, 20, pattern.shape), 0, 255).astype("uint8")
        record.write_idx(key, recordio.pack_img(recordio.IRHeader(0, float(label), key, 0), image, img_fmt=".png"))
    record.write_idx(first, recordio.pack(recordio.IRHeader(2, np.array([1, first], "float32"), first, 0), b""))
    record.close()


def write_data(folder, steps, size):
    """Write what each run reads: `train.py` from a folder for each rank, `train_memory.py` from one file, of which ranks read equal parts."""
    count = (steps + 4) * BATCH
    one, other = list(range(count)), list(range(count, 2 * count))
    twice = [number for start in range(0, count, BATCH) for number in 2 * one[start:start + BATCH]]
    for images, ranks, together in (("twice", [twice], twice), ("same", [one, one], one + one), ("different", [one, other], one + other)):
        for rank, order in enumerate(ranks):
            write_faces(folder / images / str(rank), order, size)
        write_faces(folder / images / "together", together, size)


def initial(name, shape, change, first_row=0):
    """Return a weight's initial values, which depend on its name; those of classes on the class, too.

    `change` is the relative difference of a control's values.
    """
    rows = CLASSES + 1 if name.startswith("fc7") else shape[0]
    numbers = np.random.RandomState(zlib.crc32(("fc7" if name.startswith("fc7") else name).encode()))
    scale = 0.01 if name.startswith("fc7") else (2 / np.prod(shape[1:])) ** 0.5
    values = numbers.standard_normal((rows, *shape[1:])) * scale
    values = values.astype("float32") * (1 + change * numbers.choice([-1, 1], values.shape))
    return values[first_row:first_row + shape[0]].astype("float32")


def start(program, images, batch, rate, change):
    """Run a program in this process, with fixed initial weights and order of images; `batch` is that of a rank of `train_memory.py`."""
    import mxnet as mx
    rank = int(os.environ.get("RANK", 0))
    logging.basicConfig(level=logging.INFO, format=f"rank {rank}: %(message)s")
    mx.gpu, random.shuffle, random.randint = mx.cpu, lambda values: None, lambda low, high: low
    init_params = mx.mod.Module.init_params

    @functools.wraps(init_params)
    def fixed(self, initializer=None, *args, **kwargs):
        init_params(self, initializer, *args, **kwargs)
        if initializer is not None:
            arg_params, aux_params = self.get_params()
            self.set_params({name: mx.nd.array(initial(name, value.shape, change)) if name.endswith("_weight") else value
                             for name, value in arg_params.items()}, aux_params)

    mx.mod.Module.init_params = fixed
    sys.path[0] = os.path.dirname(program)
    if program.endswith("train_memory.py"):
        import default
        import memory_bank
        generate, create = default.generate_config, memory_bank.MemoryBank.__init__

        def configure(*args):
            generate(*args)
            default.config.update(batch_size=batch, num_layers=18, num_classes=CLASSES, frequent=1, rec=f"{images}/together/train.rec",
                                  backbone_lr=rate, memory_bank_lr=rate, image_size=int(os.environ["SIZE"]), max_update=int(os.environ["STEPS"]))

        def fixed_bank(self, *args, **kwargs):
            create(self, *args, **kwargs)
            self.weight[:] = initial("fc7", self.weight.shape, change, self.rank * self.num_local)

        default.generate_config, memory_bank.MemoryBank.__init__ = configure, fixed_bank
    runpy.run_path(program, run_name="__main__")


def losses(output, ranks):
    """Return the losses of a run's steps from the second on, which stands for the first two: the means over the ranks."""
    together = [float(value) for value in re.findall(r"^loss: step \d+: (\S+)", output, re.M)]
    if together:
        return np.array(together)
    by_rank = [[float(value) for value in re.findall(rf"^rank {rank}: .*lossvalue=(\S+)", output, re.M)] for rank in range(ranks)]
    return np.mean(by_rank, axis=0)


def run(folder, name, args):
    """Return the losses of a run; its output is in FOLDER/NAME.log.

    Raises
    ------
    SystemExit
        If the program fails.
    """
    program, images, ranks, arguments, change = RUNS[name]
    own = json.dumps([str(folder / program), str(folder / images), arguments if isinstance(arguments, int) else 0, args.lr, change])
    # `train.py` adds the gradients of ranks up: half the learning rate and twice the weight decay make its steps those of one rank.
    words = [*arguments.split(), "--lr", str(args.lr / ranks)] if isinstance(arguments, str) else _SPLIT_ARGUMENTS.split()
    command = [sys.executable, "-u", __file__, "--start", own, *words, "--models-root", str(folder / "models" / name)]
    if ranks > 1:
        command = [sys.executable, "-m", "mxnet.tools.launch", "-n", str(ranks), "-s", "0", "--launcher", "local", *command]
    path = os.pathsep.join([str(folder / "packages"), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", "FACES": str(folder / images), "STEPS": str(args.steps),
           "SIZE": str(args.size)}
    log = folder / f"{name}.log"
    print(name, "...", flush=True)
    with log.open("w") as output:
        status = subprocess.run(command, cwd=(folder / program).parent, env=env, stdout=output, stderr=subprocess.STDOUT).returncode
    if status:
        raise SystemExit(f"{name} failed with status {status}; the end of {log}:\n" + log.read_text()[-2000:])
    return losses(log.read_text(), ranks)


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["--start"]:
        sys.argv = [json.loads(argv[1])[0], *argv[2:]]
        return start(*json.loads(argv[1]))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("git", help="a git directory of deepinsight/insightface")
    parser.add_argument("--folder", type=pathlib.Path, help="an empty folder for programs, data and logs (default: a temporary one)")
    parser.add_argument("--steps", type=int, default=20, help="steps of each run (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.1, help="the learning rate (default: %(default)s, that of both programs)")
    parser.add_argument("--size", type=int, default=112, help="height and width of images (default: %(default)s)")
    parser.add_argument("--only", default="", help="runs whose names start with one of these, separated by commas")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="remex-insightface-") as temporary:
        folder = args.folder or pathlib.Path(temporary)
        extract(args.git, folder)
        write_data(folder, args.steps, args.size)
        results = {name: run(folder, name, args) for name in RUNS if name.startswith(tuple(args.only.split(",")))}
    for name, values in results.items():
        print(f"{name:26}", *(f"{value:.5g}" for value in values))
    print("Relative difference of losses, step by step:")
    for a, b in PAIRS:
        if {a, b} <= set(results):
            print(f"{a} / {b}:", *(f"{difference:.1e}" for difference in abs(results[a] - results[b]) / abs(results[a])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
