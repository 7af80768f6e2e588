"""Whether a network learns with the fastest convolutions (Winograd's and others) what it learns with direct ones: ResNet-18 on hand-written digits.

    python benchmarks/algorithms.py

Every seed is trained twice, from the same weights on the same batches. The table, `benchmarks/results/algorithms.md`, sets how far the two ways are
apart beside how far the seeds are. Needs scikit-learn, which carries the digits, and no network. What `algorithms.json` has already is not trained
again, so that a run can be cut off and taken up again; delete it to begin anew.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import numpy as np
import peers

FASTEST = "the fastest"
WAYS = {"direct": "exact", FASTEST: ""}
TRAINED, BATCH = 1408, 32


def train(seed, epochs):
    """{"losses": of each epoch, "accuracy": of the images that were not trained on, "convolutions": the lines of explain() about them}."""
    sys.path[:0] = [os.path.join(peers.ROOT, "src"), os.path.join(peers.ROOT, "examples")]
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
        order, total = np.random.RandomState(1000 * seed + epoch).permutation(TRAINED), 0.0
        for first in range(0, TRAINED, BATCH):
            chosen = mx.nd.array(order[first:first + BATCH])
            with autograd.record():
                error = loss(net(mx.nd.take(images, chosen)), mx.nd.take(labels, chosen))
            error.backward()
            trainer.step(BATCH)
            total += float(error.sum().asscalar())
        losses.append(total / TRAINED)
    told = [line.strip() for line in net.explain().splitlines() if line.strip().startswith("convolutions, ")]
    right = (net(images[TRAINED:]).argmax(axis=1) == labels[TRAINED:]).mean().asscalar()
    return {"losses": losses, "accuracy": float(right), "convolutions": told}


def one(seed, way, epochs):
    """`train` in a process of its own, as the setting is read once."""
    environment = {**os.environ, "MXNET_CONVOLUTION_ALGORITHM": WAYS[way]}
    if not WAYS[way]:
        del environment["MXNET_CONVOLUTION_ALGORITHM"]
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--one", str(seed), "--epochs", str(epochs)], capture_output=True, text=True,
                          env=environment)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def page(runs, epochs):
    """The text of algorithms.md for {seed: {way: what `train` returned}}."""
    results = {way: [ways[way] for ways in runs.values()] for way in WAYS}
    machines = dict.fromkeys(result["machine"] for ways in results.values() for result in ways)
    return "\n".join(["# ResNet-18 with direct convolutions and with the fastest", "", f"`python benchmarks/algorithms.py --seeds {len(runs)}`", "",
                      f"{TRAINED} images of hand-written digits, {epochs} epochs, batch {BATCH}, {len(runs)} seeds. explain() says:", "",
                      *(f"- {line}" for line in results[FASTEST][0]["convolutions"]), "",
                      *table(results, epochs), "", *machines, ""])


def table(results, epochs):
    """The Markdown lines of {way: [what `train` returned for each seed]}."""
    direct, other = (results[way] for way in WAYS)
    lines = ["| | " + " | ".join(WAYS) + " | apart, mean over seeds | spread of the seeds |", "|---|---|---|---|---|"]
    measures = [(f"loss, epoch {i + 1}", lambda r, i=i: r["losses"][i]) for i in range(epochs)] + [("accuracy", lambda r: r["accuracy"])]
    worst = 0.0
    for name, measure in measures:
        a, b = [measure(r) for r in direct], [measure(r) for r in other]
        apart, spread = abs(statistics.mean(a) - statistics.mean(b)), statistics.stdev(a)
        worst = max(worst, apart / spread if spread else float(apart > 0))
        lines.append(f"| {name} | {statistics.mean(a):.4f} | {statistics.mean(b):.4f} | {apart:.1e} | {spread:.1e} |")
    return [*lines, "", f"At most {worst:.2f} of the seeds' spread (one standard deviation) lies between the two ways."]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--one", type=int, help="train with this seed, in this process")
    parser.add_argument("--results", default=os.path.join(peers.ROOT, "benchmarks", "results"))
    chosen = parser.parse_args()
    if chosen.one is not None:
        print(json.dumps(train(chosen.one, chosen.epochs)))
        return
    path = os.path.join(chosen.results, "algorithms.json")
    kept = {}
    if os.path.exists(path):
        with open(path) as file:
            kept = json.load(file)
    for seed in map(str, range(chosen.seeds)):
        for way in WAYS:
            stored = kept.setdefault(seed, {})
            if len(stored.get(way, {}).get("losses", [])) != chosen.epochs:
                stored[way] = {**one(int(seed), way, chosen.epochs), "machine": peers.versions("")}
                print(seed, way, json.dumps(stored[way]), flush=True)
                with open(f"{path}.part", "w") as file:
                    json.dump(kept, file, indent=1)
                    file.write("\n")
                os.replace(f"{path}.part", path)  # a run that is cut off while it writes leaves what stood
    with open(os.path.join(chosen.results, "algorithms.md"), "w") as file:
        file.write(page({seed: kept[seed] for seed in map(str, range(chosen.seeds))}, chosen.epochs))


if __name__ == "__main__":
    main()
