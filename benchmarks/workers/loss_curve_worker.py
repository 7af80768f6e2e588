"""Training under Remex or under MXNet 1.9.1, for its losses. usage: curves_worker.py FOLDER"""
import learners
import lessons
import protocol

import mxnet as mx


class Curves(protocol.Worker):
    def do_curve(self, network, count, style, optimizer, steps, nudges):
        """The losses of so many steps, each on a batch of its own."""
        step = learners.stepper(network, count, style, optimizer, nudges)
        return {"losses": [float(step(*map(mx.nd.array, lessons.batch(network, count, seed)))) for seed in range(steps)]}


if __name__ == "__main__":
    Curves(None).serve()
