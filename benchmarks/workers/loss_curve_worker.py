"""Train under Remex or under MXNet 1.9.1, and return the losses. usage: loss_curve_worker.py FOLDER"""
import mxnet as mx
from harness import train_models, worker_protocol, workloads


class LossCurves(worker_protocol.Worker):
    """Answers requests for the losses of a training."""

    def do_curve(self, network, count, style, optimizer, steps, ulp_seed):
        """Return the losses of so many steps, each on another batch."""
        step = train_models.stepper(network, count, style, optimizer, ulp_seed)
        return {"losses": [float(step(*map(mx.nd.array, workloads.batch(network, count, seed)))) for seed in range(steps)]}


if __name__ == "__main__":
    LossCurves(None).serve()
