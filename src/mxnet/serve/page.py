"""The page at ``/``: what is served, how long it takes, and a form to try it. It needs no network and no script."""
from __future__ import annotations

import html
import json
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from .images import takes_images
from .repository import Served
from .service import Service
from .tensors import NAMES, TensorSpec

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1, h2 { font-weight: 600 } h2 { border-top: 1px solid #ccc; padding-top: 1rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .15rem 1rem .15rem 0; text-align: left } td.n { text-align: right }
figure { display: inline-block; margin: 0 2rem 1rem 0; vertical-align: top } figcaption { color: #555 }
svg text { font: 11px system-ui, sans-serif; fill: #555 } svg rect { fill: #3b7dbd } textarea { width: 100%; font: 13px monospace }
.bad { color: #b00 }
"""
_WIDTH, _BAR, _HEIGHT = 34, 28, 90
_MOST_NUMBERS = 64  # that a form is filled with


def routes(service: Service) -> list[Route]:
    """Return the routes of the page and of the metrics."""

    async def index(request: Request) -> Response:
        return HTMLResponse(page(service), headers={"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"})

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return [Route("/", index), Route("/metrics", metrics)]


def page(service: Service) -> str:
    """Return the page's HTML."""
    models = service.repository.models
    state = "ready" if service.ready else "stopping" if service.stopping else "loading"
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>Remex</title>"
             f"<style>{_STYLE}</style><h1>Models</h1><p>The server is <b>{state}</b>. <a href=/metrics>Metrics</a></p>"]
    for versions in models.values():
        parts += [_section(versions[version]) for version in sorted(versions, key=int, reverse=True)]
    for (name, version), reason in service.repository.failures.items():
        parts.append(f"<p class=bad>{html.escape(name)}, version {html.escape(version)}, could not be loaded: {html.escape(reason)}</p>")
    return "\n".join(parts)


def _section(served: Served) -> str:
    name, version = html.escape(served.source.name), html.escape(served.source.version)
    latency, rows = served.metrics.histogram(), served.metrics.batches()
    figures = histogram_svg(latency, "ms", 1e3, "latency of requests") + histogram_svg(rows, "rows", 1, "rows of batches")
    tensors = "".join(f"<tr><td>{kind}<td>{html.escape(spec.name)}<td>{NAMES[spec.dtype]}<td>{list(spec.shape)}</tr>"
                      for kind, specs in (("input", served.inputs), ("output", served.outputs)) for spec in specs)
    curve = "".join(f"<tr><td class=n>{size}<td class=n>{took * 1e3:.2f}<td class=n>{size / took:.0f}</tr>"
                    for size, took in served.batcher.curve.seconds.items()) if served.handler is None else ""
    if curve:
        curve = f"<table><tr><th>batch<th>ms<th>rows a second</tr>{curve}</table>"
    return (f"<h2 id='{name}'>{name}, version {version}</h2><table><tr><th><th>name<th>type<th>shape</tr>{tensors}</table>"
            f"<p>{served.batcher.pending} requests wait or are computed.</p>{figures}{curve}{_form(served, name, version)}")


def histogram_svg(buckets: Sequence[tuple[float, int]], unit: str, factor: float, title: str) -> str:
    """Return a picture of a histogram.

    Parameters
    ----------
    buckets : list of (float, int)
        Upper bounds, and how many observations lie below each and above the one before.
    unit : str
    factor : float
        What bounds are multiplied with.
    title : str

    Example
    -------
    >>> from mxnet.serve.page import histogram_svg
    >>> histogram_svg([(0.001, 3), (float("inf"), 0)], "ms", 1e3, "latency").count("<rect")
    1
    """
    used = [i for i, (_, count) in enumerate(buckets) if count]
    if not used:
        return f"<figure><figcaption>{title}: no observations yet</figcaption></figure>"
    shown = buckets[max(0, used[0] - 1):used[-1] + 2]
    most, bars = max(count for _, count in shown), []
    for i, (bound, count) in enumerate(shown):
        height = max(1.0, _HEIGHT * count / most) if count else 0
        label = "more" if bound == float("inf") else f"{bound * factor:g}"
        bars.append((f"<rect x={i * _WIDTH} y={14 + _HEIGHT - height:.1f} width={_BAR} height={height:.1f} />"
                     f"<text x={i * _WIDTH + _BAR / 2:g} y={10 + _HEIGHT - height:.1f} text-anchor=middle>{count}</text>" if count else "")
                    + f"<text x={i * _WIDTH + _BAR / 2:g} y={_HEIGHT + 27} text-anchor=middle>{label}</text>")
    return (f"<figure><svg role=img width={len(shown) * _WIDTH} height={_HEIGHT + 32}><title>{title}</title>{''.join(bars)}</svg>"
            f"<figcaption>{title}: up to so many {unit}</figcaption></figure>")


def _form(served: Served, name: str, version: str) -> str:
    action = f"<form method=post enctype=multipart/form-data target=_blank action='/predictions/{name}/{version}'>"
    if not served.inputs:
        return f"{action}<input type=file name=body required> <button>Try it</button></form>"
    if len(served.inputs) == 1 and takes_images(served.inputs[0]):
        return f"{action}<label>An image: <input type=file name='{html.escape(served.inputs[0].name)}' accept='image/*' required></label> " \
               "<button>Try it</button></form>"
    fields = "".join(f"<p><label>{html.escape(spec.name)}, as JSON<textarea name='{html.escape(spec.name)}' rows=3 required>"
                     f"{html.escape(example(spec))}</textarea></label>" for spec in served.inputs)
    return f"{action}{fields}<p><button>Try it</button></form>"


def example(spec: TensorSpec) -> str:
    """Return JSON of zeros that fits an input; nothing if it would be long."""
    shape = [1 if size < 0 else size for size in spec.shape]
    nested: object = False if spec.dtype.kind == "b" else 0
    count = 1
    for size in reversed(shape):
        nested, count = [nested] * size, count * size
        if count > _MOST_NUMBERS:
            return ""
    return json.dumps(nested)
