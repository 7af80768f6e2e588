"""Imports of modules at their first use."""
from __future__ import annotations

import functools
import importlib
import operator
import os
import sys
import threading
from typing import Any

_PATIENCE = 5.0  # seconds; an import may wait for another thread's import
_one_at_a_time, _after_fork = threading.RLock(), threading.RLock()
if hasattr(os, "register_at_fork"):  # in the child the lock's owner does not exist
    os.register_at_fork(after_in_child=functools.partial(operator.setitem, globals(), "_one_at_a_time", _after_fork))


def load_module(name: str) -> Any:
    """Import a module for an attribute access, in one thread at a time.

    If one thread imports a package and another one a module of it, Python reports a deadlock and fails (its issue 83065).
    """
    if (module := sys.modules.get(name)) is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    lock = _one_at_a_time
    taken = lock.acquire(timeout=_PATIENCE)
    try:
        return importlib.import_module(name)
    finally:
        if taken:
            lock.release()
