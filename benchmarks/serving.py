"""Measure the model server under load, and test it with malformed requests and while it is stopped and reloaded.

    python benchmarks/serving.py --load                        # five minutes
    python benchmarks/serving.py --malformed 200000            # fifteen minutes
    python benchmarks/serving.py --terms 1000 --reloads 1000   # five and fifteen minutes

Each part replaces its rows of benchmarks/results/serving.json, from which serving.md is written.

Load: 1, 16 and 64 clients in a separate process send binary tensors over loopback. The baselines are the same network in a loop without a server, in
batches of the size that the server chose (of one row for one client), and a server that runs one forward pass for each request, on Starlette, which
FastAPI is based on. Clients and servers share the machine's cores and take turns; the table has medians.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from harness import common

sys.path[:0] = [os.path.join(common.ROOT, folder) for folder in ("src", "tests")]
HERE = pathlib.Path(__file__).parent
NETWORKS = {"mlp": (784,), "resnet50": (3, 224, 224)}
CLIENTS = (1, 16, 64)
PATIENT = ("--timeout", "1800")  # on a busy machine, a request may wait long for a processor without being lost
LOOP = """
import json, sys, time
import numpy as np
import mxnet as mx
prefix, sizes, batch, seconds = sys.argv[1], tuple(map(int, sys.argv[2].split(','))), int(sys.argv[3]), float(sys.argv[4])
net = mx.gluon.SymbolBlock.imports(prefix + '-symbol.json', ['data'], prefix + '-0000.params')
net.hybridize(static_alloc=True, static_shape=True)
data = np.random.rand(batch, *sizes).astype(np.float32)
for _ in range(5):
    net(mx.nd.array(data)).asnumpy()
rows, start = 0, time.perf_counter()
while time.perf_counter() - start < seconds:
    net(mx.nd.array(data)).asnumpy()
    rows += batch
print(rows / (time.perf_counter() - start))
"""


def save(name, folder):
    """Export a network; return the prefix of its files."""
    import mxnet as mx
    from mxnet.gluon import nn
    if name == "mlp":
        net = nn.HybridSequential()
        net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    else:
        net = mx.gluon.model_zoo.vision.resnet50_v1()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.zeros((1, *NETWORKS[name])))
    net.export(f"{folder}/{name}")
    return f"{folder}/{name}"


def environment():
    """Return the environment of servers and loops, with their default number of threads."""
    return {**{key: value for key, value in os.environ.items()}, "PYTHONPATH": os.path.join(common.ROOT, "src")}


def clients(port, path, count, seconds, request):
    """Return throughput and latencies of so many clients."""
    header_length, file = request
    command = [sys.executable, str(HERE / "workers" / "load_client.py"), str(port), path, str(count), str(seconds), str(header_length), file]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def start_naive_server(prefix, sizes):
    """Start a server that runs one forward pass for each request; return its process and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(HERE / "workers" / "naive_server.py"), prefix, sizes, str(port)], env=environment())
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the naive server does not start")


def load(args):
    """Return the rows of the table, by network and number of clients."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            rows += load_network(args, name, folder)
    return rows


def load_network(args, name, folder):
    """Return the rows of one network: the server, the naive one and a loop take turns."""
    import numpy as np

    import serve_checks
    shape, prefix = NETWORKS[name], save(name, folder)
    sizes = ",".join(map(str, shape))
    headers, body = serve_checks.binary_request(np.random.default_rng(0).random((1, *shape)).astype(np.float32), binary_data_output=True)
    file = pathlib.Path(folder, f"{name}.request")
    file.write_bytes(body)
    request = int(headers["Inference-Header-Content-Length"]), str(file)
    options = ("--input", f"data=-1,{sizes}", "--latency-bound", args.bound, "--no-access-log")
    with serve_checks.Running(prefix, *options) as server:
        curve = next(line for line in server.log if "ready after" in line).partition("batches of ")[2].strip()
        largest = int(curve.split(", ")[-1].split()[0])
        batch_seconds = float(curve.split(", ")[-1].split()[2]) / 1e3
        print(f"{name}: batches of {curve}", flush=True)
        samples = {count: {key: [] for key in ("rate", "p50", "p99", "naive", "naive p99")} for count in CLIENTS}
        loops = {batch: [] for batch in (1, largest)}
        process, port = start_naive_server(prefix, sizes)
        try:
            for number in range(args.rounds):
                for batch, rates in loops.items():
                    rates.append(loop_rate(prefix, sizes, batch, args.seconds))
                for count in CLIENTS:
                    ours = clients(server.port, f"/v2/models/{name}/infer", count, args.seconds, request)
                    other = clients(port, "/infer", count, args.seconds, request)
                    for key, value in zip(samples[count], (ours["rate"], ours["p50"], ours["p99"], other["rate"], other["p99"])):
                        samples[count][key].append(value)
                print(f"{name}: round {number + 1} of {args.rounds}", flush=True)
        finally:
            process.kill()
            process.wait()
    return [{"network": name, "clients": count, "batch": largest, "limit": 1.5 * (batch_seconds + args.bound / 1e3),
             "loop": statistics.median(loops[1 if count == 1 else largest]),
             **{key: statistics.median(values) for key, values in samples[count].items()}}
            for count in CLIENTS]


def loop_rate(prefix, sizes, batch, seconds):
    """Return rows a second of the network in a loop without a server."""
    return float(subprocess.run([sys.executable, "-c", LOOP, prefix, sizes, str(batch), str(seconds)], capture_output=True, text=True, check=True,
                                env=environment()).stdout)


def table(rows):
    """Return the rows as Markdown."""
    lines = ["| network, largest batch | clients | server, requests/s | loop, rows/s | server / loop | naive server, requests/s | server / naive "
             "| p50, ms | p99, ms | p99 limit, ms | naive p99, ms |", "|---|" + "---:|" * 10]
    for row in rows:
        lines.append(f"| {row['network']}, {row['batch']} | {row['clients']} | {row['rate']:.0f} | {row['loop']:.0f} "
                     f"| {row['rate'] / row['loop']:.2f} | {row['naive']:.0f} | {row['rate'] / row['naive']:.2f} "
                     f"| {row['p50'] * 1e3:.1f} | {row['p99'] * 1e3:.1f} | {row['limit'] * 1e3:.1f} | {row['naive p99'] * 1e3:.1f} |")
    return "\n".join(lines)


def send_malformed(count):
    """Send malformed requests from two threads; return the number of answers by status, and the server's memory."""
    import serve_checks
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        serve_checks.save_linear(folder / "linear", 1)
        serve_checks.save_pair(folder / "pair")
        serve_checks.save_colours(folder / "colours")
        inputs = ("--input", "linear:data=-1,4", "--input", "pair:a=-1,3", "--input", "pair:b=-1,1:int32")
        with serve_checks.Running(folder / "linear", folder / "pair", folder / "colours", *inputs, "--no-access-log", *PATIENT) as server:
            statuses, memory = {}, []
            for part in range(0, 20, 2):
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    sent = [pool.submit(serve_checks.fuzz, server.port, part + i, count // 20, statuses) for i in range(2)]
                for future in sent:
                    future.result()
                memory.append(server.memory())
                print(f"{sum(statuses.values())} malformed requests, {memory[-1]:.0f} MiB", flush=True)
            good = {server.request(method, path, body, headers)[0] for method, path, headers, body in serve_checks.seeds()}
            return {"statuses": {str(key): value for key, value in sorted(statuses.items(), key=str)}, "memory": memory, "good": sorted(good),
                    "exit": server.stop()}


def terminate_servers(count, jobs):
    """Stop servers under load, several at a time; return the answered and lost requests, and the exit statuses."""
    import serve_checks
    numbers, started, lock = iter(range(count)), time.perf_counter(), threading.Lock()
    result = {"servers": 0, "answered": 0, "lost": [], "exits": []}

    def run():
        while (i := next_shared(numbers, lock)) is not None:
            answered, lost, status = serve_checks.ended(f"{folder}/net", 0.1 + 0.001 * (i % 100), forks, *PATIENT)
            with lock:
                result["servers"] += 1
                result["answered"] += answered
                result["lost"] += map(str, lost)
                result["exits"] = sorted({*result["exits"], status})
                if result["servers"] % 100 == 0:
                    print(f"{result['servers']} SIGTERMs: {result['answered']} requests answered, {len(result['lost'])} lost, "
                          f"{time.perf_counter() - started:.0f} s", flush=True)

    with tempfile.TemporaryDirectory() as folder, serve_checks.Forks() as forks:
        serve_checks.save_linear(pathlib.Path(folder, "net"), 1)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            running = [pool.submit(run) for _ in range(jobs)]
        for future in running:
            future.result()
    return result


def next_shared(numbers, lock):
    """Return the next number of an iterator that threads share, None at its end."""
    with lock:
        return next(numbers, None)


def reload_model(count):
    """Reload a model under load, by requests and by SIGHUP; return the answered and lost requests, and the server's memory."""
    import serve_checks
    with tempfile.TemporaryDirectory() as folder:
        net = pathlib.Path(folder, "net")
        serve_checks.save_linear(net, 1)
        with serve_checks.Running(net, "--input", "data=-1,4", "--no-access-log", *PATIENT) as server:
            clients, memory = serve_checks.Clients(server.port), []
            for i in range(1, count + 1):
                if i % 2:
                    serve_checks.save_linear(net, i)
                    server.process.send_signal(signal.SIGHUP)
                elif server.json("POST", "/v2/repository/models/net/load")[0] != 200:
                    raise SystemExit("a reload failed")
                server.expect("net, version 1: ready")
                if i % max(1, count // 10) == 0:
                    memory.append(server.memory())
                    print(f"{i} reloads, {memory[-1]:.0f} MiB", flush=True)
            clients.join()
            return {"reloads": count, "answered": clients.answered, "lost": list(map(str, clients.lost)), "memory": memory, "exit": server.stop()}


def megabytes(memory):
    """Return a text about the server's memory after each tenth."""
    return f"{memory[0]:.0f} MiB after a tenth, {memory[-1]:.0f} at the end, {max(memory):.0f} at most"


def robustness_table(results):
    """Return Markdown about all parts but the load."""
    rows = []
    if part := results.get("malformed"):
        wrong = [status for status in part["statuses"] if status != "closed" and not 200 <= int(status) < 500]
        answers = ", ".join(f"{status}: {count}" for status, count in part["statuses"].items())
        flat = part["memory"][-1] - part["memory"][len(part["memory"]) // 2] < 16
        rows.append((f"`--malformed {sum(part['statuses'].values())}`",
                     "only 4xx (2xx where a mutated request is still valid), constant memory, still serving",
                     f"{answers}; {megabytes(part['memory'])}; good requests after that: {part['good']}",
                     not wrong and flat and part["good"] == [200] and part["exit"] == 0, part["where"]))
    if part := results.get("terms"):
        rows.append((f"`--terms {part['servers']}`", "no accepted request lost",
                     f"{part['answered']} requests answered, {len(part['lost'])} lost; exit statuses {part['exits']}",
                     not part["lost"] and part["exits"] == [0], part["where"]))
    if part := results.get("reloads"):
        rows.append((f"`--reloads {part['reloads']}`", "no accepted request lost",
                     f"{part['answered']} requests answered, {len(part['lost'])} lost; {megabytes(part['memory'])}",
                     not part["lost"] and part["exit"] == 0, part["where"]))
    lines = ["| command | goal | measured | reached | where |", "|---|---|---|---|---|"]
    for *texts, reached, where in rows:
        lines.append(f"| {' | '.join([*texts, 'yes' if reached else 'no', where])} |")
    return "\n".join(lines)


def record(output, part, result):
    """Write a part's result to the JSON file, and the Markdown beside it."""
    path, where = pathlib.Path(output).with_suffix(".json"), common.versions(None)
    results = json.loads(path.read_text()) if path.exists() else {}
    results[part] = {**result, "where": where}
    path.write_text(json.dumps(results, indent=1) + "\n")
    text = ["# The model server under load", "`python benchmarks/serving.py`; the newest measurement of each part.", robustness_table(results)]
    if "load" in results:
        text += [f"## Throughput\n\n{results['load']['where']}", table(results["load"]["rows"])]
    path.with_suffix(".md").write_text("\n\n".join(text) + "\n")
    print(text[2] if part != "load" else text[-1])


def main():
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", action="store_true", help="throughput and latency; the default part")
    parser.add_argument("--malformed", type=int, default=0, metavar="N", help="send so many malformed requests")
    parser.add_argument("--terms", type=int, default=0, metavar="N", help="stop so many servers by SIGTERM under load")
    parser.add_argument("--reloads", type=int, default=0, metavar="N", help="reload a model so many times under load")
    parser.add_argument("--jobs", type=int, default=8, help="concurrent servers of --terms, which mostly wait")
    parser.add_argument("--bound", type=float, default=100, help="milliseconds, --latency-bound of the server")
    parser.add_argument("--seconds", type=float, default=4, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="turns of the server and its baselines")
    parser.add_argument("--output", default=os.path.join(common.RESULTS, "serving.md"), help="the file of the table")
    args = parser.parse_args()
    import serve_checks
    serve_checks.PATIENCE = 1800
    if args.load or not (args.malformed or args.terms or args.reloads):
        record(args.output, "load", {"rows": load(args)})
    if args.malformed:
        record(args.output, "malformed", send_malformed(args.malformed))
    if args.terms:
        record(args.output, "terms", terminate_servers(args.terms, args.jobs))
    if args.reloads:
        record(args.output, "reloads", reload_model(args.reloads))


if __name__ == "__main__":
    main()
