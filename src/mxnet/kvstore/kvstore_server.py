"""The server side of a distributed store."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..base import MXNetError

if TYPE_CHECKING:
    from .base import KVStoreBase

__all__ = ["KVStoreServer"]


class KVStoreServer:
    """Runs a store as a server for workers in other processes.

    Processes that are started with ``DMLC_ROLE=server`` serve from the import of mxnet on, and never use this class.

    Parameters
    ----------
    kvstore : KVStore

    Example
    -------
    >>> import mxnet as mx
    >>> try:
    ...     mx.kvstore.KVStoreServer(mx.kv.create('local')).run()
    ... except mx.MXNetError as error:
    ...     print(error)
    a store of type 'local' lives in one process and has no server to run
    """

    def __init__(self, kvstore: KVStoreBase):
        self.kvstore = kvstore

    def run(self) -> None:
        """Raise an error: this process is no server.

        Raises
        ------
        MXNetError
            Always: a process that has a store is no server.
        """
        if "dist" in self.kvstore.type:
            raise MXNetError(f"this process is a worker of a job, as its store of type {self.kvstore.type!r} shows; servers are started with "
                             "DMLC_ROLE=server")
        raise MXNetError(f"a store of type {self.kvstore.type!r} lives in one process and has no server to run")
