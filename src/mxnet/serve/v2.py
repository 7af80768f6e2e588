"""The Open Inference Protocol, version 2 (KServe, Triton): health, metadata, inference in JSON and binary, and the model repository's extension."""
from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..libinfo import remex_version
from .errors import RequestError, malformed
from .repository import Served
from .service import Service
from .tensors import DATATYPES, NAMES, TensorSpec, checked_shape, from_bytes, from_nested, parsed_json, to_nested

_HEADER = "inference-header-content-length"
# Parameters that would change the answer, and aren't known here.
_REFUSED = ("sequence_id", "sequence_start", "sequence_end", "priority", "classification", "shared_memory_region", "shared_memory_offset",
            "shared_memory_byte_size")


class Wanted(NamedTuple):
    """An output that a request asks for."""

    name: str
    binary: bool


class InferRequest(NamedTuple):
    """A request for inference.

    `timeout` is in seconds, or None.
    """

    id: str | None
    arrays: list[np.ndarray]
    outputs: list[Wanted]
    timeout: float | None


def parse(body: bytes, header: str | None, served: Served, json_limit: int, most_tensors: int) -> InferRequest:
    """Read a request for inference.

    Parameters
    ----------
    body : bytes
    header : str or None
        ``Inference-Header-Content-Length``: how many bytes of the body are JSON, if binary data follow.
    served : Served
    json_limit, most_tensors : int

    Raises
    ------
    RequestError
        If it is malformed, or does not fit the model (400), or is too large (413).
    """
    length = len(body)
    if header is not None:
        if not header.isdigit() or len(header) > 18 or int(header) > len(body):
            raise malformed(f"Inference-Header-Content-Length is to say how many of the body's {len(body)} bytes are JSON, received {header[:40]!r}")
        length = int(header)
    content = parsed_json(body if length == len(body) else body[:length], json_limit)
    if not isinstance(content, dict):
        raise malformed(f"the body is to be an object with 'inputs', received {reprlib.repr(content)}")
    request_id, parameters = content.get("id"), _parameters(content, "the request")
    if request_id is not None and not isinstance(request_id, str):
        raise malformed(f"'id' must be a text, received {request_id!r:.40}")
    arrays = _inputs(content.get("inputs"), memoryview(body)[length:], served, most_tensors)
    binary = parameters.get("binary_data_output", False)
    timeout = parameters.get("timeout")
    if timeout is not None and (type(timeout) is not int or timeout <= 0):
        raise malformed(f"the parameter 'timeout' must be a positive number of microseconds, received {timeout!r:.40}")
    return InferRequest(request_id, arrays, _outputs(content.get("outputs"), served.outputs, binary is True, most_tensors),
                        None if timeout is None else timeout / 1e6)


def _parameters(entry: dict, what: str) -> dict:
    parameters = entry.get("parameters", {})
    if not isinstance(parameters, dict):
        raise malformed(f"'parameters' of {what} must be an object, received {reprlib.repr(parameters)}")
    refused = [name for name in _REFUSED if parameters.get(name)]
    if refused:
        raise malformed(f"the parameter {refused[0]!r} is not supported")
    return parameters


def _entries(given: Any, what: str, known: Sequence[TensorSpec], most: int) -> dict[str, dict]:
    """Return the named tensors of a request by name."""
    if not isinstance(given, list) or not given:
        raise malformed(f"'{what}' must be a list of tensors, received {reprlib.repr(given)}")
    if len(given) > most:
        raise RequestError(413, f"at most {most} {what} are taken, received {len(given)}")
    names = [spec.name for spec in known]
    found: dict[str, dict] = {}
    for entry in given:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name not in names or name in found:
            raise malformed(f"each of '{what}' must have a 'name', once, out of {names}; received {str(name)[:80]!r}")
        found[name] = entry
    return found


def _inputs(given: Any, rest: memoryview, served: Served, most: int) -> list[np.ndarray]:
    arrays, at = {}, 0
    entries = _entries(given, "inputs", served.inputs, most)
    specs = {spec.name: spec for spec in served.inputs}
    if len(entries) != len(specs):
        raise malformed(f"the model has the inputs {list(specs)}, received {list(entries)}")
    for name, entry in entries.items():
        spec = specs[name]
        if entry.get("datatype") != NAMES[spec.dtype]:
            raise malformed(f"the input {name!r} is of type {NAMES[spec.dtype]}, received {str(entry.get('datatype'))[:40]!r}; served types are "
                            f"{', '.join(DATATYPES)}")
        shape = checked_shape(entry.get("shape"), name)
        spec.check(shape)
        size = _parameters(entry, f"the input {name!r}").get("binary_data_size")
        if size is None:
            arrays[name] = from_nested(entry.get("data"), shape, spec.dtype, name)
            continue
        if type(size) is not int or not 0 <= size <= len(rest) - at or "data" in entry:
            raise malformed(f"the input {name!r}: {len(rest) - at} bytes of binary data are left, its 'binary_data_size' is {str(size)[:40]}"
                            + (", and it has 'data', too" if "data" in entry else ""))
        arrays[name] = from_bytes(rest[at:at + size], shape, spec.dtype, name)
        at += size
    if at != len(rest):
        raise malformed(f"{len(rest) - at} bytes follow the last input's")
    return [arrays[spec.name] for spec in served.inputs]


def _outputs(given: Any, known: Sequence[TensorSpec], binary: bool, most: int) -> list[Wanted]:
    if given is None:
        return [Wanted(spec.name, binary) for spec in known]
    wanted = []
    for name, entry in _entries(given, "outputs", known, most).items():
        own = _parameters(entry, f"the output {name!r}").get("binary_data", binary)
        if type(own) is not bool:
            raise malformed(f"'binary_data' of the output {name!r} must be true or false")
        wanted.append(Wanted(name, own))
    return wanted


def answer(request: InferRequest, served: Served, outputs: Sequence[np.ndarray]) -> Response:
    """Return the response to a request for inference: JSON, followed by the outputs that are wanted as binary data."""
    by_name = {spec.name: array for spec, array in zip(served.outputs, outputs)}
    entries, binary = [], []
    for name, as_bytes in request.outputs:
        array = by_name[name]
        entry: dict[str, Any] = {"name": name, "datatype": NAMES[array.dtype], "shape": list(array.shape)}
        if as_bytes:
            data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
            entry["parameters"] = {"binary_data_size": len(data)}
            binary.append(data)
        else:
            entry["data"] = to_nested(array, flat=True)
        entries.append(entry)
    content: dict[str, Any] = {"model_name": served.source.name, "model_version": served.source.version, "outputs": entries}
    if request.id is not None:
        content["id"] = request.id
    head = json.dumps(content).encode()
    if not binary:
        return Response(head, media_type="application/json")
    return Response(b"".join([head, *binary]), media_type="application/octet-stream", headers={"Inference-Header-Content-Length": str(len(head))})


def routes(service: Service) -> list[Route]:
    """Return the protocol's routes."""

    async def live(request: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(request: Request) -> Response:
        return JSONResponse({"ready": service.ready}, 200 if service.ready else 503)

    async def server(request: Request) -> Response:
        return JSONResponse({"name": "remex", "version": remex_version, "extensions": ["binary_tensor_data", "model_repository"]})

    def found(request: Request) -> Served:
        served = service.served(request, request.path_params["model"], request.path_params.get("version"))
        if served.handler is not None:
            raise RequestError(400, f"the model {served.source.name!r} is an archive with a handler: it answers at /predictions/{served.source.name}")
        return served

    async def model(request: Request) -> Response:
        served = found(request)
        return JSONResponse({"name": served.source.name, "versions": sorted(service.repository.models[served.source.name], key=int),
                             "platform": "mxnet", "inputs": list(map(_described, served.inputs)), "outputs": list(map(_described, served.outputs))})

    async def model_ready(request: Request) -> Response:
        served = service.served(request, request.path_params["model"], request.path_params.get("version"))
        return JSONResponse({"name": served.source.name, "ready": not service.stopping}, 503 if service.stopping else 200)

    async def infer(request: Request) -> Response:
        served = found(request)
        body = await service.body(request)
        parsed = parse(body, request.headers.get(_HEADER), served, service.limits.json, service.limits.tensors)
        deadline = service.deadline(request)
        if parsed.timeout is not None:
            deadline = min(deadline, request.scope["remex"].start + parsed.timeout)
        return answer(parsed, served, await served.predict(parsed.arrays, deadline))

    async def index(request: Request) -> Response:
        content = await service.body(request)
        only_ready = bool(content) and (parsed := parsed_json(content, service.limits.json)) is not None and isinstance(parsed, dict) \
            and parsed.get("ready") is True
        return JSONResponse(_index(service, only_ready))

    async def change(request: Request) -> Response:
        service.require_control(request)
        content = await service.body(request)
        parsed = parsed_json(content, service.limits.json) if content else {}
        unknown = parsed.get("parameters") if isinstance(parsed, dict) else True
        if unknown and set(unknown if isinstance(unknown, dict) else "?") - {"unload_dependents"}:
            raise malformed(f"a model is loaded from the files that the server was started with: no parameters are taken, received "
                            f"{reprlib.repr(parsed)}")
        if request.url.path.endswith("/load"):
            await service.repository.load(request.path_params["model"])
        else:
            await service.repository.unload(request.path_params["model"])
        return JSONResponse({})

    of_model = ["/v2/models/{model}/versions/{version}", "/v2/models/{model}"]
    return [*[Route(path + "/infer", infer, methods=["POST"]) for path in of_model], *[Route(path + "/ready", model_ready) for path in of_model],
            *[Route(path, model) for path in of_model], Route("/v2/health/live", live), Route("/v2/health/ready", ready), Route("/v2", server),
            Route("/v2/repository/index", index, methods=["POST"]),
            *[Route(f"/v2/repository/models/{{model}}/{verb}", change, methods=["POST"]) for verb in ("load", "unload")]]


def _described(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "datatype": NAMES[spec.dtype], "shape": list(spec.shape)}


def _index(service: Service, only_ready: bool) -> list[dict[str, str]]:
    """Return the state of each version, and why it failed to load where it did."""
    repository = service.repository
    entries = [{"name": name, "version": version, "state": "READY", "reason": repository.failures.get((name, version), "")}
               for name, versions in repository.models.items() for version in versions]
    if not only_ready:
        entries += [{"name": name, "version": version, "state": "UNAVAILABLE", "reason": reason}
                    for (name, version), reason in repository.failures.items() if version not in repository.models.get(name, {})]
    return entries
