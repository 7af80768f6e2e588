"""Stores that keep parameters by key and join what several devices compute: ``mx.kv``."""
from .base import KVStoreBase, create
from .kvstore import KVStore
from .kvstore_server import KVStoreServer

__all__ = ["KVStore", "KVStoreBase", "KVStoreServer", "create"]
