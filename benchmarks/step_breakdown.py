"""Break a network's step down into the time of each kind of operator, by the profiler, in Remex and in MXNet 1.9.1.

    python benchmarks/step_breakdown.py --mxnet-python /opt/oracle/bin/python --networks resnet50,mobilenet --batches 8
    python benchmarks/step_breakdown.py --networks mobilenet --batches 1 --scoring

The output is in milliseconds of a step, medians of interleaved rounds. MXNet runs its operators one by one (no bulking). "(the step)" is a step
without the profiler.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

from harness import common, tasks, worker_processes

CALLS = 5  # in a round


def measure(name, batch, scores, seconds, folder):
    """Return [{operator: ms of one step}, ms of one step without the profiler]; runs in either Python."""
    import time

    import numpy as np

    import mxnet as mx
    from harness import inputs, networks
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

    start = time.perf_counter()
    while time.perf_counter() - start < seconds:  # until all kernels and backends are args
        step()
    start = time.perf_counter()
    for _ in range(CALLS):
        step()
    plain = (time.perf_counter() - start) / CALLS * 1e3
    # MXNet replaces the file when it ends, even a device such as /dev/null.
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=os.path.join(folder, "profile.json"))
    mx.profiler.set_state("run")
    for _ in range(CALLS):
        step()
    mx.profiler.set_state("stop")
    stats = json.loads(mx.profiler.dumps(format="json"))
    return [{key: value["Total"] / CALLS for key, value in stats["Time"].get("operator", {}).items()}, plain]


def run_in_process(python, name, batch, scores, seconds):
    """Run `measure` in a new process; return its result."""
    unbulked = {} if python == sys.executable else {"MXNET_EXEC_BULK_EXEC_TRAIN": "0", "MXNET_EXEC_BULK_EXEC_INFERENCE": "0"}
    env = {**worker_processes.environment(python), **unbulked}
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-W", "ignore", __file__, "--one", folder, "--networks", name, "--batches", str(batch), "--seconds", str(seconds)]
        process = subprocess.run(command + ["--scoring"] * scores, capture_output=True, text=True, env=env)
    if process.returncode:
        raise SystemExit(process.stderr[-2000:])
    return json.loads(process.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    common.add_arguments(parser)
    parser.set_defaults(rounds=3)
    parser.add_argument("--networks", default="resnet50", help=f"of {', '.join(tasks.NETWORKS)}")
    parser.add_argument("--batches", default="8", help="by comma")
    parser.add_argument("--scoring", action="store_true", help="calls without gradients, instead of training")
    parser.add_argument("--seconds", type=float, default=10, help="of steps before the profiler starts")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the folder for the profile
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.networks, int(args.batches), args.scoring, args.seconds, args.one)))
        return
    pythons = {"Remex": sys.executable, **({"MXNet": args.mxnet_python} if args.mxnet_python else {})}
    print(common.versions(args.mxnet_python))
    for name in args.networks.split(","):
        for batch in args.batches.split(","):
            samples = {library: collections.defaultdict(list) for library in pythons}
            for _ in range(args.rounds):
                for library, python in pythons.items():
                    operators, plain = run_in_process(python, name, batch, args.scoring, args.seconds)
                    for operator, value in {**operators, "(all, profiled)": sum(operators.values()), "(the step)": plain}.items():
                        samples[library][operator].append(value)
            print(f"\n{name}, batch {batch}, {'scoring' if args.scoring else 'training'}")
            for library, operators in samples.items():
                ordered = sorted(((statistics.median(values), operator) for operator, values in operators.items()), reverse=True)
                texts = (f"{operator} {value:.1f}" for value, operator in ordered if value >= ordered[0][0] / 200)
                print(f"{library}: {', '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
