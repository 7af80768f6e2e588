"""The faces of SageMaker (``/ping``, ``/invocations``) and of Multi Model Server (``/ping``, ``/predictions/NAME``)."""
from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .errors import RequestError, malformed
from .images import has_many_pixels
from .payloads import arrays_of, encoded, top_classes
from .repository import Served
from .service import Service, media_type
from .tensors import parsed_json

_LARGE = 1 << 16  # bytes of a body that is decoded in a thread


def routes(service: Service) -> list[Route]:
    """Return the routes of both."""

    async def ping(request: Request) -> Response:
        return JSONResponse({"status": "Healthy!" if service.ready else "Unhealthy"}, 200 if service.ready else 503)

    async def invocations(request: Request) -> Response:
        name = request.headers.get("x-amzn-sagemaker-target-model") or service.repository.first()
        served = service.served(request, name)
        content_type, body = media_type(request.headers.get("content-type")), await service.body(request)
        if served.handler is not None:
            return _answered(await _handled(service, request, served, content_type, body))
        outputs = await _predicted(service, request, served, content_type, body)
        content, kind = encoded(request.headers.get("accept", ""), outputs)
        return Response(content, media_type=kind)

    async def predictions(request: Request) -> Response:
        served = service.served(request, request.path_params["model"], request.path_params.get("version"))
        content_type, body = media_type(request.headers.get("content-type")), await service.body(request)
        if served.handler is not None:
            return _answered(await _handled(service, request, served, content_type, body))
        if content_type == "multipart/form-data":
            outputs = await _of_parts(service, request, served, body)
        else:
            outputs = await _predicted(service, request, served, content_type, body)
        if served.labels and len(outputs) == 1 and outputs[0].ndim == 2 and outputs[0].shape[1] == len(served.labels):
            return JSONResponse(top_classes(outputs[0], served.labels))
        content, kind = encoded("application/json", outputs)
        return Response(content, media_type=kind)

    methods = ["POST", "PUT"]
    return [Route("/ping", ping), Route("/invocations", invocations, methods=["POST"]),
            Route("/predictions/{model}", predictions, methods=methods), Route("/predictions/{model}/{version}", predictions, methods=methods)]


async def _predicted(service: Service, request: Request, served: Served, content_type: str, body: bytes) -> list[np.ndarray]:
    arguments = content_type, body, served.inputs, served.preprocessing, service.limits
    arrays = arrays_of(*arguments) if len(body) < _LARGE and not has_many_pixels(body) else await service.decode(served, arrays_of, *arguments)
    return await served.predict(arrays, service.deadline(request))


async def _of_parts(service: Service, request: Request, served: Served, body: bytes) -> list[np.ndarray]:
    """Return the outputs for a form: a part for each input by its name, or a single part for the only input."""
    parts = await service.parts(request, body)
    names = [spec.name for spec in served.inputs]
    if len(parts) == 1 and len(names) == 1:
        (kind, content), = parts.values()
        return await _predicted(service, request, served, kind, content)
    if parts.keys() != set(names):
        raise malformed(f"the form is to have a part for each of the inputs {names}, received {sorted(parts)[:8]}")
    arrays = [(await service.decode(served, arrays_of, *parts[spec.name], [spec], served.preprocessing, service.limits))[0] for spec in served.inputs]
    return await served.predict(arrays, service.deadline(request))


async def _handled(service: Service, request: Request, served: Served, content_type: str, body: bytes) -> Any:
    """Return what an archive's handler answers."""
    if content_type == "multipart/form-data":
        data: dict[str, Any] = {name: content for name, (_, content) in (await service.parts(request, body)).items()}
    else:
        data = {"body": parsed_json(body, service.limits.json) if content_type == "application/json" else body}
    return await served.batcher.submit(data, 1, None, service.deadline(request))


def _answered(result: Any) -> Response:
    """Return a handler's answer as a response: bytes and texts as they are, anything else as JSON."""
    if isinstance(result, bytes):
        return Response(result, media_type="application/octet-stream")
    if isinstance(result, str):
        return Response(result, media_type="text/plain")
    try:
        return Response(json.dumps(result, default=_plain).encode(), media_type="application/json")
    except (TypeError, ValueError) as error:
        raise RequestError(500, f"the handler's answer can't be written as JSON: {error}") from None


def _plain(value: Any) -> Sequence | float:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"it holds a {type(value).__name__}")
