import html.parser
import re

import numpy as np

from mxnet.serve.page import example, histogram_svg
from mxnet.serve.tensors import TensorSpec
from serve_checks import infer_request


class Seen(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def test_what_is_served_pictures_and_forms(server):
    server.json("POST", "/v2/models/linear/infer", infer_request(np.ones((1, 4), np.float32)))
    status, headers, body = server.request("GET", "/")
    text = body.decode()
    seen = Seen(text)
    assert status == 200 and headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "The server is <b>ready</b>" in text and {a.get("id") for tag, a in seen.tags if tag == "h2"} >= {"linear", "pair", "colours", "versioned"}
    assert not [tag for tag, a in seen.tags if tag in ("script", "link", "img") or "http" in a.get("src", a.get("href", ""))]
    assert "latency of requests: up to so many ms" in text and any(tag == "svg" for tag, _ in seen.tags)
    forms = {a["action"] for tag, a in seen.tags if tag == "form"}
    assert {"/predictions/linear/1", "/predictions/versioned/10"} <= forms
    fields = [(tag, a.get("name")) for tag, a in seen.tags if tag in ("input", "textarea")]
    assert ("textarea", "a") in fields and ("textarea", "b") in fields and ("input", "data") in fields
    assert "[[0, 0, 0, 0]]" in text


def test_histograms():
    picture = histogram_svg([(0.001, 0), (0.01, 4), (0.1, 2), (float("inf"), 0)], "ms", 1e3, "latency")
    heights = [float(height) for height in re.findall(r"<rect [^>]* height=([\d.]+)", picture)]
    assert heights == [90.0, 45.0] and re.findall(r">([\w.]+)</text>", picture) == ["1", "4", "10", "2", "100", "more"]
    assert "no observations yet" in histogram_svg([(1.0, 0)], "ms", 1, "latency")


def test_examples_fit():
    assert example(TensorSpec("x", np.dtype(np.int32), (-1, 2))) == "[[0, 0]]"
    assert example(TensorSpec("x", np.dtype(np.bool_), (2,))) == "[false, false]"
    assert example(TensorSpec("x", np.dtype(np.float32), (-1, 3, 224, 224))) == ""


def test_metrics(server):
    text = server.request("GET", "/metrics")[2].decode()
    for name in ("remex_requests_total{", "remex_request_seconds_bucket{", "remex_batch_rows_bucket{", "remex_batch_seconds_sum{",
                 "remex_queue_requests{", 'remex_model_ready{model="versioned",version="10"} 1.0', "remex_body_bytes 0.0"):
        assert name in text
