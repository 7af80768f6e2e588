"""The server side of a distributed store."""
from ..base import MXNetError

__all__ = ["KVStoreServer"]


class KVStoreServer:
    """Runs a store as a server for workers in other processes.

    Parameters
    ----------
    kvstore : KVStore
    """

    def __init__(self, kvstore):
        self.kvstore = kvstore

    def run(self):
        """Serve until told to stop.

        Raises
        ------
        MXNetError
            Always for the stores of one process: they have no workers to serve.
        """
        raise MXNetError(f"a store of type {self.kvstore.type!r} lives in one process and has no server to run")
