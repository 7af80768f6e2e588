"""What a network's step consists of: the time of each kind of operator, by the profiler, in Remex and in MXNet 1.9.1.

    python benchmarks/anatomy.py --mxnet-python /opt/oracle/bin/python --networks resnet50,mobilenet --batches 8
    python benchmarks/anatomy.py --networks mobilenet --batches 1 --scoring

Milliseconds of a step, medians of rounds in turns. MXNet runs its operators one by one for that (no bulks). "(the step)" is one without a profiler.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

import peers
import processes
import rows

CALLS = 5  # in a round


def measured(name, batch, scores, seconds, folder):
    """[{operator: ms of one step}, ms of one step without a profiler]; runs in either Python."""
    import time

    import inputs
    import networks
    import numpy as np

    import mxnet as mx
    from mxnet import autograd, gluon
    net = networks.build(name)
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    classes = gluon.loss.SoftmaxCrossEntropyLoss()
    classes.hybridize(static_alloc=True, static_shape=True)
    x, label = mx.nd.array(inputs.example(name, batch)), mx.nd.array(np.arange(batch) % 10)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9})

    def step():
        if not scores:
            with autograd.record():
                loss = classes(net(x), label)
            loss.backward()
            trainer.step(batch)
        else:
            net(x).wait_to_read()
        mx.nd.waitall()

    began = time.perf_counter()
    while time.perf_counter() - began < seconds:  # until all races are over
        step()
    began = time.perf_counter()
    for _ in range(CALLS):
        step()
    plain = (time.perf_counter() - began) / CALLS * 1e3
    # MXNet replaces the file when it ends, be it a device: /dev/null was a file of 4 MB then.
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=os.path.join(folder, "profile.json"))
    mx.profiler.set_state("run")
    for _ in range(CALLS):
        step()
    mx.profiler.set_state("stop")
    told = json.loads(mx.profiler.dumps(format="json"))
    return [{key: value["Total"] / CALLS for key, value in told["Time"].get("operator", {}).items()}, plain]


def one(python, name, batch, scores, seconds):
    """`measured` in a process of its own."""
    alone = {} if python == sys.executable else {"MXNET_EXEC_BULK_EXEC_TRAIN": "0", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"}
    env = {**processes.environment(python), **alone}
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-W", "ignore", __file__, "--one", folder, "--networks", name, "--batches", str(batch), "--seconds", str(seconds)]
        done = subprocess.run(command + ["--scoring"] * scores, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    peers.add_arguments(parser)
    parser.set_defaults(rounds=3)
    parser.add_argument("--networks", default="resnet50", help=f"of {', '.join(rows.NETWORKS)}")
    parser.add_argument("--batches", default="8")
    parser.add_argument("--scoring", action="store_true", help="calls without gradients, instead of training")
    parser.add_argument("--seconds", type=float, default=10, help="of steps before the profiler starts")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the folder for its files
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measured(chosen.networks, int(chosen.batches), chosen.scoring, chosen.seconds, chosen.one)))
        return
    pythons = {"Remex": sys.executable, **({"MXNet": chosen.mxnet_python} if chosen.mxnet_python else {})}
    print(peers.versions(chosen.mxnet_python))
    for name in chosen.networks.split(","):
        for batch in chosen.batches.split(","):
            found = {who: collections.defaultdict(list) for who in pythons}
            for _ in range(chosen.rounds):
                for who, python in pythons.items():
                    operators, plain = one(python, name, batch, chosen.scoring, chosen.seconds)
                    for operator, value in {**operators, "(all, profiled)": sum(operators.values()), "(the step)": plain}.items():
                        found[who][operator].append(value)
            print(f"\n{name}, batch {batch}, {'scoring' if chosen.scoring else 'training'}")
            for who, operators in found.items():
                ordered = sorted(((statistics.median(values), operator) for operator, values in operators.items()), reverse=True)
                print(f"{who}: " + ", ".join(f"{operator} {value:.1f}" for value, operator in ordered if value >= ordered[0][0] / 200), flush=True)


if __name__ == "__main__":
    main()
