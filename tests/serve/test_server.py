import concurrent.futures
import json
import os
import signal
import socket
import threading
import time

import numpy as np
import pytest

from serve_checks import Forks, Running, ended, fuzz, infer_request, save_archive, save_linear, seeds

ONES = infer_request(np.ones((1, 4), np.float32))


def together(count, function):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, range(count)))


def raw(server, content, seconds=10):
    """Send bytes, and return what comes until the server closes or says nothing for so long."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        received = b""
        try:
            connection.sendall(content)
            while part := connection.recv(65536):
                received += part
        except (TimeoutError, ConnectionError):
            pass
        return received


def test_requests_that_wait_run_as_one_batch(server):
    before = server.metric("remex_batch_rows_count", model="linear"), server.metric("remex_batch_rows_sum", model="linear")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        sleeping = pool.submit(server.json, "POST", "/predictions/sleeper", {})  # the thread is busy for half a second
        time.sleep(0.1)
        values = np.arange(8, dtype=np.float32)
        answers = together(8, lambda i: server.json("POST", "/v2/models/linear/infer", infer_request(np.full((1, 4), values[i]))))
        assert sleeping.result()[0] == 200
    assert [answer["outputs"][0]["data"] for _, answer in answers] == [[4 * v, 4 * v + 1] for v in values]
    batches = server.metric("remex_batch_rows_count", model="linear") - before[0]
    assert server.metric("remex_batch_rows_sum", model="linear") - before[1] == 8 and batches <= 4


def test_bodies_are_limited(server):
    status, headers, answer = server.request("POST", "/invocations", b"1" * 100_001)
    assert status == 413 and b"at most 100000 bytes" in answer and headers["Connection"] == "close"
    chunked = b"POST /invocations HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"4000\r\n" + b"1" * 0x4000 + b"\r\n"
    assert raw(server, chunked + (b"4000\r\n" + b"1" * 0x4000 + b"\r\n") * 8).startswith(b"HTTP/1.1 413")
    assert raw(server, b"POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n")[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 405")


def test_heads_are_limited(server):
    start = time.monotonic()
    for head in (b"A: " + b"a" * 400_000, b"A: b\r\n" * 80_000):
        # What was not read any more may have the connection reset before the answer is read.
        assert raw(server, b"GET / HTTP/1.1\r\n" + head)[:12] in (b"HTTP/1.1 431", b"")
    assert time.monotonic() - start < 8
    assert raw(server, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert server.json("GET", "/ping")[0] == 200


def test_unknown_paths_and_methods(server):
    assert server.request("GET", "/nothing")[0] == 404 and server.request("GET", "/invocations")[0] == 405
    assert server.json("GET", "/v2/nothing") == (404, {"error": "Not Found: GET /v2/nothing"})


def test_malformed_requests_get_400_to_499(server):
    statuses = {}
    for method, path, headers, body in seeds():
        assert server.request(method, path, body, headers)[0] == 200, (path, body)
    memory = server.memory()
    fuzz(server.port, 5, 400, statuses)
    assert server.memory() - memory < 64
    assert statuses[400] > 100 and {status for status in statuses if isinstance(status, int)} <= {200, 400, 404, 405, 406, 413, 415}
    assert server.json("POST", "/v2/models/linear/infer", ONES)[0] == 200


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A server with a queue of 2, a second for each request, and no control."""
    folder = tmp_path_factory.mktemp("small")
    save_archive(folder / "sleeper.mar", 0.6)
    with Running(folder / "sleeper.mar", "--allow-code", "--queue", 2, "--timeout", 1, "--control", "off") as running:
        yield running


def test_a_full_queue_and_time_that_is_up(small):
    answers = together(6, lambda _: small.request("POST", "/predictions/sleeper", b"{}", {"Content-Type": "application/json"}))
    assert {status for status, *_ in answers} == {200, 429, 504}
    assert all(headers["Retry-After"] == "1" for status, headers, _ in answers if status == 429)


def test_a_body_that_does_not_come(small):
    assert raw(small, b"POST /invocations HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1").startswith(b"HTTP/1.1 408")


def test_control_can_be_off(small):
    status, answer = small.json("POST", "/v2/repository/models/sleeper/unload")
    assert status == 403 and "--control" in answer["error"]


class Load:
    """Clients that send requests one after the other until they are told to stop, or the server takes no more connections."""

    def __init__(self, server, clients=4):
        self.server, self.ended, self.answers, self.lost = server, threading.Event(), [], []
        self.threads = [threading.Thread(target=self._run) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        import http.client
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        while not self.ended.is_set():
            try:
                connection.connect() if connection.sock is None else None
            except ConnectionError:
                break  # not accepted
            try:
                connection.request("POST", "/v2/models/net/infer", json.dumps(ONES))
                response = connection.getresponse()
                self.answers.append((response.status, json.loads(response.read())))
            except (ConnectionError, http.client.HTTPException) as error:
                self.lost.append(error)
                break
        connection.close()

    def wait_for(self, data, seconds=60):
        """Wait until a model's output is among the answers."""
        end = time.monotonic() + seconds
        while not any(status == 200 and answer["outputs"][0]["data"] == data for status, answer in self.answers[-50:]):
            assert time.monotonic() < end, f"no answer {data} within {seconds} s; the last one of {len(self.answers)} is {self.answers[-1:]}"
            time.sleep(0.01)

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(60)


def test_reloading_and_the_end_lose_nothing(tmp_path):
    save_linear(tmp_path / "net", 1)
    with Running(tmp_path / "net", "--input", "data=-1,4", "--grace", "0.3") as server:
        load = Load(server)
        load.wait_for([4, 5])
        save_linear(tmp_path / "net", 2)
        server.process.send_signal(signal.SIGHUP)
        server.expect("net, version 1: ready")
        load.wait_for([8, 9])
        save_linear(tmp_path / "net", 3)
        assert server.json("POST", "/v2/repository/models/net/load")[0] == 200
        load.wait_for([12, 13])
        os.kill(server.process.pid, signal.SIGTERM)
        time.sleep(0.1)
        assert server.request("GET", "/v2/health/ready")[0] == 503 and server.request("GET", "/v2/health/live")[0] == 200
        assert server.process.wait(60) == 0
        load.stop()
        assert not load.lost and {status for status, _ in load.answers} == {200}
        data = [answer["outputs"][0]["data"] for _, answer in load.answers]
        # Each answer is one model's or the next one's, in this order for each client.
        assert [4, 5] in data and [8, 9] in data and [12, 13] in data and all(d in ([4, 5], [8, 9], [12, 13]) for d in data)


def test_what_was_accepted_is_answered_before_the_end(tmp_path):
    save_archive(tmp_path / "sleeper.mar", 0.3)
    with Running(tmp_path / "sleeper.mar", "--allow-code") as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(server.request, "POST", "/predictions/sleeper", b"x") for _ in range(4)]
        time.sleep(0.2)
        assert server.stop() == 0
        assert [future.result()[0] for future in sent] == [200] * 4


def test_a_model_that_cannot_be_loaded_ends_the_server(tmp_path):
    save_linear(tmp_path / "net", 1)
    with Running(tmp_path / "net", wait=False) as server:
        server.expect("does not say of which shape its input 'data' is")
        assert server.process.wait(60) == 1


def test_who_connects_as_the_server_ends_is_served_or_refused(tmp_path):
    save_linear(tmp_path / "net", 1)
    with Forks() as forks:
        for i in range(3):
            answered, lost, status = ended(tmp_path / "net", 0.2 + 0.05 * i, forks)
            assert answered > 0 and not lost and status == 0
