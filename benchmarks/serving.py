"""Measure the model server under load, and test it with malformed requests and while it is stopped and reloaded.

    python benchmarks/serving.py --load  # in five minutes
    python benchmarks/serving.py --malformed 200000            # in fifteen
    python benchmarks/serving.py --terms 1000 --reloads 1000   # in five, and fifteen

Each part replaces its rows of benchmarks/results/serving.json, from which serving.md is written.

Load: 1, 16 and 64 clients in a process of their own send binary tensors over loopback. Beside it: the same network in a loop without a server, in
batches of the size that the server chose (of one row beside one client); and a server that runs one forward pass for each request, on Starlette,
which FastAPI is made of. With ``--peer-python PYTHON``, of an environment with the packages fastapi and litserve, there are FastAPI with a plain
``def`` endpoint and LitServe with batches, too:

    python3 -m venv peers && peers/bin/pip install fastapi litserve     # of the same version of Python
    python benchmarks/serving.py --load --peer-python peers/bin/python

They compute with this environment's torch and this checkout. Clients, server and network share the machine's cores. Servers take turns, each in a
process of its own; medians are reported.
"""
import argparse
import base64
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

from harness import common

sys.path[:0] = [os.path.join(common.ROOT, folder) for folder in ("src", "tests")]
HERE = pathlib.Path(__file__).parent
NETWORKS = {"mlp": (784,), "resnet50": (3, 224, 224)}
CLIENTS = (1, 16, 64)
PEERS = ("fastapi", "litserve")  # of `--peer-python`
NAMES = {"naive": "naive server", "fastapi": "FastAPI", "litserve": "LitServe"}
GOALS = {"naive": " (goal: 2 or more)", "fastapi": " (goal: 2 or more)"}
PATIENT = ("--timeout", "1800")  # for machines that are busy: a request that waited for a processor is no request that was lost
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
    """Export a network; the prefix of its files."""
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
    """The environment of servers and loops: as many threads as they take by themselves."""
    return {**{key: value for key, value in os.environ.items()}, "PYTHONPATH": os.path.join(common.ROOT, "src")}


def clients(port, path, count, seconds, request):
    """Throughput and latencies that so many clients see."""
    command = [sys.executable, str(HERE / "workers" / "load_client.py"), str(port), path, str(count), str(seconds), *map(str, request)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def commands(args, prefix, sizes, largest):
    """The programs of the other servers, which a port completes, by name."""
    result = {"naive": [sys.executable, str(HERE / "workers" / "naive_server.py"), prefix, sizes]}
    for kind in PEERS if args.peer_python else ():
        result[kind] = [args.peer_python, str(HERE / "workers" / "peer_server.py"), kind, prefix, sizes]
    return {name: (command, [] if name == "naive" else [str(largest)]) for name, command in result.items()}


@contextlib.contextmanager
def other(command, ending, foreign):
    """Another server; yields its port when it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = environment()
    if foreign:  # its own packages, and of this environment what it lacks: torch, OpenVINO
        env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], sysconfig.get_path("purelib")])
    process = subprocess.Popen([*command, str(port), *ending], env=env, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(command[:3])} ended with status {process.returncode}")
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit(f"{' '.join(command[:3])} does not listen")
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # LitServe's workers are processes, too
        process.wait()


def requests_of(name, folder, own):
    """Return the request of each protocol: {kind: (length of the JSON header, content type, file)}, for binary data and for LitServe."""
    import numpy as np

    import serve_checks
    data = np.random.default_rng(0).random((1, *own)).astype(np.float32)
    headers, body = serve_checks.binary_request(data, binary_data_output=True)
    result = {}
    for kind, length, content_type, content in (
            ("binary", int(headers["Inference-Header-Content-Length"]), headers["Content-Type"], body),
            ("litserve", 0, "application/json", json.dumps({"data": base64.b64encode(data.tobytes()).decode()}).encode())):
        file = pathlib.Path(folder, f"{name}.{kind}")
        file.write_bytes(content)
        result[kind] = length, content_type, str(file)
    return result


def load(args):
    """Rows of the table: a network, a number of clients, and what was measured."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            rows += load_network(args, name, folder)
    return rows


def load_network(args, name, folder):
    """The rows of one network: the server, others and a loop take turns."""
    import serve_checks
    own, prefix = NETWORKS[name], save(name, folder)
    sizes = ",".join(map(str, own))
    requests = requests_of(name, folder, own)
    options = ("--input", f"data=-1,{sizes}", "--latency-bound", args.bound, "--no-access-log")
    with serve_checks.Running(prefix, *options) as server, contextlib.ExitStack() as stack:
        curve = curve_of(server)
        largest = int(curve.split(", ")[-1].split()[0])
        batch_seconds = float(curve.split(", ")[-1].split()[2]) / 1e3
        print(f"{name}: batches of {curve}", flush=True)
        ports = {key: stack.enter_context(other(*command, key in PEERS)) for key, command in commands(args, prefix, sizes, largest).items()}
        targets = {"ours": (server.port, f"/v2/models/{name}/infer", requests["binary"])}
        targets.update((key, (port, "/infer", requests.get(key, requests["binary"]))) for key, port in ports.items())
        samples = {count: {key: [] for key in targets} for count in CLIENTS}
        loops = {batch: [] for batch in (1, largest)}
        for number in range(args.rounds):
            for batch, rates in loops.items():
                rates.append(loop_rate(prefix, sizes, batch, args.seconds))
            for count in CLIENTS:
                for key, (port, path, request) in targets.items():
                    samples[count][key].append(clients(port, path, count, args.seconds, request))
            print(f"{name}: round {number + 1} of {args.rounds}: in a loop {' and '.join(f'{r[-1]:.4g}' for r in loops.values())} rows/s", flush=True)
            for count, kinds in samples.items():
                rates = (f"{key} {sample[-1]['rate']:.4g}" for key, sample in kinds.items())
                print(f"  {count} clients: {', '.join(rates)} requests/s", flush=True)

    def middle(count, key, what):
        return statistics.median(sample[what] for sample in samples[count][key])

    return [{"network": name, "clients": count, "batch": largest, "limit": 1.5 * (batch_seconds + args.bound / 1e3),
             "loop": statistics.median(loops[1 if count == 1 else largest]), **{what: middle(count, "ours", what) for what in ("rate", "p50", "p99")},
             **{key: middle(count, key, "rate") for key in ports}, **{f"{key} p99": middle(count, key, "p99") for key in ports}}
            for count in CLIENTS]


def curve_of(server):
    """Return the latency curve that the server logs, on another stream than the line by which it says that it is ready."""
    while True:
        for line in list(server.log):
            if "ready after" in line:
                return line.partition("batches of ")[2].strip()
        time.sleep(0.1)


def loop_rate(prefix, sizes, batch, seconds):
    """Rows a second of the network in a loop without a server."""
    return float(subprocess.run([sys.executable, "-c", LOOP, prefix, sizes, str(batch), str(seconds)], capture_output=True, text=True, check=True,
                                env=environment()).stdout)


def table(rows):
    """Markdown, with the goals beside what was measured."""
    others = [key for key in ("naive", *PEERS) if key in rows[0]]
    head = ["network, largest batch", "clients", "server, requests/s", "loop, rows/s", "server / loop (goal at 16: 0.95 or more)",
            *(text for key in others for text in (f"{NAMES[key]}, requests/s", f"server / it{GOALS.get(key, '')}")),
            "p50, ms", "p99, ms", "p99 limit, ms", *(f"{NAMES[key]}: p99, ms" for key in others), "goals reached"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 2) + "---|"]
    for row in rows:
        fastest = max(row[key] for key in others if key in GOALS)
        reached = [row["rate"] >= 0.95 * row["loop"] or row["clients"] != 16, row["rate"] >= 2 * fastest, row["p99"] <= row["limit"]]
        missed = ", ".join(text for text, met in zip(("loop", "naive", "p99"), reached) if not met)
        cells = [f"{row['network']}, {row['batch']}", row["clients"], f"{row['rate']:.0f}", f"{row['loop']:.0f}", f"{row['rate'] / row['loop']:.2f}",
                 *(text for key in others for text in (f"{row[key]:.0f}", f"{row['rate'] / row[key]:.2f}")),
                 f"{row['p50'] * 1e3:.1f}", f"{row['p99'] * 1e3:.1f}", f"{row['limit'] * 1e3:.1f}",
                 *(f"{row[f'{key} p99'] * 1e3:.1f}" for key in others), f"all but {missed}" if missed else "yes"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def send_malformed(count):
    """Send malformed requests from two threads; return how they were answered and what became of the server's memory."""
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
    """Stop servers under load, several at a time; return what was answered and lost, and how the servers ended."""
    import serve_checks
    numbers, started, lock = iter(range(count)), time.perf_counter(), threading.Lock()
    result = {"servers": 0, "answered": 0, "lost": [], "exits": []}

    def run():
        while (i := next_of(numbers, lock)) is not None:
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


def next_of(numbers, lock):
    """The next number of an iterator that threads share, None at its end."""
    with lock:
        return next(numbers, None)


def reload_model(count):
    """Reload a model under load, by requests and by SIGHUP; return what was answered and lost, and the server's memory."""
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
    """The text of the server's memory after each tenth."""
    return f"{memory[0]:.0f} MiB after a tenth, {memory[-1]:.0f} at the end, {max(memory):.0f} at most"


def robustness_table(results):
    """Markdown of all parts but the load."""
    rows = []
    if result := results.get("malformed"):
        wrong = [status for status in result["statuses"] if status != "closed" and not 200 <= int(status) < 500]
        answers = ", ".join(f"{status}: {count}" for status, count in result["statuses"].items())
        flat = result["memory"][-1] - result["memory"][len(result["memory"]) // 2] < 16
        rows.append((f"`--malformed {sum(result['statuses'].values())}`",
                     "only 4xx (2xx where a change left the request valid), memory flat, still serving",
                     f"{answers}; {megabytes(result['memory'])}; good requests after that: {result['good']}",
                     not wrong and flat and result["good"] == [200] and result["exit"] == 0, result["where"]))
    if result := results.get("terms"):
        rows.append((f"`--terms {result['servers']}`", "no accepted request lost",
                     f"{result['answered']} requests answered, {len(result['lost'])} lost; exit statuses {result['exits']}",
                     not result["lost"] and result["exits"] == [0], result["where"]))
    if result := results.get("reloads"):
        rows.append((f"`--reloads {result['reloads']}`", "no accepted request lost",
                     f"{result['answered']} requests answered, {len(result['lost'])} lost; {megabytes(result['memory'])}",
                     not result["lost"] and result["exit"] == 0, result["where"]))
    lines = ["| command | goal | measured | reached | where |", "|---|---|---|---|---|"]
    for *texts, reached, where in rows:
        lines.append(f"| {' | '.join([*texts, 'yes' if reached else 'no', where])} |")
    return "\n".join(lines)


def record(output, part, result):
    """Put a part's result into the JSON file, and write the Markdown beside it."""
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
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", action="store_true", help="what is done if nothing else is asked for")
    parser.add_argument("--malformed", type=int, default=0, metavar="N", help="send so many malformed requests")
    parser.add_argument("--terms", type=int, default=0, metavar="N", help="stop so many servers by SIGTERM under load")
    parser.add_argument("--reloads", type=int, default=0, metavar="N", help="reload a model so many times under load")
    parser.add_argument("--jobs", type=int, default=8, help="servers at one time of --terms: each waits more than it computes")
    parser.add_argument("--peer-python", default="", metavar="PYTHON", help="of an environment with fastapi and litserve, for --load")
    parser.add_argument("--bound", type=float, default=100, help="milliseconds, --latency-bound of the server")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each server")
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
