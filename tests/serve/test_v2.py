import json

import numpy as np
import pytest

from serve_checks import binary_request, infer_request


def infer(server, path, content):
    return server.json("POST", f"/v2/models/{path}/infer", content)


def test_health_and_metadata(server):
    assert server.json("GET", "/v2/health/live") == (200, {"live": True})
    assert server.json("GET", "/v2/health/ready") == (200, {"ready": True})
    assert server.json("GET", "/v2")[1]["extensions"] == ["binary_tensor_data", "model_repository"]
    assert server.json("GET", "/v2/models/pair") == (200, {
        "name": "pair", "versions": ["1"], "platform": "mxnet",
        "inputs": [{"name": "a", "datatype": "FP32", "shape": [-1, 3]}, {"name": "b", "datatype": "INT32", "shape": [-1, 1]}],
        "outputs": [{"name": "product_output", "datatype": "FP32", "shape": [-1, 3]},
                    {"name": "same_output", "datatype": "INT32", "shape": [-1, 1]}]})
    assert server.json("GET", "/v2/models/linear/ready") == (200, {"name": "linear", "ready": True})


def test_json(server):
    status, answer = infer(server, "linear", infer_request(np.float32([[1, 2, 3, 4], [0, 0, 0, 0]]), id="seven"))
    assert (status, answer) == (200, {"model_name": "linear", "model_version": "1", "id": "seven", "outputs": [
        {"name": "fc_output", "datatype": "FP32", "shape": [2, 2], "data": [10, 11, 0, 1]}]})


def test_onnx(server):
    assert infer(server, "twice", infer_request(np.float32([[3, 3]]), "x"))[1]["outputs"][0]["data"] == [3, 6]


def test_versions(server):
    ones = infer_request(np.ones((1, 4), np.float32))
    for path, factor in (("versioned", 10), ("versioned/versions/2", 2), ("versioned/versions/1", 1)):
        assert infer(server, path, ones)[1]["outputs"][0]["data"] == [4 * factor, 4 * factor + 1]
    assert server.json("GET", "/v2/models/versioned")[1]["versions"] == ["1", "2", "10"]
    assert infer(server, "versioned/versions/3", ones) == (404, {"error": "the model 'versioned' has the versions ['1', '2', '10'], not '3'"})


def test_binary_tensors(server):
    array = np.float32([[1, 2, 3, 4]])
    headers, body = binary_request(array, binary_data_output=True)
    status, answered, content = server.request("POST", "/v2/models/linear/infer", body, headers)
    length = int(answered["Inference-Header-Content-Length"])
    assert status == 200 and answered["Content-Type"] == "application/octet-stream"
    assert json.loads(content[:length])["outputs"] == [
        {"name": "fc_output", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}]
    assert np.frombuffer(content[length:], "<f4").tolist() == [10, 11]


def test_outputs_are_chosen_one_by_one(server):
    request = {"inputs": [{"name": "b", "shape": [1, 1], "datatype": "INT32", "data": [[3]]},
                          {"name": "a", "shape": [1, 3], "datatype": "FP32", "data": [[1, 2, 3]]}], "outputs": [{"name": "same_output"}]}
    assert infer(server, "pair", request)[1]["outputs"] == [{"name": "same_output", "datatype": "INT32", "shape": [1, 1], "data": [3]}]
    request["outputs"] = [{"name": "product_output", "parameters": {"binary_data": True}}, {"name": "same_output"}]
    _, headers, content = server.request("POST", "/v2/models/pair/infer", json.dumps(request))
    assert np.frombuffer(content[int(headers["Inference-Header-Content-Length"]):], "<f4").tolist() == [3, 6, 9]


GOOD = infer_request(np.ones((1, 4), np.float32))


def changed(**entries):
    return {"inputs": [{**GOOD["inputs"][0], **entries}]}


@pytest.mark.parametrize("path, content, status, text", [
    ("nobody", GOOD, 404, "there is no model 'nobody'"),
    ("linear", [], 400, "an object with 'inputs'"),
    ("linear", {}, 400, "'inputs' must be a list of tensors"),
    ("linear", {"inputs": [1]}, 400, "must have a 'name'"),
    ("linear", {"inputs": GOOD["inputs"] * 2}, 400, "once, out of ['data']"),
    ("linear", {"inputs": GOOD["inputs"] * 65}, 413, "at most 64 inputs are taken, received 65"),
    ("linear", changed(name="x"), 400, "received 'x'"),
    ("linear", changed(datatype="FP64"), 400, "is of type FP32, received 'FP64'"),
    ("linear", changed(datatype=["FP32"]), 400, "is of type FP32"),
    ("linear", changed(shape=[1, 5]), 400, "has shape [-1, 4], received [1, 5]"),
    ("linear", changed(shape=[10**18, 4]), 400, "'data' is of shape [4]"),
    ("linear", changed(data=["1", 2, 3, 4]), 400, "received '1'"),
    ("linear", changed(parameters={"shared_memory_region": "a"}), 400, "'shared_memory_region' is not supported"),
    ("linear", changed(parameters={"binary_data_size": 16}), 400, "0 bytes of binary data are left"),
    ("linear", changed(parameters=[]), 400, "must be an object"),
    ("linear", {**GOOD, "id": 7}, 400, "'id' must be a text"),
    ("linear", {**GOOD, "parameters": {"sequence_id": 5}}, 400, "'sequence_id' is not supported"),
    ("linear", {**GOOD, "parameters": {"timeout": -1}}, 400, "microseconds"),
    ("linear", {**GOOD, "outputs": [{"name": "x"}]}, 400, "out of ['fc_output']"),
    ("pair", {"inputs": [{"name": "a", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}, 400, "has the inputs ['a', 'b'], received ['a']"),
    ("pair", {"inputs": [{"name": "a", "shape": [2, 3], "datatype": "FP32", "data": [1] * 6},
                         {"name": "b", "shape": [1, 1], "datatype": "INT32", "data": [1]}]}, 400, "different numbers of rows: [2, 1]"),
    ("sleeper", GOOD, 400, "answers at /predictions/sleeper"),
])
def test_refusals(server, path, content, status, text):
    found, answer = infer(server, path, content)
    assert found == status and text in answer["error"]


@pytest.mark.parametrize("length, text", [("-1", "received '-1'"), ("1000", "how many of the body's"), ("x", "received 'x'"), ("20", "no JSON"),
                                          ("9" * 30, "received '999")])
def test_lengths_that_are_not_believed(server, length, text):
    headers, body = binary_request(np.ones((1, 4), np.float32))
    status, _, answer = server.request("POST", "/v2/models/linear/infer", body, {**headers, "Inference-Header-Content-Length": length})
    assert status == 400 and text in json.loads(answer)["error"]


def test_bytes_that_are_too_few_or_too_many(server):
    headers, body = binary_request(np.ones((1, 4), np.float32))
    for content, text in ((body[:-1], "15 bytes of binary data are left, its 'binary_data_size' is 16"),
                          (body + b"1", "1 bytes follow the last input's")):
        status, _, answer = server.request("POST", "/v2/models/linear/infer", content, headers)
        assert status == 400 and text in json.loads(answer)["error"]


def test_a_request_may_bring_its_own_deadline(server):
    status, answer = infer(server, "linear", {**GOOD, "parameters": {"timeout": 1}})
    assert status == 504 and "when its time was up" in answer["error"]


def test_models_come_and_go(server, models):
    ones = infer_request(np.ones((1, 4), np.float32))
    assert server.json("POST", "/v2/repository/models/linear/unload") == (200, {})
    assert infer(server, "linear", ones)[0] == 404 and server.metric("remex_model_ready", model="linear") == 0
    assert not any(entry["name"] == "linear" for entry in server.json("POST", "/v2/repository/index", {"ready": True})[1])
    assert server.json("POST", "/v2/repository/models/linear/load", {}) == (200, {})
    assert {"name": "linear", "version": "1", "state": "READY", "reason": ""} in server.json("POST", "/v2/repository/index")[1]
    assert server.json("POST", "/v2/repository/models/linear/load", {"parameters": {"config": "{}"}})[0] == 400
    assert server.json("POST", "/v2/repository/models/nobody/load")[0] == 404
    params = (models / "linear-0000.params").read_bytes()
    try:
        (models / "linear-0000.params").write_bytes(params[:-9])
        status, answer = server.json("POST", "/v2/repository/models/linear/load")
        assert status == 400 and "linear-0000.params" in answer["error"]
        assert infer(server, "linear", ones)[1]["outputs"][0]["data"] == [4, 5]  # the one before stays
    finally:
        (models / "linear-0000.params").write_bytes(params)
    assert server.json("POST", "/v2/repository/models/linear/load")[0] == 200 and server.metric("remex_model_ready", model="linear") == 1


def test_tritonclient(server):
    client_of = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    client = client_of.InferenceServerClient(server.address.removeprefix("http://"))
    try:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("pair", "1")
        assert client.get_server_metadata()["name"] == "remex" and client.get_model_metadata("pair")["inputs"][0]["name"] == "a"
        assert "pair" in {entry["name"] for entry in client.get_model_repository_index()}
        a, b = client_of.InferInput("a", [2, 3], "FP32"), client_of.InferInput("b", [2, 1], "INT32")
        a.set_data_from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
        for binary in (True, False):
            b.set_data_from_numpy(np.array([[2], [3]], np.int32), binary_data=binary)
            wanted = [client_of.InferRequestedOutput("product_output", binary_data=binary), client_of.InferRequestedOutput("same_output")]
            result = client.infer("pair", [a, b], outputs=wanted, request_id="1")
            assert result.as_numpy("product_output").tolist() == [[0, 2, 4], [9, 12, 15]] and result.as_numpy("same_output").tolist() == [[2], [3]]
        assert client.infer("pair", [a, b]).as_numpy("product_output").shape == (2, 3)
        with pytest.raises(Exception, match="there is no model .nobody."):
            client.infer("nobody", [a])
        client.unload_model("twice")
        client.load_model("twice")
        assert client.is_model_ready("twice")
    finally:
        client.close()
