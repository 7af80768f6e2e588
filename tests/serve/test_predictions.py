import io
import json

import numpy as np
import pytest

from serve_checks import picture

PROBABILITIES = [{"probability": 200.0, "class": "red"}, {"probability": 100.0, "class": "green"}, {"probability": 0.0, "class": "blue"}]
PNG = picture((200, 100, 0), ".png")


def test_ping(server):
    assert server.json("GET", "/ping") == (200, {"status": "Healthy!"})


@pytest.mark.parametrize("method, content_type", [("POST", "image/png"), ("PUT", ""), ("POST", "application/octet-stream")])
def test_images_are_classified(server, method, content_type):
    status, _, answer = server.request(method, "/predictions/colours", PNG, {"Content-Type": content_type} if content_type else {})
    assert status == 200 and json.loads(answer) == PROBABILITIES


def test_forms_as_curl_sends_them(server):
    head = b"--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.png\"\r\n\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    status, _, answer = server.request("POST", "/predictions/colours/1", head + PNG + b"\r\n--x--\r\n", headers)
    assert status == 200 and json.loads(answer) == PROBABILITIES
    fields = b"".join(b"--x\r\nContent-Disposition: form-data; name=\"%c\"\r\n\r\n%s\r\n" % part for part in ((97, b"[[1, 2, 3]]"), (98, b"[[2]]")))
    status, _, answer = server.request("POST", "/predictions/pair", fields + b"--x--\r\n", headers)
    assert status == 200 and json.loads(answer) == [[[2, 4, 6]], [[2]]]


def test_json_without_labels_is_nested(server):
    assert server.json("POST", "/predictions/linear", [[1, 2, 3, 4]]) == (200, [[10, 11]])
    assert server.json("POST", "/predictions/versioned/2", {"data": [[1, 1, 1, 1]]}) == (200, [[8, 9]])


def test_invocations_take_the_first_model_or_the_one_that_is_named(server):
    assert server.json("POST", "/invocations", [1, 2, 3, 4]) == (200, [[10, 11]])
    assert server.json("POST", "/invocations", [1, 1, 1, 1], **{"X-Amzn-SageMaker-Target-Model": "versioned"}) == (200, [[40, 41]])
    status, headers, answer = server.request("POST", "/invocations", b"1,2,3,4\n", {"Content-Type": "text/csv", "Accept": "text/csv"})
    assert (status, headers["Content-Type"].partition(";")[0], answer) == (200, "text/csv", b"10.0,11.0\n")
    file = io.BytesIO()
    np.save(file, np.ones((3, 4)))
    status, _, answer = server.request("POST", "/invocations", file.getvalue(), {"Content-Type": "application/x-npy", "Accept": "application/x-npy"})
    assert status == 200 and np.load(io.BytesIO(answer)).tolist() == [[4, 5]] * 3


@pytest.mark.parametrize("path, headers, body, status, text", [
    ("/predictions/nobody", {}, b"[]", 404, "there is no model 'nobody'"), ("/predictions/colours", {}, PNG[:60], 400, "can't be decoded"),
    ("/predictions/linear", {"Content-Type": "image/png"}, PNG, 415, "takes no images"),
    ("/predictions/linear", {"Content-Type": "text/html"}, b"", 415, "received 'text/html'"),
    ("/predictions/colours", {"Content-Type": "multipart/form-data"}, PNG, 400, "multipart body can't be read"),
    ("/predictions/pair", {"Content-Type": "multipart/form-data; boundary=x"}, b"--x--\r\n", 400, "a part for each of the inputs ['a', 'b']"),
    ("/invocations", {"Accept": "text/html"}, b"[1, 2, 3, 4]", 406, "accepted is 'text/html'"),
    ("/invocations", {"Content-Encoding": "gzip"}, b"x", 415, "uncompressed"),
])
def test_refusals(server, path, headers, body, status, text):
    found, _, answer = server.request("POST", path, body, headers)
    assert found == status and text in json.loads(answer)["message"]


def test_archives_with_handlers(server):
    assert server.json("POST", "/predictions/sleeper", {"a": 1}) == (200, {"loaded": True, "model": "sleeper", "got": "{'a': 1}"})
