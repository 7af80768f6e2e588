"""Models to serve, a server in a process of its own, and malformed requests."""
import http.client
import io
import itertools
import json
import os
import pathlib
import queue
import random
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zipfile

import cv2
import numpy as np

import mxnet as mx
from fuzz.mutations import mutated

SOURCES = str(pathlib.Path(mx.__file__).parent.parent)
PATIENCE = 60  # seconds until what does not answer is broken; benchmarks on busy machines wait longer
HANDLER = """
import time
loaded = False

def handle(data, context):
    global loaded
    if data is None:
        loaded = True
        return None
    time.sleep({seconds})
    return [dict(loaded=loaded, model=context.model_name, got=repr(part.get("body"))) for part in data]
"""


def save_linear(prefix, factor):
    """A network of 4 inputs and 2 outputs: ``factor`` times their sum, and 1 more."""
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    mx.model.save_checkpoint(str(prefix), 0, out, {"fc_weight": mx.nd.ones((2, 4)) * factor, "fc_bias": mx.nd.array([0, 1])}, {})


def save_pair(prefix):
    """Two inputs of different types, two outputs: `a` times `b`, and `b`."""
    a, b = mx.sym.var("a"), mx.sym.var("b")
    out = mx.sym.Group([mx.sym.broadcast_mul(a, mx.sym.cast(b, "float32"), name="product"), mx.sym.identity(b, name="same")])
    mx.model.save_checkpoint(str(prefix), 0, out, {}, {})


def save_colours(folder):
    """A classifier of images of 8 x 8 pixels: the mean of each channel. It ends as `Module`'s networks do, in a layer with a label."""
    folder.mkdir()
    means = mx.sym.Flatten(mx.sym.Pooling(mx.sym.var("data"), global_pool=True, pool_type="avg", kernel=(1, 1)))
    mx.model.save_checkpoint(str(folder / "colours"), 3, mx.sym.LinearRegressionOutput(means, name="means"), {}, {})
    (folder / "signature.json").write_text(json.dumps({"inputs": [{"data_name": "data", "data_shape": [1, 3, 8, 8]}], "input_type": "image/jpeg"}))
    (folder / "synset.txt").write_text("red\ngreen\nblue\n")


def save_archive(path, seconds=0.0):
    """An archive of Multi Model Server with a handler that sleeps."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"model": {"modelName": "sleeper", "handler": "service:handle"}}))
        archive.writestr("service.py", HANDLER.format(seconds=seconds))


def picture(colour, ending=".jpg", size=(20, 30)):
    """An image file of one colour (red, green, blue)."""
    return cv2.imencode(ending, np.full((*size, 3), colour[::-1], np.uint8))[1].tobytes()


# Each line: three pipes (output, errors, and process number and exit status), then arguments. A process between waits for the server's end.
FORKING = """
import os, signal, subprocess, sys
import mxnet.serve.server
from mxnet.tools.serve import main

def serve(paths, arguments):
    for number, path in enumerate(paths, 1):
        os.dup2(os.open(path, os.O_WRONLY), number)
    status = main(arguments)
    sys.stdout.flush()
    return status

def watch(path, *rest):
    with open(path, "w") as told:
        child = os.fork()
        if not child:
            told.close()
            return serve(*rest)
        print(child, file=told, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=told, flush=True)
    return 0

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    if not os.fork():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status, words = 1, line.rstrip("\\n").split("\\t")
        try:
            status = watch(words[2], words[:2], words[3:])
        finally:
            os._exit(status)
"""


class Forks:
    """Starts servers by forks of a process that has imported everything: importing is most of the time that a start takes."""

    def __init__(self):
        self.folder, self._started, self._lock = tempfile.TemporaryDirectory(), itertools.count(), threading.Lock()
        self.parent = subprocess.Popen([sys.executable, "-c", FORKING], stdin=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": SOURCES})

    def start(self, arguments):
        """A server with these arguments, as `subprocess.Popen` would return it."""
        number = next(self._started)
        paths = [os.path.join(self.folder.name, f"{name}{number}") for name in ("out", "error", "told")]
        for path in paths:
            os.mkfifo(path)
        with self._lock:
            self.parent.stdin.write("\t".join([*paths, *arguments]) + "\n")
            self.parent.stdin.flush()
        told = open(paths[2])  # the process opens them in this order
        server = Fork(told, [open(path) for path in paths[:2]])
        for path in paths:
            os.unlink(path)
        return server

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.parent.stdin.close()
        self.parent.wait()
        self.folder.cleanup()


class Fork:
    """A server that was forked; of `subprocess.Popen` there is what `Running` uses."""

    def __init__(self, told, streams):
        self.stdout, self.stderr = streams
        self._told, self.pid, self._status, self._lock = told, int(told.readline()), None, threading.Lock()

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def poll(self):
        """The exit status, None while it runs."""
        with self._lock:
            if self._status is None and select.select([self._told], [], [], 0)[0]:
                self._status = int(self._told.readline())
                self._told.close()
            return self._status

    def wait(self, seconds=None):
        """The exit status, once it has ended."""
        seconds = seconds or PATIENCE
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"the server {self.pid} did not end within {seconds} s")
            time.sleep(0.002)
        return self._status


class Running:
    """A server, in a process of its own or forked by `forks`; its `address` is known when it is ready."""

    def __init__(self, *arguments, wait=True, forks=None, **environment):
        arguments = ["--port", "0", *map(str, arguments)]
        self.process = forks.start(arguments) if forks else subprocess.Popen(
            [sys.executable, "-m", "mxnet.tools.serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": SOURCES, **environment})
        self.log, self._lines = [], queue.Queue()
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()
        self.address = re.search(r"http://\S+", self.expect("listening on"))[0]
        self.port = urllib.parse.urlsplit(self.address).port
        if wait:
            self.expect("ready: ")

    def _read(self, stream):
        with stream:
            for line in stream:
                self.log.append(line)
                self._lines.put(line)

    def expect(self, text, seconds=None):
        """The next line that the server prints or logs with a text in it."""
        end = time.monotonic() + (seconds or 2 * PATIENCE)
        while time.monotonic() < end:
            try:
                line = self._lines.get(timeout=0.1)
            except queue.Empty:
                if self.process.poll() is not None:
                    break
                continue
            if text in line:
                return line
        raise AssertionError(f"the server did not say {text!r}: {''.join(self.log)}")

    def request(self, method, path, body=None, headers=(), timeout=None):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout or PATIENCE)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def json(self, method, path, content=None, **headers):
        """Status, and what the JSON of an answer says."""
        body = None if content is None else json.dumps(content)
        status, _, answer = self.request(method, path, body, {"Content-Type": "application/json", **headers})
        return status, json.loads(answer)

    def metric(self, name, **labels):
        """A number of ``/metrics``; 0 if it is not there."""
        for line in self.request("GET", "/metrics")[2].decode().splitlines():
            if re.match(rf"{name}[{{ ]", line) and all(f'{key}="{value}"' in line for key, value in labels.items()):
                return float(line.rpartition(" ")[2])
        return 0.0

    def memory(self):
        """The server's resident memory in MiB."""
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1024

    def stop(self, number=signal.SIGTERM):
        """Send a signal and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def infer_request(array, name="data", datatype="FP32", **more):
    """A request of the Open Inference Protocol with one input in JSON."""
    return {"inputs": [{"name": name, "shape": list(array.shape), "datatype": datatype, "data": array.reshape(-1).tolist()}], **more}


def binary_request(array, name="data", datatype="FP32", **parameters):
    """The headers and body of one with binary data."""
    data = array.tobytes()
    head = json.dumps({"inputs": [{"name": name, "shape": list(array.shape), "datatype": datatype, "parameters": {"binary_data_size": len(data)}}],
                       "parameters": parameters}).encode()
    return {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}, head + data


def seeds():
    """Good requests (method, path, headers, body) for the models `linear`, `pair` and `colours`."""
    array, json_type = np.ones((2, 4), np.float32), {"Content-Type": "application/json"}
    npy, form = io.BytesIO(), b"--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
    np.save(npy, array)
    pair = {"id": "7", "inputs": [{"name": "a", "shape": [1, 3], "datatype": "FP32", "data": [[1, 2, 3]]},
                                  {"name": "b", "shape": [1, 1], "datatype": "INT32", "data": [2]}],
            "outputs": [{"name": "product_output", "parameters": {"binary_data": True}}]}
    return [("POST", "/v2/models/linear/infer", json_type, json.dumps(infer_request(array, id="a")).encode()),
            ("POST", "/v2/models/linear/versions/1/infer", *binary_request(array, binary_data_output=True)),
            ("POST", "/v2/models/pair/infer", json_type, json.dumps(pair).encode()),
            ("POST", "/v2/repository/index", json_type, b'{"ready": true}'),
            ("POST", "/invocations", json_type, json.dumps(array.tolist()).encode()),
            ("POST", "/invocations", json_type, json.dumps({"instances": array.tolist()}).encode()),
            ("POST", "/invocations", {"Content-Type": "text/csv", "Accept": "text/csv"}, b"1,2,3,4\n5,6,7,8\n"),
            ("POST", "/invocations", {"Content-Type": "application/x-npy", "Accept": "application/x-npy"}, npy.getvalue()),
            ("POST", "/predictions/colours", {"Content-Type": "image/jpeg"}, picture((200, 100, 0))),
            ("PUT", "/predictions/colours", {}, picture((200, 100, 0), ".png")),
            ("POST", "/predictions/colours", {"Content-Type": "multipart/form-data; boundary=x"}, form + picture((9, 9, 9)) + b"\r\n--x--\r\n")]


def malformed(rng: random.Random, good):
    """A request made of a good one: its body, a header or its path is changed."""
    method, path, headers, body = rng.choice(good)
    headers, kind = dict(headers), rng.random()
    if kind < 0.75:
        text = headers.get("Content-Type") in ("application/json", "text/csv")
        body = mutated(body, rng, [other for *_, other in good], text=text)
    if kind > 0.65:
        name = rng.choice([*headers, "Content-Type", "Content-Encoding", "Inference-Header-Content-Length", "Accept"])
        headers[name] = rng.choice(["", "0", "-1", "1", str(2**40), "9" * 30, "text/csv", "application/json", "multipart/form-data", "gzip",
                                    "multipart/form-data; boundary=" + "y" * rng.randrange(200), "image/jpeg", "application/x-npy", "\xe9", "*/*",
                                    str(rng.randrange(len(body) + 2))])
    if kind > 0.9:
        path = rng.choice(["/", "/v2", path + "/", path + "/versions/9", path.replace("linear", "%00"), "//", "/v2/models//infer", path[:-2],
                           path + "?a=%ff", "/predictions/" + "a" * 3000, "/metrics"])
        method = rng.choice([method, "GET", "DELETE", "PATCH", "OPTIONS", "HEAD"])
    return method, path, headers, body


def raw(rng: random.Random, good):
    """The bytes of a request whose head is changed: its line, names and numbers of headers, lengths, chunks."""
    method, path, headers, body = rng.choice(good)
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *(f"{name}: {value}" for name, value in headers.items())]
    if rng.random() < 0.3:
        lines.append("Transfer-Encoding: chunked")
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]) if part) + b"0\r\n\r\n"
    else:
        lines.append(f"Content-Length: {len(body) + rng.choice((0, 0, 0, 1, -1, 2**40))}")
    if rng.random() < 0.1:
        lines.append(rng.choice(lines[2:]))
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return mutated(head, rng, [head], text=rng.random() < 0.7) + (mutated(body, rng, [body]) if rng.random() < 0.3 else body)


def answer_to(port, content):
    """The status with which bytes are answered, after which the client sends nothing more; ``closed`` if that is all the answer."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        try:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                received += part
        except ConnectionError:  # it was refused before all of it was sent
            pass
    found = re.match(rb"HTTP/1\.1 (\d+) ", received)
    if received and not found:
        raise AssertionError(f"no answer of HTTP: {received!r:.500}")
    return int(found[1]) if found else "closed"


def fuzz(port, seed, count, statuses):
    """Send malformed requests over one connection after the other, some with another head than HTTP's; count their statuses."""
    rng, good = random.Random(seed), seeds()
    connection = None
    for _ in range(count):
        if rng.random() < 0.15:
            content = raw(rng, good)
            status = answer_to(port, content)
            if status != "closed" and status >= 500:
                raise AssertionError(f"status {status} of {content!r:.2000}")
            statuses[status] = statuses.get(status, 0) + 1
            continue
        method, path, headers, body = malformed(rng, good)
        connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            response.read()
            status = response.status
            if response.will_close:
                connection.close()
                connection = None
        except ConnectionError:  # it was refused before all of it was sent
            status, connection = "closed", None
        if isinstance(status, int) and status >= 500:
            raise AssertionError(f"status {status} of {method} {path} {headers} {body!r:.2000}")
        statuses[status] = statuses.get(status, 0) + 1
    if connection is not None:
        connection.close()


class Clients:
    """Threads that send requests until the server takes no more connections, or they are told to stop. Half of them connect for each request anew.

    Attributes
    ----------
    answered : int
        Requests that got their answer, the model's for a row of ones.
    lost : list
        What came instead: errors of connections, and other answers.
    """

    def __init__(self, port, count=8):
        self.port, self.ended, self.answered, self.lost, self._lock = port, threading.Event(), 0, [], threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(i % 2 == 1,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, anew):
        body, sent, lost = json.dumps(infer_request(np.ones((1, 4), np.float32))), 0, []
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        while not self.ended.is_set():
            try:
                if connection.sock is None:
                    connection.connect()
            except ConnectionError:
                break  # not accepted
            try:
                connection.request("POST", "/v2/models/net/infer", body)
                response = connection.getresponse()
                content = response.read()
                if response.status != 200 or len(json.loads(content)["outputs"][0]["data"]) != 2:
                    lost.append((response.status, content))
                sent += 1
            except (OSError, http.client.HTTPException) as error:
                lost.append(f"{'new' if anew else 'kept'} connection: {error!r}")
                connection.close()
            if anew:
                connection.close()
        connection.close()
        with self._lock:
            self.answered += sent
            self.lost += lost

    def join(self):
        """Wait until all have ended."""
        self.ended.set()
        for thread in self.threads:
            thread.join()


def ended(prefix, seconds, forks=None, *options):
    """Start a server, send SIGTERM while clients send requests; the number of answers, what was lost, and the exit status."""
    with Running(prefix, "--input", "data=-1,4", "--no-access-log", *options, forks=forks) as server:
        clients = Clients(server.port)
        time.sleep(seconds)
        status = server.stop()
        clients.join()
        return clients.answered, clients.lost, status
