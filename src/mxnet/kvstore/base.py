"""The interface of key-value stores, the registry of their implementations, and `create`."""
from __future__ import annotations

import functools
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import environment
from ..base import MXNetError
from ..ndarray import NDArray, dispatch
from ..suggestions import did_you_mean, shortened

if TYPE_CHECKING:
    from ..optimizer import Optimizer

__all__ = ["KVStoreBase", "create"]

_BUILT_IN: dict = {}  # from a type that is no registered class to its class
_SHARDED: dict = {}  # likewise for shard=True
_latest = None  # a weak reference to the latest distributed store


_MOVE_VALUES = ("broadcast", "init", "pull", "push", "pushpull", "row_sparse_pull")


def _unrecorded(method):
    """Wrap a method so that autograd does not record it: filling a store in a block's first call is not part of the block's computation."""
    @functools.wraps(method)
    def call(*args, **kwargs):
        if not dispatch.mode.recording:
            return method(*args, **kwargs)
        with dispatch.Scope(False, None):
            return method(*args, **kwargs)
    return call


def built_in_module(load: Callable[[], Any], *types: str, sharded: bool = False) -> None:
    """Register a lazy factory of stores of these types: `load` imports the module of their class at the first use."""
    makers = _SHARDED if sharded else _BUILT_IN

    def make(kind):
        load()
        return makers[kind](kind)
    makers.update(dict.fromkeys(types, make))


def built_in(*types: str, sharded: bool = False) -> Callable[[Any], Any]:
    """Return a decorator that registers a class for `create` under these types, or for shard=True if `sharded`."""
    def register(klass):
        (_SHARDED if sharded else _BUILT_IN).update(dict.fromkeys(types, klass))
        return klass
    return register


class LostWorkerError(MXNetError):
    """Another worker of the job has died, does not respond, or has left: what this one waits for never comes."""


class KVStoreBase:
    """The interface of all key-value stores; a class registered with `KVStoreBase.register` can be made by name.

    Example
    -------
    >>> import mxnet as mx
    >>> store = mx.kv.create('teststore')      # a registered class
    >>> value = mx.nd.zeros((2,))
    >>> store.broadcast('w', mx.nd.ones((2,)), out=value)
    >>> value.asnumpy()
    array([1., 1.], dtype=float32)
    """

    #: The capability to run the optimizer: see `is_capable`.
    OPTIMIZER = "optimizer"

    #: True if `pushpull` of many keys in one call is faster than one by one, since they are sent together.
    batches = False

    #: True if `pushpull` without an optimizer keeps the sums for a later pull. A Trainer's own store does not need it.
    keeps_sums = True

    kv_registry: dict[str, Any] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _MOVE_VALUES:
            method = vars(cls).get(name)
            if isinstance(method, types.FunctionType):
                setattr(cls, name, _unrecorded(method))

    def broadcast(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any],
                  priority: int = 0) -> None:
        """Broadcast the value of rank 0 to every worker and device.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, or list of them
        out : NDArray, list of NDArray, or list of lists
            The arrays that receive the values.
        priority : int
            Keys of higher priority go first.
        """
        raise NotImplementedError()

    def pushpull(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any] | None = None,
                 priority: int = 0) -> None:
        """Add up the values of all workers and devices, and write the sum to `out` (default: over the values).

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, list of NDArray, or list of lists
        out : NDArray, list of NDArray, or list of lists, optional
        priority : int
            Keys of higher priority go first.
        """
        raise NotImplementedError()

    def _expect(self, names, arrays):
        """Announce the gradients of the next backward; return a function to call with each finished key, or None if it has no effect."""

    def _replace(self, key, value):
        """Replace a key's value, from which the optimizer continues; return False if the store does not support this."""
        return False

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Set the optimizer with which the store updates its values by pushed gradients."""
        raise NotImplementedError()

    def is_capable(self, capability: str) -> bool:
        """Return True if the store offers ``KVStoreBase.OPTIMIZER``, the one capability that is defined."""
        raise NotImplementedError()

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Save the states of the store's optimizer, and with `dump_optimizer` the optimizer itself."""
        raise NotImplementedError()

    def load_optimizer_states(self, fname: str) -> None:
        """Load saved optimizer states."""
        raise NotImplementedError()

    @property
    def type(self) -> str:
        """The name of the store's type."""
        raise NotImplementedError()

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        raise NotImplementedError()

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        raise NotImplementedError()

    @staticmethod
    def register(klass: Any) -> Any:
        """Register a class of stores for `create` under its name in lower case; usable as a decorator."""
        if not isinstance(klass, type):
            raise MXNetError(f"KVStoreBase.register takes a class, received {shortened(klass)}")
        name = klass.__name__.lower()
        known = KVStoreBase.kv_registry.get(name)
        if known is not None:
            warnings.warn(f"kvstore {klass.__module__}.{klass.__name__} replaces {known.__module__}.{known.__name__}", stacklevel=2)
        KVStoreBase.kv_registry[name] = klass
        return klass


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store for tests: sums and broadcasts within one process, without keeping values."""

    __test__ = False  # for pytest: not a test class

    def broadcast(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any],
                  priority: int = 0) -> None:
        """Write `value` to `out`."""
        _write_each(out, value)

    def pushpull(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any] | None = None,
                 priority: int = 0) -> None:
        """Write the sum of the values to `out`, or over the values."""
        if isinstance(value, NDArray):
            if out is not None:
                _write_each(out, value)
            return
        context = value[0].ctx
        _write_each(value if out is None else out, sum((v._on(context) for v in value[1:]), value[0]))

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return False: this store has no optimizer."""
        return check_capability(capability) and False

    @property
    def type(self) -> str:
        """``'teststore'``"""
        return "teststore"

    @property
    def rank(self) -> int:
        """0"""
        return 0

    @property
    def num_workers(self) -> int:
        """1"""
        return 1


def _write_each(out, value):
    for target in out if isinstance(out, list) else [out]:
        target[:] = value


def check_capability(capability: str) -> bool:
    """Return True, or raise a ValueError if `capability` is no capability of stores."""
    if capability.lower() != KVStoreBase.OPTIMIZER:
        raise ValueError(f"Unknown capability: {capability}; expected {KVStoreBase.OPTIMIZER!r}")
    return True


def spans_processes(kind: str) -> bool:
    """Return True if a store of this type spans processes, so that it is needed even with one device."""
    return "dist" in kind or kind.lower() in ("horovod", "byteps", "p3")


def create(name: str = "local", shard: bool | None = None) -> KVStoreBase:
    """Make a key-value store.

    Parameters
    ----------
    name : str
        ``'local'`` (also ``'local_update_cpu'``, ``'local_allreduce_cpu'``): values are added up on the CPU.
        ``'device'`` (also ``'local_allreduce_device'``): values are added up on the devices that hold them.
        ``'nccl'``: as ``'device'``, for GPUs.
        ``'dist_sync'`` (also ``'dist'``), ``'dist_device_sync'`` (also ``'dist_sync_device'``, ``'dist_device'``): values are added up over all
        workers of a job too, synchronously; see docs/distributed.md.
        ``'horovod'``, ``'byteps'``, ``'p3'``: values are added up over all workers, which run the optimizer.
        ``'dist_async'``: servers of the job keep the values, and update them at each push of a worker.
        Or the name of a class registered with `KVStoreBase.register`.
    shard : bool, optional
        For ``'dist_sync'`` and its aliases: if True, each worker updates a part of the weights, and keeps only that part of the optimizer's
        states. The default is ``MXNET_KVSTORE_SHARD``.

    Returns
    -------
    KVStoreBase

    Raises
    ------
    MXNetError
        If there is no such type, if torch has no CUDA with NCCL for ``'nccl'``, or if the type does not support `shard`.

    Example
    -------
    >>> import mxnet as mx
    >>> store = mx.kv.create('local')
    >>> store.init(3, mx.nd.zeros((2,)))
    >>> store.push(3, [mx.nd.ones((2,), mx.cpu(0)), mx.nd.ones((2,), mx.cpu(1))])
    >>> value = mx.nd.empty((2,))
    >>> store.pull(3, out=value)
    >>> value.asnumpy()
    array([2., 2.], dtype=float32)
    """
    if not isinstance(name, str):
        raise TypeError(f"kvstore.create: name must be a string, received {shortened(name)}")
    name = name.lower()
    if name.startswith("dist") and (environment.get_str("DMLC_PS_VAN_TYPE") or "").lower() == "p3":
        if "async" in name:
            raise MXNetError(f"kvstore.create: {name!r} does not go with DMLC_PS_VAN_TYPE=p3, whose workers go in step; use 'dist_sync'")
        name = "p3"
    if shard and name not in _SHARDED:
        raise MXNetError(f"kvstore.create: shard=True goes with 'dist_sync' and 'dist_device_sync', received {shortened(name)}")
    if name in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name]()
    if name not in _BUILT_IN:
        raise MXNetError(f"kvstore.create: unknown type {name!r}; the types of this release are {', '.join(_BUILT_IN)} and the "
                         f"registered ones: {', '.join(sorted(KVStoreBase.kv_registry))}"
                         f"{did_you_mean(name, [*_BUILT_IN, *KVStoreBase.kv_registry])}")
    if name == "nccl":
        _require_nccl()
    global _latest
    sharded = name in _SHARDED and (environment.get_bool("MXNET_KVSTORE_SHARD") if shard is None else shard)
    store = (_SHARDED if sharded else _BUILT_IN)[name](name)
    if "dist" in name:
        _latest = weakref.ref(store)
    return store


def distributed_store() -> Any:
    """Return the latest distributed store of this process, or None if there is none any more."""
    return _latest and _latest()


def _require_nccl():
    import torch
    if not (torch.cuda.is_available() and torch.distributed.is_available() and torch.distributed.is_nccl_available()):
        raise MXNetError("kvstore.create: 'nccl' needs a GPU and a torch build with CUDA and NCCL; use 'local' or 'device'")
