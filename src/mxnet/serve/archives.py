"""Archives of Multi Model Server (``.mar``, ``.model``): a network together with a program that handles requests, which is run only if allowed."""
from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import shutil
import sys
import tempfile
import types
import weakref
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

from ..base import MXNetError
from .errors import RequestError
from .settings import Limits

_MANIFESTS = ("MAR-INF/MANIFEST.json", "MANIFEST.json")
_MOST_MEMBERS, _MOST_MANIFEST = 10_000, 1 << 20


class Handler:
    """The program of an unpacked archive.

    Parameters
    ----------
    folder : str
        What was in the archive; it is removed with the handler.
    entry : str
        ``module:function``; without a function it is ``handle``.
    manifest : dict
    name : str
    batch_size : int
        The most requests that it gets at once.

    Raises
    ------
    MXNetError
        From `start`: if the program can't be imported, or has no such function.
    """

    def __init__(self, folder: str, entry: str, manifest: dict, name: str, batch_size: int = 1) -> None:
        self.batch_size = batch_size
        self._folder, self._entry = folder, entry
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._function: Callable[[Any, Any], Any] | None = None
        properties = {"model_dir": folder, "gpu_id": None, "batch_size": batch_size, "server_name": "Remex"}
        self._context = types.SimpleNamespace(model_name=name, manifest=manifest, system_properties=properties, request_ids={}, metrics=None)

    def start(self) -> None:
        """Import the program, and let it load its network: it is called with None for data, as Multi Model Server does."""
        module_name, _, function_name = self._entry.partition(":")
        path = os.path.join(self._folder, *module_name.removesuffix(".py").split("/")) + ".py"
        sys.path.insert(0, self._folder)  # it may import what lies beside it
        try:
            spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
            if spec is None or spec.loader is None or not os.path.isfile(path):
                raise MXNetError(f"the archive has no file {module_name!r}, which its manifest names as handler")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self._function = _function(module, function_name or "handle", self._context)
            self._function(None, self._context)
        except MXNetError:
            raise
        except Exception as error:
            raise MXNetError(f"the handler {self._entry!r} fails to start: {type(error).__name__}: {error}") from error
        finally:
            sys.path.remove(self._folder)

    def __call__(self, requests: Sequence[dict[str, Any]]) -> list[Any]:
        """Return an answer for each request: a dict of the body's parts, or of ``body``."""
        if self._function is None:
            raise MXNetError("the handler was not started")
        try:
            answers = self._function(list(requests), self._context)
        except Exception as error:
            raise RequestError(500, f"the handler failed: {type(error).__name__}: {str(error)[:500]}") from error
        if not isinstance(answers, list) or len(answers) != len(requests):
            raise RequestError(500, f"the handler is to return a list of {len(requests)} answers, and returned {type(answers).__name__}")
        return answers


def _function(module: types.ModuleType, name: str, context: Any) -> Callable[[Any, Any], Any]:
    """Return a function of a module, or the method of that name of its only class, initialized."""
    if callable(getattr(module, name, None)):
        return getattr(module, name)
    classes = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__ and hasattr(c, name)]
    if len(classes) != 1:
        raise MXNetError(f"the handler has neither a function {name!r} nor exactly one class with such a method")
    service = classes[0]()
    if hasattr(service, "initialize"):
        service.initialize(context)
    return lambda data, ctx: getattr(service, name)(data, ctx) if data is not None else None


def opened(path: str, allow_code: bool, limits: Limits) -> Handler:
    """Return the handler of an archive, unpacked but not started.

    Raises
    ------
    MXNetError
        If code is not allowed, or the archive is damaged, too large, or has no manifest that names a handler.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(archive, path)
            entry = _entry(manifest, path)
            if not allow_code:
                raise MXNetError(f"{path} is answered by a program in it, {entry!r}, which could do anything that this server may do. If it is "
                                 "trusted, say --allow-code; else unpack it and serve the folder: the network's files and signature.json are enough")
            folder = _unpacked(archive, path, limits)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:  # encrypted, unknown compression
        raise MXNetError(f"{path} is no archive that can be read: {error}") from error
    return Handler(folder, entry, manifest, os.path.splitext(os.path.basename(path))[0])


def _manifest(archive: zipfile.ZipFile, path: str) -> dict:
    names = set(archive.namelist())
    found = next((name for name in _MANIFESTS if name in names), None)
    if found is None or archive.getinfo(found).file_size > _MOST_MANIFEST:
        raise MXNetError(f"{path}: an archive of Multi Model Server has a {_MANIFESTS[0]} of at most {_MOST_MANIFEST} bytes, received "
                         f"{'none' if found is None else archive.getinfo(found).file_size}")
    try:
        manifest = json.loads(archive.read(found))
    except (ValueError, RecursionError) as error:
        raise MXNetError(f"{path}: {found} is no JSON: {error}") from None
    if not isinstance(manifest, dict):
        raise MXNetError(f"{path}: {found} is to hold an object")
    return manifest


def _entry(manifest: dict, path: str) -> str:
    """Return what a manifest names as its handler, in the form of Multi Model Server 1.x or 0.x."""
    for part, key in (("model", "handler"), ("Model", "Service")):
        entry = manifest.get(part, {}).get(key) if isinstance(manifest.get(part, {}), dict) else None
        if isinstance(entry, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./-]*(:[A-Za-z_][A-Za-z0-9_]*)?", entry) and ".." not in entry:
            return entry
    raise MXNetError(f"{path}: the manifest names no handler ('model': {{'handler': 'module:function'}})")


def _unpacked(archive: zipfile.ZipFile, path: str, limits: Limits) -> str:
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if len(members) > _MOST_MEMBERS or size > limits.archive:
        raise MXNetError(f"{path}: an archive of at most {_MOST_MEMBERS} files and {limits.archive} bytes is unpacked, this has {len(members)} "
                         f"and {size}")
    folder = tempfile.mkdtemp(prefix="remex-model-")
    try:
        archive.extractall(folder)  # names that lead out of the folder lose what leads out of it
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder
