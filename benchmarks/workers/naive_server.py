"""Serve a model with Starlette, the simplest way: each request is one forward pass.

    python naive_server.py PREFIX SIZES PORT
"""
import json
import sys

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

import mxnet as mx

prefix, sizes, port = sys.argv[1], tuple(map(int, sys.argv[2].split(","))), int(sys.argv[3])
net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
net.hybridize(static_alloc=True, static_shape=True)
net(mx.nd.zeros((1, *sizes)))


def infer(request_body, header_length):
    """Return the answer to a request with binary data."""
    data = np.frombuffer(request_body, np.float32, offset=header_length).reshape(-1, *sizes)
    out = net(mx.nd.array(data)).asnumpy()
    head = json.dumps({"outputs": [{"name": "out", "datatype": "FP32", "shape": out.shape, "parameters": {"binary_data_size": out.nbytes}}]}).encode()
    return Response(head + out.tobytes(), media_type="application/octet-stream", headers={"Inference-Header-Content-Length": str(len(head))})


async def endpoint(request):
    """Answer in the event loop."""
    return infer(await request.body(), int(request.headers["inference-header-content-length"]))


uvicorn.run(Starlette(routes=[Route("/infer", endpoint, methods=["POST"])]), port=port, log_level="error")
