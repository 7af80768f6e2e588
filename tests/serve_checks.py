"""Models to serve, a server in a process of its own, and malformed requests."""
import http.client
import io
import json
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import zipfile

import cv2
import numpy as np

import mxnet as mx
from fuzz.mutations import mutated

SOURCES = str(pathlib.Path(mx.__file__).parent.parent)
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


class Running:
    """A server; its `address` is known when it is ready."""

    def __init__(self, *arguments, wait=True, **environment):
        self.process = subprocess.Popen([sys.executable, "-m", "mxnet.tools.serve", "--port", "0", *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": SOURCES, **environment})
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

    def expect(self, text, seconds=100):
        """The next line that the server prints or logs with a text in it."""
        end = time.monotonic() + seconds
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

    def request(self, method, path, body=None, headers=(), timeout=60):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
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
        return self.process.wait(60)

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


def fuzz(port, seed, count, statuses):
    """Send malformed requests over one connection after the other; count their statuses. An answer is to come to each."""
    rng, good = random.Random(seed), seeds()
    connection = None
    for _ in range(count):
        method, path, headers, body = malformed(rng, good)
        connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)
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
