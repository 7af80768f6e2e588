"""Classify an image file: the JPEG itself, then the same pixels as a binary tensor of the Open Inference Protocol.

    python client.py http://127.0.0.1:8080 digits digit.png
"""
import argparse
import json
import urllib.request

import cv2
import numpy as np


def classify(server, model, content):
    """Return the classes of an image file, by the interface of Multi Model Server."""
    request = urllib.request.Request(f"{server}/predictions/{model}", content, {"Content-Type": "application/octet-stream"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def infer(server, model, array):
    """Return the first output of a model with one input, sent and received as bytes."""
    spec = {"name": "data", "shape": array.shape, "datatype": "FP32", "parameters": {"binary_data_size": array.nbytes}}
    head = json.dumps({"inputs": [spec], "parameters": {"binary_data_output": True}}).encode()
    request = urllib.request.Request(f"{server}/v2/models/{model}/infer", head + array.tobytes(), {
        "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))})
    with urllib.request.urlopen(request) as response:
        content, length = response.read(), int(response.headers["Inference-Header-Content-Length"])
    out = json.loads(content[:length])["outputs"][0]
    return np.frombuffer(content[length:], np.float32).reshape(out["shape"])


def main(server, model, file):
    """Print both answers."""
    with open(file, "rb") as image:
        content = image.read()
    print(json.dumps(classify(server, model, content)))
    pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_GRAYSCALE).astype(np.float32)
    print("infer:", infer(server, model, pixels[None, None]).argmax(axis=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="the URL of the server")
    parser.add_argument("model", help="the name of the model")
    parser.add_argument("file", help="the image file")
    main(**vars(parser.parse_args()))
