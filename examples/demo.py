"""`make demo`: from image files to a trained, scored and profiled network, twice.

Packs hand-written digits into record files, trains LeNet on them with Module and with Gluon, reloads the checkpoint and scores it,
measures the throughput of two networks, and profiles a few training steps. Everything is left in ``demo_output/``.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(HERE), "demo_output")
CLASSIFICATION = os.path.join(HERE, "image_classification")
sys.path[:0] = [HERE, os.path.join(HERE, "gluon"), CLASSIFICATION]


@contextlib.contextmanager
def step(title):
    """Print the title of a step and its time."""
    print(f"\n== {title}", flush=True)
    start = time.perf_counter()
    yield
    print(f"   ({time.perf_counter() - start:.1f} s)", flush=True)


def program(*arguments):
    """Run one of the programs as a user would."""
    shown = " ".join(os.path.relpath(a) if os.path.isabs(a) else a for a in arguments)
    print(f"$ python {shown}", flush=True)
    subprocess.run([sys.executable, *arguments], check=True)


def pack(prefix):
    """Pack image files into training and validation record files; return their paths."""
    import digits
    images = os.path.join(OUT, "images")
    digits.write_images(images)
    tool = ["-m", "mxnet.tools.im2rec"]
    program(*tool, prefix, images, "--list", "--recursive", "--train-ratio", "0.8")
    program(*tool, prefix, images, "--color", "0", "--encoding", ".png", "--num-thread", "2")
    return f"{prefix}_train.rec", f"{prefix}_val.rec"


def module_accuracy(model, epoch, validation):
    """Return the accuracy of a checkpoint, which is loaded from its files."""
    from score import score

    import mxnet as mx
    metric = mx.metric.create("acc")
    score(model, validation, [metric], "", 64, image_shape="1,28,28", rgb_mean="0,0,0", rgb_std="255,255,255", load_epoch=epoch)
    return metric.get()[1]


def profile(path):
    """Profile three training steps of a network; returns the table."""
    from train_digits import lenet

    import mxnet as mx
    from mxnet import autograd, gluon, profiler
    net = lenet(10)
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    data, label = mx.nd.random.uniform(shape=(64, 1, 28, 28)), mx.nd.zeros((64,))

    def iteration():
        with autograd.record():
            loss = loss_function(net(data), label)
        loss.backward()
        trainer.step(64)

    iteration()  # the first one infers shapes and makes the parameters
    profiler.set_config(profile_all=True, aggregate_stats=True, filename=path)
    profiler.set_state("run")
    for _ in range(3):
        iteration()
    mx.nd.waitall()
    profiler.dump()
    return profiler.dumps()


def main():
    """Run all steps; return 1 if an accuracy is below 0.97, else 0."""
    import train_digits
    os.makedirs(OUT, exist_ok=True)
    epochs = 14
    with step("packing image files into record files"):
        training, validation = pack(os.path.join(OUT, "digits"))
    model = os.path.join(OUT, "lenet")
    with step("training LeNet with Module"):
        program(os.path.join(CLASSIFICATION, "train_mnist.py"), "--network", "lenet", "--data-train", training, "--data-val", validation,
                "--image-shape", "1,28,28", "--num-classes", "10", "--num-examples", "1437", "--batch-size", "32", "--num-epochs", str(epochs),
                "--lr", "0.05", "--lr-step-epochs", "10", "--initializer", "xavier", "--disp-batches", "20", "--model-prefix", model)
    with step("reloading the checkpoint and scoring it"):
        by_module = module_accuracy(model, epochs, validation)
        print(f"   Module validation accuracy: {by_module:.4f}")
    with step("training LeNet with Gluon"):
        import logging
        logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
        net, by_gluon = train_digits.train(training, validation, batch_size=32, num_epochs=epochs)
        net.export(os.path.join(OUT, "lenet-gluon"))
        print(f"   Gluon validation accuracy: {by_gluon:.4f}")
    with step("measuring throughput"):
        program(os.path.join(CLASSIFICATION, "benchmark_score.py"), "--network", "resnet-18,mobilenet", "--batch-size", "1,32", "--num-batches", "3")
    with step("profiling three training steps"):
        trace = os.path.join(OUT, "profile.json")
        print(profile(trace))
        print(f"   {len(json.load(open(trace))['traceEvents'])} events in {os.path.relpath(trace)}: open it in chrome://tracing or https://ui.perfetto.dev")
    print(f"\nModule {by_module:.4f}, Gluon {by_gluon:.4f} validation accuracy")
    return 0 if min(by_module, by_gluon) >= 0.97 else 1


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sys.exit(main())
