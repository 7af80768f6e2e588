"""The synchronous stores: torch.distributed sums over all workers, and each worker makes the same update."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import optimizer as opt
from ..base import MXNetError
from ..context import cpu
from ..ndarray import NDArray, memory_format
from ..ndarray.dispatch import Marked
from ..ndarray.sparse.arrays import RowSparseNDArray, summed_rows
from ..optimizer import pickles
from . import compressed_allreduce, group
from .base import built_in
from .compression import HalfCompression, make_compression
from .kvstore import KVStore
from .overlap import COLLECTS, Overlap


def _signature(pairs):
    return [(k, a[0].shape, a[0].dtype, a[0].stype) for k, a in pairs]


def hand_over(total: torch.Tensor, arrays: Sequence[NDArray]) -> None:
    """Write an unshared sum to arrays. A single array on its device takes over the sum's memory, which may be a part of a bucket."""
    if len(arrays) == 1 and arrays[0].stype == "default" and total.device == arrays[0]._data.device:
        # With a storage of its own: mutations are tracked by storages, and those of the others in the bucket are not this array's.
        Marked(arrays[0], "write").take(memory_format.with_own_storage(total))
        return
    for array in arrays:
        NDArray._new(total, array.ctx).copyto(array)


@built_in("dist", "dist_sync", "dist_device", "dist_device_sync", "dist_sync_device")
class DistSyncKVStore(group.Member, KVStore):
    """A synchronous key-value store; `mxnet.kv.create` makes it for the types ``dist_sync``, ``dist_device_sync`` and their aliases.

    Pushed values are summed over the devices of a worker, then over all workers. Each worker keeps all values, and updates them identically,
    so that pulling needs no communication. All workers push the same keys in the same order, which is checked.

    Parameters
    ----------
    handle : str
        The type.
    """

    batches = True

    def __init__(self, handle: str):
        self._group = group.joined(handle)
        super().__init__(handle)
        self._on_wire, self._left_over = None, {}  # the compression, and its residuals
        self._configured = 0  # the number of optimizers that this worker has set
        self._overlap = Overlap(self._group, self._merge, self._begin_sums)

    # -- values ------------------------------------------------------------------------------------------------------------------

    def init(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any]) -> None:
        """Initialize keys with the values of worker 0; all workers call it.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, or list of them
        """
        pairs = self._checked(key, value, "value")
        for k, _ in pairs:
            if k in self._values:
                raise MXNetError(f"duplicate init of key {k!r}: init or broadcast was called with this key before")
        self._group.agree([group.digest("init", _signature(pairs))], "init")()
        for k, arrays in pairs:
            self._values[k] = self._from_first(arrays[0].copyto(cpu()), k)

    def _from_first(self, array, key):
        """Return the array of worker 0 on each worker."""
        doing, net = f"init of key {key!r}", self._group
        if array.stype == "default":
            tensor = array._raw().contiguous()
            net.wait(net.begin_broadcast(tensor), doing)
            return NDArray._new(tensor, array.ctx)
        if array.stype != "row_sparse":
            raise MXNetError(f"{doing}: values are dense or row_sparse, received {array.stype}")
        rows = net.begin_gather(torch.tensor([len(array._aux[0])]), doing)()[0].item()
        numbers, values = array._aux[0].contiguous(), array._values.contiguous()
        if net.rank:
            numbers, values = numbers.new_empty(rows), values.new_empty((rows, *array.shape[1:]))
        for tensor in (numbers, values):
            if tensor.numel():
                net.wait(net.begin_broadcast(tensor), doing)
        return RowSparseNDArray._make(values, [numbers], array.shape, array.ctx)

    def push(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], priority: int = 0) -> None:
        """Sum values over devices and workers. The optimizer updates the kept value by the sum; without one the sum replaces it.

        Parameters
        ----------
        key : str, int, or list of them
            In the same order on all workers.
        value : NDArray, list of NDArray (one per device), or list of lists
        priority : int
        """
        self._take(self._checked(key, value, "value"), {})

    def pushpull(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any] | None = None,
                 priority: int = 0) -> None:
        """Call `push`, then `pull` into `out`, or over the values themselves; for many keys, communication and updates overlap.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, list of NDArray (one per device), or list of lists
        out : NDArray, list of NDArray, or list of lists, optional
        priority : int
        """
        pairs = self._checked(key, value, "value")
        outs = dict(pairs if out is None else self._checked(key, out, "out"))
        self._take(pairs, outs, out is not None)

    def _take(self, pairs, outs, may_share=False):
        """Sum, update or keep, and write to `outs`, which may share the memory of the kept values.

        The keys of one aggregated update are handled at a time while the next ones are sent.
        """
        waiting = []
        for item in self._summed(pairs):
            waiting.append(item)
            # Another worker's optimizer may have arrived with the sums.
            if len(waiting) >= (self._updater.optimizer.aggregate_num if isinstance(self._updater, opt.Updater) else 0):
                self._give_many(waiting, outs, may_share)
                waiting = []
        self._give_many(waiting, outs, may_share)

    def _give_many(self, items, outs, may_share=False):
        if not (self.keeps_sums or self._updater or any(a.stype != "default" for _, a in items)) and all(k in outs for k, _ in items):
            for k, total in items:
                hand_over(total._data, outs[k])
            return
        kept = [self._values[k] for k, _ in items]
        items = [(k, self._in_one_order(k, total, value)) for (k, total), value in zip(items, kept)]
        if len(items) > 1 and all(a.stype == "default" and a.ctx == w.ctx for (_, a), w in zip(items, kept)):
            keys = [k for k, _ in items]
            with self._shared.updated(self._values, keys, outs):
                self._updater(keys, [a for _, a in items], kept)
        else:
            for k, total in items:
                self._give(k, total, True, outs)
        for k, _ in items:
            if k in outs:
                self._pull(k, outs[k], True, may_share)

    def _in_one_order(self, key, total, value):
        """Return a sum in the memory order of a kept value, or bring the value into that of the sum: the optimizer's kernels need one order."""
        if not total.stype == value.stype == "default" or total.ctx != value.ctx or memory_format.same(total._data, value._data):
            return total
        if memory_format.has_channels_last(total._data) and key not in self._shared:
            memory_format.like(value, total)
            return total
        return NDArray._new(torch.empty_like(value._data, dtype=total._data.dtype, requires_grad=False).copy_(total._data), total.ctx)

    def _summed(self, pairs):
        """Yield ``(key, sum over all workers)`` of each key, in order."""
        names = [k for k, _ in pairs]
        doing = f"push of key {names[0]!r}" + (f" and {len(names) - 1} more" if names[1:] else "")
        early = self._overlap.state(pairs)
        # Keys in flight are already merged; an array has the shape and type of the sum.
        merged = [arrays[0] if early & COLLECTS else self._merge(k, arrays) for k, arrays in pairs]
        said = group.digest("push", _signature(zip(names, [[m] for m in merged])), self._on_wire)
        agreed = self._group.agree([said, self._configured, early], doing)
        sparse = any(m.stype == "row_sparse" for m in merged)
        if not sparse and not early & COLLECTS:
            totals = self._begin_sums(names, [m._raw() for m in merged], doing)
        found = agreed()
        self._adopt([count for _, count, _ in found])
        if self._overlap.settle([state for _, _, state in found]):
            context = dict(zip(names, merged))
            for k, total in self._overlap.sums():
                yield k, NDArray._new(total, context[k].ctx)
            return
        if early & COLLECTS:
            merged = [self._merge(k, arrays) for k, arrays in pairs]
            totals = self._begin_sums(names, [m._raw() for m in merged], doing)
        if sparse:
            for k, array in zip(names, merged):
                dense = array.stype == "default"
                yield k, NDArray._new(next(self._begin_sums([k], [array._raw()], doing)), array.ctx) if dense else self._sum_rows(array, doing)
            return
        for k, array, total in zip(names, merged, totals):
            yield k, NDArray._new(total, array.ctx)

    def _expect(self, names, arrays):
        """Announce the gradients of the next backward, see `Overlap.expect`."""
        if self._on_wire is not None and not isinstance(self._on_wire, HalfCompression):
            return None  # the compression's residuals could not be restored
        return self._overlap.expect(names, arrays)

    def _begin_sums(self, names, tensors, doing, channel=None):
        """Begin to sum tensors, and return an iterator over the sums; with a `channel` they are a bucket of `Overlap`, and not divided again."""
        net = channel or self._group
        if self._on_wire is None:
            return net.begin_sum_many(tensors, doing, limited=channel is None)
        if isinstance(self._on_wire, HalfCompression):
            self._require_float32(tensors, doing)
            return net.begin_sum_many(tensors, doing, self._on_wire.dtype, channel is None)
        return self._begin_compressed(names, tensors, doing)

    @staticmethod
    def _require_float32(tensors, doing):
        for tensor in tensors:
            if tensor.dtype != torch.float32:
                raise MXNetError(f"{doing}: gradient compression is for float32, received {str(tensor.dtype).removeprefix('torch.')}")

    def _begin_compressed(self, names, tensors, doing):
        """Do the same as `_begin_sums` for compressed tensors; the compression errors are added to the next gradients."""
        self._require_float32(tensors, doing)
        packed = []
        for k, tensor in zip(names, tensors):
            if k not in self._left_over:
                self._left_over[k] = torch.zeros_like(tensor)
            packed.append(self._on_wire.compress(tensor, self._left_over[k]))
        if self._group.num_workers > 2:
            code = self._on_wire.code
            together = [(bucket, compressed_allreduce.begin_sum(self._group, torch.cat(bucket), code, doing)) for bucket in group.buckets(packed)]
            return self._decoded(iter(tensors), together, code)
        together = [(bucket, self._group.begin_gather(torch.cat(bucket), doing)) for bucket in group.buckets(packed)]
        return self._decompressed(iter(tensors), together)

    @staticmethod
    def _decoded(tensors, together, code):
        """Yield the sums of tensors, converted from the sums of their codes."""
        for bucket, end in together:
            for sums in end().split([len(b) * code.per_byte for b in bucket]):
                tensor = next(tensors)
                yield sums[:tensor.numel()].to(tensor.dtype).mul_(code.unit).view(tensor.shape)

    def _decompressed(self, tensors, together):
        for bucket, end in together:
            everyone = end()
            for parts in everyone.split([len(b) for b in bucket], dim=1):
                tensor = next(tensors)
                total = torch.zeros_like(tensor)
                for part in parts:
                    total += self._on_wire.decompress(part, tensor.shape, tensor.dtype)
                yield total

    def _sum_rows(self, array, doing):
        """Return the sum of row_sparse arrays; only their rows are sent."""
        if self._on_wire is not None:
            raise MXNetError(f"{doing}: gradient compression is for dense arrays, received a row_sparse one")
        net, numbers, values = self._group, array._aux[0], array._values
        counts = net.begin_gather(torch.tensor([len(numbers)]), doing)().flatten().tolist()
        rows = net.all_gather_uneven(numbers, counts, doing)
        numbers, total = summed_rows(rows, net.all_gather_uneven(values, counts, doing))
        return RowSparseNDArray._make(total, [numbers], array.shape, array.ctx)

    # -- optimizer ---------------------------------------------------------------------------------------------------------------

    def _set_updater(self, updater):
        """Set ``updater(key, sum over all workers, kept value)``, which changes the kept values in place; all workers set the same one."""
        self._configured += 1
        super()._set_updater(updater)

    def _adopt(self, configured):
        """Take over the optimizer of the worker that has set one last: programs may set it on worker 0 only."""
        latest = max(configured)
        if min(configured) == latest:
            return
        net, source, doing = self._group, configured.index(latest), "set_optimizer"
        data = b""
        if net.rank == source and isinstance(self._updater, opt.Updater):
            data = pickles.dumps(self._updater.optimizer)
        size = net.begin_gather(torch.tensor([len(data)]), doing)()[source].item()
        if not size:
            raise MXNetError(f"worker {source} has set an updater of its own, which can't be sent to others: set it on all workers")
        content = torch.frombuffer(bytearray(data or bytes(size)), dtype=torch.uint8)
        net.wait(net.begin_broadcast(content, source), doing)
        if configured[net.rank] < latest:
            self._set_updater(opt.get_updater(pickles.loads(bytes(content.numpy()), f"the optimizer of worker {source}")))
            self._configured = latest

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Compress the gradients that are sent between workers; all workers call it.

        Parameters
        ----------
        compression_params : dict
            ``{'type': '2bit', 'threshold': 0.5}``: each number is sent as +threshold, 0 or -threshold; the error is added to
            the next gradient. ``{'type': '1bit'}``: as +1 or -1. ``{'type': 'fp16'}``, ``{'type': 'bf16'}``: as 16-bit floats.

        Raises
        ------
        MXNetError
            For an unknown type or a threshold that is not above 0.
        """
        self._overlap.stop()  # gradients in flight keep the old format; early sending is negotiated again
        self._on_wire = make_compression(compression_params)

    # -- properties --------------------------------------------------------------------------------------------------------------

    def _send_command_to_servers(self, head, body):
        """Raise an error: there are no servers."""
        raise MXNetError(f"a kvstore of type {self.type!r} uses no servers, its workers update the values: profile and configure these "
                         "(profile_process='worker')")

    def _barrier(self):
        """Wait for the other workers."""
        self._group.barrier()
