"""Stores whose workers run the optimizer: ``horovod``, ``byteps`` and ``p3``, on torch.distributed."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import environment
from ..base import MXNetError
from . import group
from .base import KVStoreBase, built_in, check_capability
from .dist_sync import DistSyncKVStore, hand_over
from .kvstore import key_value_pairs
from .overlap import COLLECTS, Overlap

if TYPE_CHECKING:
    from ..ndarray import NDArray


@built_in("horovod", "byteps")
class CollectiveKVStore(group.Member, KVStoreBase):
    """A store without values: it sums over all workers, and broadcasts; `mxnet.kv.create` makes it for ``horovod`` and ``byteps``.

    Neither of these packages is needed. A process that was not started by a launcher is a job of one worker.

    Parameters
    ----------
    handle : str
        The type.
    """

    batches = True

    def __init__(self, handle: str):
        self._type = handle
        self._group = group.joined(handle, alone=True)
        self._overlap = Overlap(self._group, self._merge, self._begin_sums)

    def broadcast(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any],
                  priority: int = 0) -> None:
        """Broadcast the value of worker 0 to every worker and device; all workers call it.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, or list of them
        out : NDArray, list of NDArray, or list of lists
        priority : int
            Has no effect: keys go in the order in which they stand.
        """
        pairs, outs = key_value_pairs(key, value, "value"), dict(key_value_pairs(key, out, "out"))
        names = [k for k, _ in pairs]
        doing = f"broadcast of key {names[0]!r}"
        self._group.agree([group.digest("broadcast", [(k, a[0].shape, a[0].dtype) for k, a in pairs])], doing)()
        for k, arrays in pairs:
            sent = arrays[0].copy()
            self._group.wait(self._group.begin_broadcast(sent._raw()), doing)
            for array in outs[k]:
                sent.copyto(array)

    def pushpull(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any] | None = None,
                 priority: int = 0) -> None:
        """Add up the values of all workers and devices, and write the sum to `out`, or over the values.

        Parameters
        ----------
        key : str, int, or list of them
            In the same order on all workers.
        value : NDArray, list of NDArray (one per device), or list of lists
        out : NDArray, list of NDArray, or list of lists, optional
        priority : int
            Has no effect: keys go in the order in which they stand.
        """
        pairs = key_value_pairs(key, value, "value")
        outs = dict(pairs if out is None else key_value_pairs(key, out, "out"))
        names = [k for k, _ in pairs]
        doing = f"pushpull of key {names[0]!r}"
        for k, arrays in pairs:
            if any(a.stype != "default" for a in arrays):
                raise MXNetError(f"{doing}: a kvstore of type {self._type!r} adds up dense arrays, received {arrays[0].stype} for {k!r}; use "
                                 "'dist_sync'")
        early = self._overlap.state(pairs)
        agreed = self._group.agree([group.digest("pushpull", [(k, a[0].shape, a[0].dtype) for k, a in pairs]), early], doing)
        totals = None if early & COLLECTS else self._sums(pairs, doing)
        states = [state for _, state in agreed()]
        if self._overlap.settle(states):
            totals = self._overlap.sums()
        for k, total in self._sums(pairs, doing) if totals is None else totals:
            hand_over(total, outs[k])

    def _sums(self, pairs, doing):
        names = [k for k, _ in pairs]
        return zip(names, self._begin_sums(names, [self._merge(k, arrays)._raw() for k, arrays in pairs], doing))

    @staticmethod
    def _merge(key, arrays):
        return sum((a._on(arrays[0].ctx) for a in arrays[1:]), arrays[0])

    def _begin_sums(self, names, tensors, doing, channel=None):
        return (channel or self._group).begin_sum_many(tensors, doing, limited=channel is None)

    def _expect(self, names, arrays):
        """Announce the gradients of the next backward, see `Overlap.expect`."""
        return self._overlap.expect(names, arrays)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return False: workers run the optimizer."""
        return check_capability(capability) and False

    @property
    def type(self) -> str:
        """The name that the store was made with."""
        return self._type

    @property
    def local_rank(self) -> int:
        """The number of this worker on its machine, from 0."""
        return self._group.local()[0]


@built_in("p3")
class P3KVStore(DistSyncKVStore):
    """A variant of ``dist_sync`` that sends large values in slices, in the order of the keys, so that the first keys are complete first.

    It adds up gradients and leaves the optimizer to the workers. ``DMLC_PS_VAN_TYPE=p3`` makes the types ``dist_sync`` and their like this one.

    Parameters
    ----------
    handle : str
        The type.
    """

    def _begin_sums(self, names, tensors, doing, channel=None):
        length, net = environment.get_int("MXNET_KVSTORE_SLICE_THRESHOLD"), channel or self._group
        slices = [t.reshape(-1).split(length) for t in tensors]
        ends = [[net.begin_sum(part.clone(), doing) for part in parts] for parts in slices]
        return (torch.cat([end() for end in parts]).view(tensor.shape) for tensor, parts in zip(tensors, ends))

    def _sum_rows(self, array, doing):
        raise MXNetError(f"{doing}: a kvstore of type 'p3' takes dense arrays, received a row_sparse one; use 'dist_sync'")

    def row_sparse_pull(self, key: int | str | Sequence[int | str], out: NDArray | Sequence[Any] | None = None, priority: int = 0,
                        row_ids: NDArray | Sequence[NDArray] | None = None) -> None:
        """Raise an error: values are dense."""
        raise MXNetError("row_sparse_pull: a kvstore of type 'p3' keeps dense values; use 'dist_sync'")

    def _set_updater(self, updater):
        raise MXNetError("a kvstore of type 'p3' does not update values, its workers do (update_on_kvstore=False); or use 'dist_sync'")

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Raise an error: there is no compression."""
        raise MXNetError("a kvstore of type 'p3' does not compress gradients; use 'dist_sync'")

    def is_capable(self, capability: str) -> bool:
        """Return False: workers run the optimizer."""
        return check_capability(capability) and False
