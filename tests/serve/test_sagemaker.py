"""What SageMaker asks of a container: https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html."""
import concurrent.futures
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from mxnet.tools.serve import build_parser
from serve_checks import SOURCES, Running, save_archive, save_linear

ARRAY = np.arange(8, dtype=np.float32).reshape(2, 4)
EXPECTED = [[6, 7], [22, 23]]
ENTRYPOINT = os.path.join(os.path.dirname(SOURCES), "examples", "serving", "entrypoint.sh")


def test_the_port_is_8080_or_the_one_that_the_environment_names(monkeypatch):
    monkeypatch.delenv("SAGEMAKER_BIND_TO_PORT", raising=False)
    assert build_parser().parse_args(["net"]).port == 8080
    monkeypatch.setenv("SAGEMAKER_BIND_TO_PORT", "8181")
    assert build_parser().parse_args(["net"]).port == 8181 and build_parser().parse_args(["net", "--port", "1"]).port == 1


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "text/csv", "application/x-npy"])
def test_the_types_of_the_inference_toolkit(server, kind):
    """Bodies as ``sagemaker_inference.encoder`` makes them, and answers as its decoder reads them, for each of its types in and out."""
    plain = kind.partition(";")[0]
    for accept in ("application/json", "text/csv", "application/x-npy", "", "*/*"):
        status, headers, answer = server.request("POST", "/invocations", encoded(plain), {"Content-Type": kind, "Accept": accept})
        wanted = accept if accept not in ("", "*/*") else "application/json"
        assert status == 200 and headers["Content-Type"].partition(";")[0] == wanted
        assert decoded(answer, wanted).tolist() == EXPECTED


def encoded(kind):
    if kind == "application/x-npy":
        file = io.BytesIO()
        np.save(file, ARRAY)
        return file.getvalue()
    if kind == "text/csv":  # NumPy's, as the toolkit uses it: numbers such as 1.000000000000000000e+00
        file = io.StringIO()
        np.savetxt(file, ARRAY, delimiter=",", fmt="%s")
        return file.getvalue().encode()
    return json.dumps(ARRAY.tolist()).encode()


def decoded(body, kind):
    if kind == "application/x-npy":
        return np.load(io.BytesIO(body), allow_pickle=False)
    if kind == "text/csv":
        return np.genfromtxt(io.StringIO(body.decode()), dtype=np.float32, delimiter=",")
    return np.array(json.loads(body))


@pytest.mark.parametrize("kind", ["application/json", "text/csv", "application/x-npy"])
def test_the_toolkit_itself(server, kind):
    toolkit = pytest.importorskip("sagemaker_inference", reason="sagemaker-inference is not installed")
    from sagemaker_inference import decoder, encoder
    body = encoder.encode(ARRAY, kind)
    status, headers, answer = server.request("POST", "/invocations", body, {"Content-Type": kind, "Accept": kind})
    answer = answer if kind == toolkit.content_types.NPY else answer.decode()
    assert status == 200 and np.asarray(decoder.decode(answer, headers["Content-Type"].partition(";")[0])).tolist() == EXPECTED


def test_ping_answers_200_only_once_models_are_ready_and_within_two_seconds(server):
    start = time.monotonic()
    assert server.request("GET", "/ping")[0] == 200 and time.monotonic() - start < 2


def test_a_container_starts_serves_and_ends_as_it_is_told(tmp_path):
    """``docker run IMAGE serve``: the entry point gets SageMaker's argument, and its environment says the port."""
    save_linear(tmp_path / "net", 1)
    (tmp_path / "net-shapes.json").write_text(json.dumps([{"name": "data", "shape": [1, 4]}]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": SOURCES, "SAGEMAKER_BIND_TO_PORT": str(port), "MODEL": str(tmp_path), "HOST": "127.0.0.1",
                   "GRACE": "0.2", "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])}
    process = subprocess.Popen(["sh", ENTRYPOINT, "serve"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end, status = time.monotonic() + 100, None
        while status != 200 and time.monotonic() < end and process.poll() is None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                connection.request("GET", "/ping")
                status = connection.getresponse().status
            except ConnectionError:
                time.sleep(0.1)
            connection.close()
        assert status == 200
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/invocations", json.dumps(ARRAY.tolist()), {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read()) == EXPECTED
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0  # then SageMaker sends SIGKILL
    finally:
        process.kill()
        process.wait()


def test_a_request_that_runs_when_the_signal_comes_is_answered(tmp_path):
    save_archive(tmp_path / "sleeper.mar", 0.5)
    with Running(tmp_path / "sleeper.mar", "--allow-code") as running, concurrent.futures.ThreadPoolExecutor(1) as pool:
        sent = pool.submit(running.request, "POST", "/invocations", b"x", {"Content-Type": "application/octet-stream"})
        time.sleep(0.2)
        assert running.stop() == 0 and sent.result()[0] == 200
