"""Synchronous stores with sharded updates: each worker updates a part of the weights, and keeps only that part of the optimizer's states."""
from __future__ import annotations

from typing import Any

import torch

from .. import files
from .. import optimizer as opt
from ..base import MXNetError
from ..ndarray import NDArray
from ..optimizer import pickles
from ..suggestions import shortened
from . import group
from .base import built_in
from .compression import HalfCompression, make_compression
from .dist_sync import DistSyncKVStore

#: Optimizers with element-wise updates: large weights are divided among all workers. Other optimizers get whole weights.
BY_ELEMENT = {opt.SGD, opt.ccSGD, opt.NAG, opt.Signum, opt.DCASGD, opt.Adam, opt.AdaGrad, opt.RMSProp, opt.AdaDelta, opt.Adamax, opt.Ftrl, opt.FTML,
               opt.AdamW, opt.AdaBelief}
_SMALL = 4096  # weights of fewer elements are not divided


@built_in("dist", "dist_sync", "dist_device", "dist_device_sync", "dist_sync_device", sharded=True)
class ShardedKVStore(DistSyncKVStore):
    """A `DistSyncKVStore` with sharded updates: gradients are reduce-scattered, and updated weights are gathered by all workers.

    The traffic is that of an all-reduce. Large weights are divided evenly; small ones, and all weights of an optimizer that needs whole ones (LARS,
    LAMB, user-defined ones), belong to one worker each. ``row_sparse`` gradients are updated by all workers. Without an optimizer in the store it
    works like a `DistSyncKVStore`.

    Parameters
    ----------
    handle : str
        The type.
    """

    def __init__(self, handle: str):
        super().__init__(handle)
        self._edges = {}  # by key: worker i updates the elements from edge i to edge i + 1
        self._load = [0] * self.num_workers

    # -- assignment of parts -----------------------------------------------------------------------------------------------------

    def _divided(self, key, size):
        """Return the edges of a key's parts; loaded states are cut to this worker's part."""
        if key not in self._edges:
            workers = self.num_workers
            if type(self._updater.optimizer) in BY_ELEMENT and size >= _SMALL:
                edges = [size * i // workers for i in range(workers + 1)]
            else:
                owner = self._load.index(min(self._load))
                self._load[owner] += size
                edges = [0] * (owner + 1) + [size] * (workers - owner)
            self._edges[key] = edges
            states, (begin, end) = self._updater.states, edges[self.rank:self.rank + 2]
            if key in states and begin == end:
                del states[key]
            elif key in states:
                states[key] = _each(states[key], lambda a: NDArray._new(a._raw().reshape(-1)[begin:end].clone(), a.ctx) if a.size == size else a)
        return self._edges[key]

    @property
    def _shards(self):
        return isinstance(self._updater, opt.Updater)

    def _set_updater(self, updater):
        """Set the updater of the store's values: an optimizer's, or a function, which gets whole values."""
        if isinstance(updater, opt.Updater) and isinstance(updater.optimizer, opt.Nadam):
            raise MXNetError(f"a sharded kvstore can't run {type(updater.optimizer).__name__}, whose schedule goes on with every weight that it "
                             "updates; use "
                             "Adam, or shard=False")
        self._forget()
        super()._set_updater(updater)

    def _forget(self):
        self._overlap.stop()
        self._edges, self._load = {}, [0] * self.num_workers

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Send 16-bit floats, by ``{'type': 'fp16'}`` or ``{'type': 'bf16'}``; all workers call it.

        Raises
        ------
        MXNetError
            For other types.
        """
        if not isinstance(make_compression(compression_params), HalfCompression):
            raise MXNetError(f"a sharded kvstore compresses to 'fp16' and 'bf16', received {shortened(compression_params)}; use shard=False")
        super().set_gradient_compression(compression_params)

    # -- a step ------------------------------------------------------------------------------------------------------------------

    def _begin_sums(self, names, tensors, doing, channel=None):
        # During backward the updater is known; in a step another worker's optimizer may still arrive.
        return self._begin_parts(names, tensors, doing, channel) if channel else self._deferred_sums(names, tensors, doing)

    def _deferred_sums(self, names, tensors, doing):
        yield from self._begin_parts(names, tensors, doing, None)

    def _begin_parts(self, names, tensors, doing, channel):
        """Begin the sums, and return an iterator over this worker's parts of them."""
        if not self._shards:
            return super()._begin_sums(names, tensors, doing, channel)
        half = self._on_wire.dtype if isinstance(self._on_wire, HalfCompression) else None
        if half:
            self._require_float32(tensors, doing)
        rest, flights, net = iter(names), [], channel or self._group
        for bucket in group.buckets(tensors, channel is None):
            edges = [self._divided(next(rest), t.numel()) for t in bucket]
            parts = [[t.reshape(-1)[e[i]:e[i + 1]] for t, e in zip(bucket, edges)] for i in range(self.num_workers)]
            flights.append((bucket[0].dtype, [len(p) for p in parts[self.rank]], net.begin_sum_parts([torch.cat(p).to(half) if half else torch.cat(p)
                                                                                                     for p in parts], doing)))
        return (part for dtype, sizes, end in flights for part in end().to(dtype).split(sizes))

    def _take(self, pairs, outs, may_share=False):  # no value shares memory: parts of it come from other workers
        if not self._shards and not self._configured:
            sums = list(self._summed(pairs))  # an optimizer may have arrived with them
        else:
            sums = self._summed(pairs)
        if not self._shards:
            for item in sums:
                self._give_many([item], outs)
            return
        waiting, size, flights = [], 0, []
        for key, total in sums:
            if total.stype != "default":
                self._give_many([(key, total)], outs)
                continue
            waiting.append((key, total))
            size += self._values[key].size
            if size * 4 >= group.BUCKET:
                flights.append(self._update(waiting))
                waiting, size = [], 0
        if waiting:
            flights.append(self._update(waiting))
        for end in flights:
            for key in end():
                if key in outs:
                    self._pull(key, outs[key], True)

    def _update(self, items):
        """Update this worker's parts, and begin to send them to all; return a function that waits for the end, with the keys."""
        net, doing = self._group, f"update of key {items[0][0]!r}"
        flats = []
        for key, total in items:
            kept = self._values[key]
            if kept.ctx != total.ctx or not kept._raw().is_contiguous():
                kept = self._values[key] = NDArray._new(kept._raw().to(total.ctx.torch_device).contiguous(), total.ctx)
            flats.append(kept._raw().view(-1))
        edges = [self._divided(key, flat.numel()) for (key, _), flat in zip(items, flats)]
        mine = [(key, total, NDArray._new(flat[e[net.rank]:e[net.rank + 1]], total.ctx)) for (key, total), flat, e in zip(items, flats, edges)]
        for key, total, weight in mine:
            if not weight.size:  # another worker's: it counts as an update, for schedules and for saved states
                self._updater.optimizer._set_current_context(total.ctx.device_id)
                self._updater.optimizer._update_count(key)
        mine = [entry for entry in mine if entry[2].size]
        if mine:
            self._updater(*map(list, zip(*mine)))
        parts = [[flat[e[i]:e[i + 1]] for flat, e in zip(flats, edges)] for i in range(net.num_workers)]
        sent = [torch.cat(part) if i == net.rank else flats[0].new_empty(sum(map(len, part))) for i, part in enumerate(parts)]
        work = [net.begin_broadcast(tensor, i) for i, tensor in enumerate(sent) if len(tensor)]

        def end():
            for one in work:
                net.wait(one, doing)
            for i, (tensor, part) in enumerate(zip(sent, parts)):
                if i != net.rank:
                    for target, value in zip(part, tensor.split([len(p) for p in part])):
                        target.copy_(value)
            return [key for key, _ in items]
        return end

    # -- states ------------------------------------------------------------------------------------------------------------------

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Save the optimizer's states, gathered from all workers, and with `dump_optimizer` the optimizer itself; all workers call it.

        Stores without sharding, or with another number of workers, can load them.
        """
        self._require_optimizer("save_optimizer_states")
        if not self._shards:
            super().save_optimizer_states(fname, dump_optimizer)
            return
        net, doing = self._group, "save_optimizer_states"
        net.agree([group.digest(doing)], doing)()
        content = torch.frombuffer(bytearray(pickles.dumps(self._updater.states)), dtype=torch.uint8)
        sizes = net.begin_gather(torch.tensor([len(content)]), doing)().flatten().tolist()
        found = [pickles.loads(bytes(part.numpy()), "the states of a worker") for part in net.all_gather_uneven(content, sizes, doing)]
        states = {}
        for key in dict.fromkeys(key for own in found for key in own):
            parts = [own[key] for own in found if key in own]
            states[key] = _joined(parts, self._values[key].shape) if key in self._edges else parts[0]
        files.write_bytes(fname, pickles.dumps((states, self._updater.optimizer) if dump_optimizer else states))

    def _state_range(self, key, size):
        if not self._shards or self._values[key].stype != "default":
            return None
        return tuple(self._divided(key, size)[self.rank:self.rank + 2])

    def _divide_states_anew(self):
        super()._divide_states_anew()
        self._forget()

    def load_optimizer_states(self, fname: str) -> None:
        """Load optimizer states that were saved by a store of any kind; all workers call it."""
        super().load_optimizer_states(fname)
        self._forget()


def _each(state, change):
    """Return a state with `change` applied to its arrays."""
    if isinstance(state, NDArray):
        return change(state)
    return type(state)(_each(s, change) for s in state) if isinstance(state, (list, tuple)) else state


def _joined(parts, shape):
    """Return a state joined from its parts, in the order of the workers."""
    first = parts[0]
    if isinstance(first, NDArray):
        whole = torch.cat([part._raw().reshape(-1) for part in parts])
        return NDArray._new(whole.view(shape) if whole.numel() == torch.Size(shape).numel() else first._raw(), first.ctx)
    return type(first)(_joined(list(some), shape) for some in zip(*parts)) if isinstance(first, (list, tuple)) else first
