"""Test that Winograd and other fast convolutions do not affect convergence: ResNet-18 on hand-written digits, compared with direct convolutions.

    python benchmarks/winograd_convergence.py

Every seed is trained twice, from the same weights on the same batches. The table, `benchmarks/results/winograd_convergence.md`, compares the
difference between the two algorithms with the standard deviation over the seeds. Needs scikit-learn, which has the digits, and no network. Trainings
that are already in `winograd_convergence.json` are not repeated, so that an interrupted run can be continued; delete the file to start again.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import numpy as np

from harness import common

FASTEST = "the fastest"
ALGORITHMS = {"direct": "exact", FASTEST: ""}  # with the value of MXNET_CONVOLUTION_ALGORITHM
TRAINING_IMAGES, BATCH = 1408, 32


def train(seed, epochs):
    """Return {"losses": of each epoch, "accuracy": on the test images, "convolutions": the lines of explain() about them}."""
    sys.path[:0] = [os.path.join(common.ROOT, "src"), os.path.join(common.ROOT, "examples")]
    import quantize  # the example that loads the digits

    import mxnet as mx
    from mxnet import autograd, gluon
    mx.random.seed(seed)
    images, labels = quantize.digits()
    images = mx.nd.tile(images, (1, 3, 1, 1))
    net = gluon.model_zoo.vision.ResNetV1(gluon.model_zoo.vision.BasicBlockV1, [2, 2, 2, 2], [64, 64, 128, 256, 512], classes=10, thumbnail=True)
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.02, "momentum": 0.9})
    loss, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for epoch in range(epochs):
        order, total = np.random.RandomState(1000 * seed + epoch).permutation(TRAINING_IMAGES), 0.0
        for first in range(0, TRAINING_IMAGES, BATCH):
            indices = mx.nd.array(order[first:first + BATCH])
            with autograd.record():
                error = loss(net(mx.nd.take(images, indices)), mx.nd.take(labels, indices))
            error.backward()
            trainer.step(BATCH)
            total += float(error.sum().asscalar())
        losses.append(total / TRAINING_IMAGES)
    explained = [line.strip() for line in net.explain().splitlines() if line.strip().startswith("convolutions, ")]
    accuracy = (net(images[TRAINING_IMAGES:]).argmax(axis=1) == labels[TRAINING_IMAGES:]).mean().asscalar()
    return {"losses": losses, "accuracy": float(accuracy), "convolutions": explained}


def train_in_process(seed, algorithm, epochs):
    """Run `train` in a new process, because the setting is read once; return its result."""
    environment = {**os.environ, "MXNET_CONVOLUTION_ALGORITHM": ALGORITHMS[algorithm]}
    if not ALGORITHMS[algorithm]:
        del environment["MXNET_CONVOLUTION_ALGORITHM"]
    process = subprocess.run([sys.executable, "-W", "ignore", __file__, "--one", str(seed), "--epochs", str(epochs)], capture_output=True, text=True,
                          env=environment)
    if process.returncode:
        raise SystemExit(process.stderr[-2000:])
    return json.loads(process.stdout.strip().splitlines()[-1])


def page(runs, epochs):
    """Return the text of winograd_convergence.md for {seed: {algorithm: the result of `train`}}."""
    results = {algorithm: [by_algorithm[algorithm] for by_algorithm in runs.values()] for algorithm in ALGORITHMS}
    machines = dict.fromkeys(result["machine"] for trainings in results.values() for result in trainings)
    return "\n".join(["# Convergence of ResNet-18 with direct convolutions and with the fastest", "",
                      f"`python benchmarks/winograd_convergence.py --seeds {len(runs)}`", "",
                      f"{TRAINING_IMAGES} images of hand-written digits, {epochs} epochs, batch {BATCH}, {len(runs)} seeds. `explain()` prints:", "",
                      *(f"- {line}" for line in results[FASTEST][0]["convolutions"]), "",
                      *table(results, epochs), "", *machines, ""])


def table(results, epochs):
    """Return the Markdown lines of {algorithm: [the result of `train` for each seed]}."""
    direct, other = (results[algorithm] for algorithm in ALGORITHMS)
    lines = ["| mean over the seeds | " + " | ".join(ALGORITHMS) + " | difference | standard deviation over the seeds |", "|---|---|---|---|---|"]
    measures = [(f"loss, epoch {i + 1}", lambda r, i=i: r["losses"][i]) for i in range(epochs)] + [("accuracy", lambda r: r["accuracy"])]
    worst = 0.0
    for name, measure in measures:
        a, b = [measure(r) for r in direct], [measure(r) for r in other]
        difference, deviation = abs(statistics.mean(a) - statistics.mean(b)), statistics.stdev(a)
        worst = max(worst, difference / deviation if deviation else float(difference > 0))
        lines.append(f"| {name} | {statistics.mean(a):.4f} | {statistics.mean(b):.4f} | {difference:.1e} | {deviation:.1e} |")
    return [*lines, "", f"The algorithms differ by at most {worst:.2f} standard deviations of the seeds."]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="trainings of each algorithm")
    parser.add_argument("--epochs", type=int, default=4, help="of each training")
    parser.add_argument("--one", type=int, help="train with this seed, in this process")
    parser.add_argument("--results", default=common.RESULTS, help="the folder for the results")
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(train(args.one, args.epochs)))
        return
    path = os.path.join(args.results, "winograd_convergence.json")
    runs = {}
    if os.path.exists(path):
        with open(path) as file:
            runs = json.load(file)
    for seed in map(str, range(args.seeds)):
        for algorithm in ALGORITHMS:
            stored = runs.setdefault(seed, {})
            if len(stored.get(algorithm, {}).get("losses", [])) != args.epochs:
                stored[algorithm] = {**train_in_process(int(seed), algorithm, args.epochs), "machine": common.versions("")}
                print(seed, algorithm, json.dumps(stored[algorithm]), flush=True)
                with open(f"{path}.part", "w") as file:
                    json.dump(runs, file, indent=1)
                    file.write("\n")
                os.replace(f"{path}.part", path)  # an interrupted run leaves the old file
    with open(os.path.join(args.results, "winograd_convergence.md"), "w") as file:
        file.write(page({seed: runs[seed] for seed in map(str, range(args.seeds))}, args.epochs))


if __name__ == "__main__":
    main()
