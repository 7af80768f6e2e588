"""Key-value stores of parameters, which reduce gradients over devices and machines: ``mx.kv``."""
import importlib as _importlib

from .base import KVStoreBase, built_in_module, create
from .kvstore import KVStore
from .kvstore_server import KVStoreServer

__all__ = ["KVStore", "KVStoreBase", "KVStoreServer", "create"]

# The modules of multi-process stores are imported when the first store of that type is made.
_in_step = "dist", "dist_sync", "dist_device", "dist_device_sync", "dist_sync_device"
built_in_module(lambda: _importlib.import_module(f"{__name__}.dist_sync"), *_in_step)
built_in_module(lambda: _importlib.import_module(f"{__name__}.sharded"), *_in_step, sharded=True)
built_in_module(lambda: _importlib.import_module(f"{__name__}.collective"), "horovod", "byteps", "p3")
built_in_module(lambda: _importlib.import_module(f"{__name__}.dist_async"), "dist_async", "dist_async_device", "dist_device_async")
