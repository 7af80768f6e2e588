"""The single-process store: keeps a value per key, and sums the values that its devices push."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import ndarray as nd
from .. import optimizer as opt
from ..base import MXNetError
from ..checkpoint import load_optimizer_states, save_optimizer_states
from ..context import cpu
from ..ndarray import NDArray
from ..ndarray.sparse import retain
from ..ops.unique import unique
from ..suggestions import shortened
from . import row_sparse
from .base import KVStoreBase, built_in, check_capability
from .compression import make_compression
from .shared_values import SharedValues

if TYPE_CHECKING:
    from ..optimizer import Optimizer

__all__ = ["KVStore"]
_log = logging.getLogger(__name__)


def key_value_pairs(key: Any, value: Any, what: str) -> list[Any]:
    """Return ``[(key, [arrays])]`` for a key and its array(s), or lists of both; the arrays of a repeated key are merged."""
    if not isinstance(key, (list, tuple)):
        if not isinstance(key, (int, str)):
            raise MXNetError(f"a key must be a str or an int, received {shortened(key)} of type {type(key).__name__}")
        arrays = list(value) if isinstance(value, (list, tuple)) else [value]
        for array in arrays:
            if not isinstance(array, NDArray):
                raise MXNetError(f"{what} of key {key!r} must be an NDArray or a list of them, received {shortened(array)}")
        return [(key, arrays)]
    if not isinstance(value, (list, tuple)) or len(key) != len(value):
        raise MXNetError(f"{len(key)} keys need as many {what}s, received "
                         f"{len(value) if isinstance(value, (list, tuple)) else type(value).__name__}")
    grouped: dict[Any, list[Any]] = {}
    for k, v in zip(key, value):
        grouped.setdefault(k, []).extend(key_value_pairs(k, v, what)[0][1])
    return list(grouped.items())


def require_stype(key: int | str, what: str, array: NDArray, stype: str) -> None:
    if array.stype != stype:
        raise MXNetError(f"row_sparse_pull: {what} of key {key!r} must have storage type {stype!r}, it has {array.stype!r}")


def _is_ours(optimizer: Optimizer) -> bool:
    """Return True if an optimizer holds no weight after its update, as those of programs may do."""
    return type(optimizer).__module__.startswith("mxnet.")


@built_in("local", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device", "device", "nccl")
class KVStore(KVStoreBase):
    """A key-value store within one process; `mxnet.kv.create` makes it.

    Operations run in the order of the calls; `priority` is accepted everywhere and has no effect, since there is no queue.

    Parameters
    ----------
    handle : str
        The type.

    Example
    -------
    >>> import mxnet as mx
    >>> store = mx.kv.create('local')
    >>> type(store).__name__, store.type, store.num_workers
    ('KVStore', 'local', 1)
    >>> store.init('weight', mx.nd.zeros((2,)))
    >>> store.push('weight', [mx.nd.array([1, 2]), mx.nd.array([3, 4])])
    >>> total = mx.nd.zeros((2,))
    >>> store.pull('weight', out=total)
    >>> total.asnumpy()
    array([4., 6.], dtype=float32)
    """

    def __init__(self, handle: str):
        self._type = handle
        self._on_device = "device" in handle or handle == "nccl"
        self._values = {}
        self._key_kind = None
        self._updater = None
        self._compression = None
        self._residuals = {}
        self._warned = set()
        self._shared = SharedValues()

    # -- values ------------------------------------------------------------------------------------------------------------------

    def init(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any]) -> None:
        """Initialize keys; each key once, before it is pushed or pulled.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, or list of them

        Example
        -------
        >>> import mxnet as mx
        >>> store = mx.kv.create()
        >>> store.init(['a', 'b'], [mx.nd.ones((2,))] * 2)
        """
        for k, arrays in self._checked(key, value, "value"):
            if k in self._values:
                raise MXNetError(f"duplicate init of key {k!r}: init or broadcast was called with this key before")
            self._values[k] = arrays[0].copyto(cpu())

    def push(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], priority: int = 0) -> None:
        """Sum values. The optimizer updates the kept value by the sum; without one the sum replaces it.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, list of NDArray (one per device), or list of lists
        priority : int
        """
        for k, arrays in self._checked(key, value, "value"):
            self._push(k, arrays, {})

    def pull(self, key: int | str | Sequence[int | str], out: NDArray | Sequence[Any] | None = None, priority: int = 0,
             ignore_sparse: bool = True) -> None:
        """Write the kept values to arrays.

        Parameters
        ----------
        key : str, int, or list of them
        out : NDArray, list of NDArray (one per device), or list of lists
        priority : int
        ignore_sparse : bool
            Skip row_sparse arrays; `row_sparse_pull` fills them.
        """
        if out is None:
            raise MXNetError("pull needs out=..., the arrays to write to; received None")
        for k, arrays in self._checked(key, out, "out"):
            self._pull(k, arrays, ignore_sparse)

    def _replace(self, key, value):
        """Replace a key's value, from which the optimizer continues."""
        stored = self._cached(key)
        value.tostype(stored.stype).astype(stored.dtype, copy=False).copyto(stored)
        if isinstance(self._updater, opt.Updater):
            self._updater._weight_replaced(key, stored)
        return True

    def broadcast(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any],
                  priority: int = 0) -> None:
        """Initialize keys, and write their values to arrays on all devices.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, or list of them
        out : NDArray, list of NDArray (one per device), or list of lists
        priority : int
        """
        self.init(key, value)
        self.pull(key, out, priority)

    def pushpull(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any] | None = None,
                 priority: int = 0) -> None:
        """Call `push`, then `pull` into `out`, or over the values themselves.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, list of NDArray (one per device), or list of lists
        out : NDArray, list of NDArray, or list of lists, optional
        priority : int
        """
        pairs = self._checked(key, value, "value")
        outs = dict(pairs if out is None else self._checked(key, out, "out"))
        for k, arrays in pairs:
            self._push(k, arrays, outs)
        for k, arrays in outs.items():
            self._pull(k, arrays, True, out is not None)

    def row_sparse_pull(self, key: int | str | Sequence[int | str], out: NDArray | Sequence[Any] | None = None, priority: int = 0,
                        row_ids: NDArray | Sequence[NDArray] | None = None) -> None:
        """Write some rows of row_sparse values to row_sparse arrays.

        Parameters
        ----------
        key : str, int, or list of them
        out : RowSparseNDArray, list of them (one per device), or list of lists
        priority : int
        row_ids : NDArray, or as many of them as there are in `out`
            The rows; a single NDArray applies to all arrays of a key.
        """
        if out is None or row_ids is None:
            raise MXNetError(f"row_sparse_pull needs out=... and row_ids=..., received None as {'out' if out is None else 'row_ids'}")
        if isinstance(row_ids, NDArray):
            row_ids = [row_ids]
        if not isinstance(row_ids, list):
            raise MXNetError(f"row_sparse_pull: row_ids must be an NDArray or a list of them, received {shortened(row_ids)}")
        if not isinstance(key, (list, tuple)):
            key, out, row_ids = [key], [out], [row_ids]
        ids_of = dict(key_value_pairs(key, row_ids, "row_ids"))
        for k, arrays in self._checked(key, out, "out"):
            ids = ids_of[k]
            if len(ids) == 1:
                ids = ids * len(arrays)
            if len(ids) != len(arrays):
                raise MXNetError(f"row_sparse_pull: key {k!r} has {len(arrays)} arrays to fill and {len(ids)} row_ids")
            stored = self._cached(k)
            for array, rows in zip(arrays, ids):
                require_stype(k, "out", array, "row_sparse")
                require_stype(k, "row_ids", rows, "default")
                require_stype(k, "the kept value", stored, "row_sparse")
                wanted = unique(rows._on(stored.ctx)._raw().long())
                rows = retain(stored, NDArray._new(wanted, stored.ctx))
                if rows.ctx == array.ctx:
                    array._adopt(rows)
                else:
                    rows.copyto(array)

    def _checked(self, key, value, what):
        pairs = key_value_pairs(key, value, what)
        for k, _ in pairs:
            kind = str if isinstance(k, str) else int
            self._key_kind = self._key_kind or kind
            if kind is not self._key_kind:
                raise MXNetError(f"all keys of a store have one type, in this one {self._key_kind.__name__}; received {shortened(k)}")
        return pairs

    def _cached(self, key):
        try:
            return self._values[key]
        except KeyError:
            raise MXNetError(f"key {key!r} has not been inited: call init or broadcast with it first") from None

    def _push(self, key, arrays, outs):
        merged = self._merge(key, arrays)
        self._give(key, merged, merged is not arrays[0], outs)

    def _merge(self, key, arrays):
        """Return the sum of pushed arrays over the devices; a single array is returned unchanged."""
        kept = self._cached(key)
        for array in arrays:
            if array.shape != kept.shape:
                raise MXNetError(f"push: key {key!r} was inited with shape {kept.shape}, received {array.shape}")
            if array.stype == "csr":
                raise MXNetError(f"push: csr arrays are not supported (key {key!r}); use dense or row_sparse ones")
        return self._reduce(key, arrays)

    def _give(self, key, merged, fresh, outs):
        """Pass a sum to the optimizer, or without one keep it; it is copied unless it is `fresh`. `outs` are the arrays that pull it then."""
        kept = self._values[key]
        if kept.ctx.device_type != merged.ctx.device_type:
            kept = self._values[key] = kept.copyto(merged.ctx)
        if merged.ctx != kept.ctx:
            merged = merged._on(kept.ctx)
        if self._updater is not None:
            with self._shared.updated(self._values, [key], outs):
                self._updater(key, merged, kept)
        elif not fresh or merged.stype != kept.stype or merged.dtype != kept.dtype:
            self._values[key] = merged.copy()
        else:
            self._values[key] = merged

    def _reduce(self, key, arrays):
        """Return the sum of the arrays; a single one is returned unchanged."""
        where = arrays[0].ctx if self._on_device else cpu()
        if arrays[0].stype == "row_sparse":
            return row_sparse.add([a._on(where) for a in arrays])
        if self._compression is not None:
            return self._reduce_compressed(key, arrays, where)
        if len(arrays) == 1:
            return arrays[0]
        device = where.torch_device
        total = arrays[0]._raw().to(device) + arrays[1]._raw().to(device)
        for array in arrays[2:]:
            total.add_(array._raw().to(device))
        return NDArray._new(total, where)

    def _reduce_compressed(self, key, arrays, where):
        device = where.torch_device
        residuals = self._residuals.setdefault(key, {})
        total = None
        for i, array in enumerate(arrays):
            gradient = array._raw()
            if i not in residuals:
                residuals[i] = gradient.new_zeros(gradient.shape)
            packed = self._compression.compress(gradient, residuals[i]).to(device)
            received = self._compression.decompress(packed, gradient.shape, gradient.dtype)
            total = received if total is None else total.add_(received)
        return NDArray._new(total, where)

    def _pull(self, key, arrays, ignore_sparse, may_share=False):
        """Write a kept value to arrays, or let it share their memory."""
        kept = self._cached(key)
        if may_share and type(self._updater) is opt.Updater and _is_ours(self._updater.optimizer):
            if self._shared.pull(key, kept, arrays):
                return
        for array in arrays:
            if array.stype != "default":
                if ignore_sparse:
                    if key not in self._warned:
                        self._warned.add(key)
                        _log.warning("pull of key %r into a %s array was ignored; use row_sparse_pull(), or module.prepare() with "
                                        "sparse_row_id_fn", key, array.stype)
                    continue
                (kept if kept.stype == array.stype else kept.tostype(array.stype)).copyto(array)
            else:
                (kept if kept.stype == "default" else kept.tostype("default")).copyto(array)

    # -- optimizer ---------------------------------------------------------------------------------------------------------------

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Set the optimizer with which the store updates its values by pushed gradients.

        Example
        -------
        >>> import mxnet as mx
        >>> store = mx.kv.create()
        >>> store.init('w', mx.nd.ones((2,)))
        >>> store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
        >>> store.push('w', mx.nd.ones((2,)))
        >>> value = mx.nd.empty((2,))
        >>> store.pull('w', out=value)
        >>> value.asnumpy()
        array([0.5, 0.5], dtype=float32)
        """
        self._set_updater(opt.get_updater(optimizer))

    def _set_updater(self, updater):
        """Set ``updater(key, pushed sum, kept value)``, which changes the kept values in place."""
        self._updater = updater

    def _require_optimizer(self, what):
        if self._updater is None:
            raise MXNetError(f"{what}: this store has no optimizer; call set_optimizer(...) first")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Save the optimizer's states, and with `dump_optimizer` the optimizer itself; the file is written atomically."""
        self._require_optimizer("save_optimizer_states")
        save_optimizer_states(fname, self._updater, dump_optimizer)

    def load_optimizer_states(self, fname: str) -> None:
        """Load saved optimizer states.

        Raises
        ------
        MXNetError
            If the file is missing, damaged, or holds anything but optimizer states.
        """
        self._require_optimizer("load_optimizer_states")
        load_optimizer_states(fname, self._updater)

    def _state_range(self, key, size):
        """Return the elements (begin, end) of a weight whose optimizer states this worker keeps; None if all workers keep all of them."""
        return None

    def _divide_states_anew(self):
        """Prepare for loaded states, which may be of another number of workers."""
        self._updater.states = {}

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Compress the gradients that devices push.

        Parameters
        ----------
        compression_params : dict
            ``{'type': '2bit', 'threshold': 0.5}``: each number is sent as +threshold, 0 or -threshold; the error is added to
            the next gradient. ``{'type': '1bit'}``: as +1 or -1. ``{'type': 'fp16'}``, ``{'type': 'bf16'}``: as 16-bit floats.

        Raises
        ------
        MXNetError
            If the store sums on the CPU, or for an unknown type or a threshold that is not above 0.
        """
        if "device" not in self.type:
            raise MXNetError(f"gradients are compressed by a kvstore of type 'device', received {shortened(self.type)}")
        self._compression = make_compression(compression_params)

    # -- properties --------------------------------------------------------------------------------------------------------------

    def is_capable(self, capability: str) -> bool:
        """Return True for ``KVStoreBase.OPTIMIZER``.

        Raises
        ------
        ValueError
            For anything else.
        """
        return check_capability(capability)

    @property
    def type(self) -> str:
        """The name that the store was made with."""
        return self._type

    @property
    def rank(self) -> int:
        """0: there is one worker."""
        return 0

    @property
    def num_workers(self) -> int:
        """1: there is one worker."""
        return 1

    def _send_command_to_servers(self, head, body):
        """Do nothing: this store has no servers."""

    def _barrier(self):
        """Do nothing: there are no other workers."""
        nd.waitall()
