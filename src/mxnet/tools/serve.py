"""Serve models over HTTP: the Open Inference Protocol (KServe), SageMaker's and Multi Model Server's interfaces.

``python -m mxnet.tools.serve resnet=models/resnet --input data=-1,3,224,224`` serves ``models/resnet-symbol.json`` with its parameters;
docs/serving.md is the guide.
"""
from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base import MXNetError
from ..context import Context, cpu, gpu
from ..installation import DISTRIBUTION
from .command import command, parser

if TYPE_CHECKING:
    from ..serve.tensors import TensorSpec

_TYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")


def build_parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    from ..serve.settings import Batching, Limits
    p = parser("serve")
    add = p.add_argument
    add("models", nargs="+", metavar="[NAME=]PATH", help="PREFIX of PREFIX-symbol.json and PREFIX-0000.params, an .onnx file, a folder with one of "
        "these, with versions (1, 2, ...) or with several models, or an archive of Multi Model Server (.mar, .model)")
    add("--input", action="append", default=[], metavar="[MODEL:]NAME=SIZES[:TYPE]",
        help="an input's shape, -1 for what is free, such as data=-1,3,224,224 or tokens=-1,128:int32; a first size that is given turns batching off")
    add("--host", default="127.0.0.1", help="the address to listen on; 0.0.0.0 for all")
    add("--port", type=int, default=int(os.environ.get("SAGEMAKER_BIND_TO_PORT", 8080)), help="0 takes a free one")
    add("--device", default="cpu", help="cpu, or gpu(0)")
    add("--latency-bound", type=float, default=1e3 * Batching.bound, metavar="MS", help="two batches are to fit into so much time")
    add("--max-batch", type=int, default=Batching.largest, help="rows of a batch; 1 turns batching off")
    add("--timeout", type=float, default=Limits.timeout, metavar="S", help="until a request is answered with 504")
    add("--queue", type=int, default=Limits.queue, help="requests of one model that may wait; more get 429")
    add("--max-body", type=int, default=Limits.body, metavar="BYTES", help="of one request")
    add("--max-memory", type=int, default=Limits.memory, metavar="BYTES", help="of the bodies of all requests at one time")
    add("--connections", type=int, default=Limits.connections, help="that are open at one time; more get 503")
    add("--control", choices=("local", "any", "off"), default="local", help="who may load and unload models by requests")
    add("--allow-code", action="store_true", help="run the handlers of archives; they can do anything that this process may do")
    add("--grace", type=float, default=0.0, metavar="S", help="how long new connections are taken after SIGTERM")
    add("--no-access-log", action="store_true", help="log no requests")
    return p


def parse_input(text: str) -> tuple[str | None, TensorSpec]:
    """Return the model's name (or None) and the `TensorSpec` of an ``--input``.

    Example
    -------
    >>> from mxnet.tools.serve import parse_input
    >>> parse_input("bert:tokens=-1,128:int32")
    ('bert', TensorSpec(name='tokens', dtype=dtype('int32'), shape=(-1, 128)))
    """
    from ..serve.tensors import TensorSpec
    name, _, rest = text.partition("=")
    model, colon, own = name.partition(":")
    sizes, _, kind = rest.partition(":")
    try:
        shape = tuple(int(size) for size in sizes.split(","))
    except ValueError:
        shape = ()
    if not name or not shape or any(size < 1 and size != -1 for size in shape) or (kind or "float32") not in _TYPES:
        raise MXNetError(f"--input is [MODEL:]NAME=SIZES[:TYPE], such as data=-1,3,224,224, with one of the types {', '.join(_TYPES)}; "
                         f"received {text!r}")
    return (model if colon else None), TensorSpec(own if colon else name, np.dtype(kind or "float32"), shape)


def parse_device(text: str) -> Context:
    """Return the context that ``--device`` names."""
    kind, _, number = text.partition("(")
    if kind == "cpu":
        return cpu()
    if kind == "gpu" and (number == "" or number.endswith(")") and number[:-1].isdigit()):
        return gpu(int(number[:-1] or 0) if number else 0)
    raise MXNetError(f"--device is cpu or gpu(0), received {text!r}")


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; the exit status."""
    args = build_parser().parse_args(argv)
    try:
        from ..serve.server import Server
        from ..serve.settings import Batching, Limits, Settings
    except ImportError as error:
        print(f"serving takes packages that are missing ({error}): pip install '{DISTRIBUTION}[serve]'", file=sys.stderr)
        return 1
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr, level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # what clients send wrongly fills no log
    logging.getLogger("mxnet.serve.access").setLevel(logging.WARNING if args.no_access_log else logging.INFO)
    limits = Limits(body=args.max_body, memory=args.max_memory, queue=args.queue, timeout=args.timeout, connections=args.connections)
    try:
        settings = Settings(args.models, [parse_input(text) for text in args.input], parse_device(args.device), args.host, args.port, limits,
                            Batching(args.latency_bound / 1e3, args.max_batch), args.allow_code, args.control, args.grace)
        return Server(settings, announce=lambda text: print(text, flush=True)).run()
    except MXNetError as error:
        print(f"serve: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
