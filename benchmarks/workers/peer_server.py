"""The same network behind a framework, as its guide says; run by the Python of an environment that has it (``--peer-python``).

    python peer_server.py fastapi|litserve PREFIX SIZES PORT BATCH

FastAPI: a plain ``def`` endpoint that runs the network once for each request. LitServe: its batching, with the same largest batch as ours; its
requests are JSON, in which the numbers stand in base64.
"""
import base64
import json
import sys

import numpy as np

kind, prefix, sizes, port, batch = sys.argv[1], sys.argv[2], tuple(map(int, sys.argv[3].split(","))), int(sys.argv[4]), int(sys.argv[5])


def network():
    """The network, compiled."""
    import mxnet as mx
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    net.hybridize(static_alloc=True, static_shape=True)
    net(mx.nd.zeros((1, *sizes)))
    return lambda data: net(mx.nd.array(data)).asnumpy()


def run_fastapi():
    """Serve one forward pass for each request."""
    import uvicorn
    from fastapi import Depends, FastAPI, Request, Response
    app, net = FastAPI(), network()

    async def content(request: Request):
        return await request.body(), int(request.headers["inference-header-content-length"])

    @app.post("/infer")
    def infer(given=Depends(content)):
        body, start = given
        out = net(np.frombuffer(body, np.float32, offset=start).reshape(-1, *sizes))
        head = json.dumps({"outputs": [{"name": "out", "datatype": "FP32", "shape": out.shape, "parameters": {"binary_data_size": out.nbytes}}]})
        return Response(head.encode() + out.tobytes(), media_type="application/octet-stream")

    uvicorn.run(app, port=port, log_level="error")


def run_litserve():
    """Serve batches of what has come within 5 ms."""
    api = Api(max_batch_size=batch, batch_timeout=0.005, api_path="/infer")
    litserve.LitServer(api, accelerator="cpu", timeout=600).run(host="127.0.0.1", port=port, log_level="error", generate_client_file=False)


if kind == "litserve":  # at the top, where the process that computes finds it
    import litserve

    class Api(litserve.LitAPI):
        """The network for base64 in JSON."""

        def setup(self, device):
            self.net = network()

        def decode_request(self, request):
            return np.frombuffer(base64.b64decode(request["data"]), np.float32).reshape(sizes)

        def batch(self, inputs):
            return np.stack(inputs)

        def predict(self, x):
            return self.net(x if x.ndim > len(sizes) else x[None])

        def unbatch(self, output):
            return list(output)

        def encode_response(self, output):
            return {"data": base64.b64encode(output.tobytes()).decode()}


if __name__ == "__main__":
    {"fastapi": run_fastapi, "litserve": run_litserve}[kind]()
