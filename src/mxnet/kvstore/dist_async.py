"""The asynchronous store: servers keep the values, and update them at each push, without synchronization of the workers."""
from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .. import files
from ..base import MXNetError
from ..context import cpu
from ..ndarray import NDArray
from ..ndarray.sparse.arrays import RowSparseNDArray
from ..ops.unique import unique
from ..optimizer import pickles
from . import group, messages, row_sparse
from .base import built_in
from .compression import make_compression
from .kvstore import KVStore, key_value_pairs, require_stype
from .liveness import STEP, name
from .parts import Part, cut, divide

if TYPE_CHECKING:
    from ..optimizer import Optimizer

_ROUND = 64 << 20  # bytes of one request
_numbers = itertools.count()  # of this process's stores; equal on all workers, which make the same stores


class _ServerState(NamedTuple):
    shape: tuple
    dtype: torch.dtype
    stype: str
    parts: list[Part]


class _Line:
    """The connection to a server."""

    def __init__(self, net, server):
        self._net, self._server = net, name("server", server)
        net.store.wait([f"server/{server}"])
        host, port, key = json.loads(net.store.get(f"server/{server}"))
        try:
            self._connection = messages.connect((host, port), bytes.fromhex(key))
        except OSError as error:
            raise MXNetError(f"worker {net.rank} can't reach {self._server} at {host}:{port}: {error}") from error

    def tell(self, head, tensors=()):
        """Send a request."""
        try:
            messages.send(self._connection, head, tensors)
        except OSError as error:
            raise self._lost(error) from error

    def hear(self):
        """Receive the tensors of the response to the oldest request that has one."""
        try:
            while not self._connection.poll(STEP):
                trouble = self._net.monitor.trouble(self._server)
                if trouble:
                    raise MXNetError(f"worker {self._net.rank} waits for {self._server} in vain ({trouble}): start the job again from its last "
                                     "checkpoint")
            head, tensors = messages.receive(self._connection)
        except (EOFError, OSError) as error:
            raise self._lost(error) from error
        if "error" in head:
            raise MXNetError(f"{self._server}: {head['error']}")
        return tensors

    def _lost(self, error):
        return MXNetError(f"worker {self._net.rank} has lost {self._server}, which died or ended early ({error or type(error).__name__}): start the "
                          "job again from its last checkpoint")


@built_in("dist_async", "dist_async_device", "dist_device_async")
class DistAsyncKVStore(group.Member, KVStore):
    """A key-value store on servers; `mxnet.kv.create` makes it for the type ``dist_async``.

    A worker's pushed values are summed over its devices and sent to the servers, which update immediately, independently of other workers. Small keys
    are on one server, large ones divided among all (``MXNET_KVSTORE_BIGARRAY_BOUND``). An optimizer handles each part as a separate weight.

    Parameters
    ----------
    handle : str
        The type.
    """

    batches = True

    def __init__(self, handle: str):
        self._group = group.joined(handle)
        if not self._group.num_servers:
            raise MXNetError(f"a kvstore of type {handle!r} keeps its values on servers, and the job has none: launch it with -s 1 or more")
        super().__init__(handle)
        self._name = f"store {next(_numbers)}"
        self._lines = [_Line(self._group, i) for i in range(self._group.num_servers)]
        self._keys = {}
        self._on_wire, self._left_over = None, {}

    def _ask(self, head, tensors=(), servers=None):
        """Send the same request to servers, and return their responses in order."""
        lines = self._lines if servers is None else [self._lines[i] for i in servers]
        for line in lines:
            line.tell({"store": self._name, **head}, tensors)
        return [line.hear() for line in lines]

    def _known(self, key):
        try:
            return self._keys[key]
        except KeyError:
            raise MXNetError(f"key {key!r} has not been inited: call init or broadcast with it first") from None

    # -- values ------------------------------------------------------------------------------------------------------------------

    def init(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any]) -> None:
        """Initialize keys with the values of worker 0; all workers call it.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, or list of them
        """
        for k, arrays in self._checked(key, value, "value"):
            if k in self._keys:
                raise MXNetError(f"duplicate init of key {k!r}: init or broadcast was called with this key before")
            array = arrays[0]
            if array.stype == "csr":
                raise MXNetError(f"init of key {k!r}: values are dense or row_sparse, received csr")
            sparse = array.stype == "row_sparse"
            dtype = (array._values if sparse else array._raw()).dtype
            kept = self._keys[k] = _ServerState(array.shape, dtype, array.stype, divide((self._name, k), array.shape, len(self._lines), sparse))
            if self._group.rank == 0:
                for part, tensors in self._cut_rows(array, kept) if sparse else ((p, [cut(array._raw(), p)]) for p in kept.parts):
                    shape = [part.end - part.begin, *array.shape[1:]]
                    self._ask({"do": "init", "keys": [[k, array.stype, shape]]}, tensors, [part.server])
        self._group.barrier("init")

    def _replace(self, key, value):
        """Return False: other workers' pushes reach the servers meanwhile."""
        return False

    @staticmethod
    def _cut_rows(array, kept):
        """Yield ``(part, [row numbers within it, rows])`` of a row_sparse array."""
        numbers, values = array._aux[0].to("cpu"), array._values
        for part in kept.parts:
            first, last = torch.searchsorted(numbers, torch.tensor([part.begin, part.end], dtype=numbers.dtype)).tolist()
            yield part, [numbers[first:last].long() - part.begin, values[first:last]]

    def push(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], priority: int = 0) -> None:
        """Sum values over the devices of this worker and send them to the servers for an update, without waiting for it.

        An error of a server is raised by the next call that waits, such as `pull`.

        Parameters
        ----------
        key : str, int, or list of them
        value : NDArray, list of NDArray (one per device), or list of lists
        priority : int
        """
        for k, arrays in self._checked(key, value, "value"):
            kept = self._known(k)
            for array in arrays:
                if array.shape != kept.shape:
                    raise MXNetError(f"push: key {k!r} was inited with shape {kept.shape}, received {array.shape}")
                if array.stype == "csr":
                    raise MXNetError(f"push: csr arrays are not supported (key {k!r}); use dense or row_sparse ones")
            merged = self._reduce(k, arrays)
            if merged.stype == "row_sparse":
                if self._on_wire is not None:
                    raise MXNetError(f"push of key {k!r}: gradient compression is for dense arrays, received a row_sparse one")
                if any(part.flat for part in kept.parts):
                    raise MXNetError(f"push of key {k!r}: a dense value of fewer rows than servers takes dense gradients only")
                for part, tensors in self._cut_rows(merged, kept):
                    self._tell_push(part, k, "row_sparse", tensors)
            else:
                for i, part in enumerate(kept.parts):
                    self._push_part(part, (k, i), cut(merged._raw(), part))

    def _push_part(self, part, of, gradient):
        if self._on_wire is None:
            self._tell_push(part, of[0], "default", [gradient])
            return
        if gradient.dtype != torch.float32:
            raise MXNetError(f"push of key {of[0]!r}: gradient compression is for float32, received {str(gradient.dtype).removeprefix('torch.')}")
        if of not in self._left_over:
            self._left_over[of] = torch.zeros_like(gradient)
        compression, params = self._on_wire
        self._tell_push(part, of[0], params, [compression.compress(gradient, self._left_over[of])])

    def _tell_push(self, part, key, stype, tensors):
        self._lines[part.server].tell({"store": self._name, "do": "push", "silent": True, "keys": [[key, stype]]}, tensors)

    def pull(self, key: int | str | Sequence[int | str], out: NDArray | Sequence[Any] | None = None, priority: int = 0,
             ignore_sparse: bool = True) -> None:
        """Write the servers' current values, including this worker's pushes, to arrays.

        Parameters
        ----------
        key : str, int, or list of them
        out : NDArray, list of NDArray (one per device), or list of lists
        priority : int
        ignore_sparse : bool
            Must be true: row_sparse arrays are filled by `row_sparse_pull`, and not changed here.
        """
        if out is None:
            raise MXNetError("pull needs out=..., the arrays to write to; received None")
        if not ignore_sparse:
            raise MXNetError(f"a distributed kvstore does not pull row_sparse arrays as a whole (ignore_sparse={ignore_sparse}); use row_sparse_pull")
        wanted, size = [], 0
        for k, arrays in self._checked(key, out, "out"):
            kept, dense = self._known(k), [array for array in arrays if array.stype == "default"]
            if dense:
                wanted.append((k, kept, dense))
                size += torch.Size(kept.shape).numel() * kept.dtype.itemsize
            if size > _ROUND:
                self._pull_round(wanted)
                wanted, size = [], 0
        self._pull_round(wanted)

    def pushpull(self, key: int | str | Sequence[int | str], value: NDArray | Sequence[Any], out: NDArray | Sequence[Any] | None = None,
                 priority: int = 0) -> None:
        """Call `push`, then `pull` into `out`, or over the values themselves."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def _pull_round(self, wanted):
        asked = {}
        for k, kept, _ in wanted:
            for part in kept.parts:
                asked.setdefault(part.server, []).append(k)
        for server, keys in asked.items():
            self._lines[server].tell({"store": self._name, "do": "pull", "keys": keys})
        answers = {server: iter(self._lines[server].hear()) for server in asked}
        for _, kept, arrays in wanted:
            parts = [next(answers[part.server]) for part in kept.parts]
            whole = parts[0] if len(parts) == 1 else torch.cat(parts)
            found = NDArray._new(whole.view(kept.shape), cpu())
            for array in arrays:
                found.copyto(array)

    def row_sparse_pull(self, key: int | str | Sequence[int | str], out: NDArray | Sequence[Any] | None = None, priority: int = 0,
                        row_ids: NDArray | Sequence[NDArray] | None = None) -> None:
        """Write some rows of values to row_sparse arrays; only these rows are transferred.

        Parameters
        ----------
        key : str, int, or list of them
        out : RowSparseNDArray, list of them (one per device), or list of lists
        priority : int
        row_ids : NDArray, or as many of them as there are in `out`
            The rows; a single NDArray applies to all arrays of a key.
        """
        for k, targets in self._sparse_targets(key, out, row_ids):
            kept = self._known(k)
            if kept.stype != "row_sparse":
                raise MXNetError(f"row_sparse_pull: the kept value of key {k!r} must have storage type 'row_sparse', it has {kept.stype!r}")
            for array, rows in targets:
                wanted = unique(rows._raw().to("cpu").long())
                if len(wanted) and not 0 <= int(wanted[0]) <= int(wanted[-1]) < kept.shape[0]:
                    raise MXNetError(f"row_sparse_pull: row_ids of key {k!r} must be from 0 to {kept.shape[0] - 1}, received {int(wanted[0])} to "
                                     f"{int(wanted[-1])}")
                edges = torch.searchsorted(wanted, torch.tensor([kept.parts[0].begin, *(part.end for part in kept.parts)])).tolist()
                asked = [(part, wanted[a:b] - part.begin) for part, a, b in zip(kept.parts, edges, edges[1:]) if b > a]
                for part, numbers in asked:
                    self._lines[part.server].tell({"store": self._name, "do": "pull_rows", "key": k}, [numbers])
                found = [self._lines[part.server].hear()[0] for part, _ in asked]
                values = torch.cat(found) if found else torch.empty((0, *kept.shape[1:]), dtype=kept.dtype)
                RowSparseNDArray._make(values, [wanted], kept.shape, cpu()).copyto(array)

    def _sparse_targets(self, key, out, row_ids):
        """Return ``(key, [(array, row numbers)])`` of the arrays to pull."""
        if out is None or row_ids is None:
            raise MXNetError(f"row_sparse_pull needs out=... and row_ids=..., received None as {'out' if out is None else 'row_ids'}")
        row_ids = [row_ids] if isinstance(row_ids, NDArray) else row_ids
        if not isinstance(key, (list, tuple)):
            key, out, row_ids = [key], [out], [row_ids]
        ids_of = dict(key_value_pairs(key, row_ids, "row_ids"))
        for k, arrays in self._checked(key, out, "out"):
            ids = ids_of[k] * len(arrays) if len(ids_of[k]) == 1 else ids_of[k]
            if len(ids) != len(arrays):
                raise MXNetError(f"row_sparse_pull: key {k!r} has {len(arrays)} arrays to fill and {len(ids)} row_ids")
            for array in arrays:
                require_stype(k, "out", array, "row_sparse")
            yield k, list(zip(arrays, ids))

    def _reduce(self, key, arrays):
        if arrays[0].stype == "row_sparse":
            return row_sparse.add([a._on(cpu()) for a in arrays])
        return super()._reduce(key, arrays)

    # -- optimizer ---------------------------------------------------------------------------------------------------------------

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Set the optimizer of the servers' updates by pushed gradients; a user-defined class must be registered on the servers."""
        self._ask({"do": "optimizer"}, [_as_tensor(pickles.dumps(_for_servers(optimizer)))])

    def _set_updater(self, updater):
        raise MXNetError("functions can't be sent to the servers, which update the values: use set_optimizer")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Save the optimizer's states, collected from all servers, in the single-process format; the file is written atomically."""
        answers = self._ask({"do": "states", "with_optimizer": dump_optimizer})
        found = [pickles.loads(answer[0].numpy().tobytes(), "the optimizer states of a server") for answer in answers]
        tables = [part[0] if dump_optimizer else part for part in found]
        whole = {}
        for key, kept in self._keys.items():
            parts = [tables[part.server][key] for part in kept.parts if key in tables[part.server]]
            if parts:
                whole[key] = _joined(parts, kept)
        files.write_bytes(fname, pickles.dumps((whole, found[0][1]) if dump_optimizer else whole))

    def load_optimizer_states(self, fname: str) -> None:
        """Load optimizer states that were saved by this store or by a single process; one worker calls it.

        Raises
        ------
        MXNetError
            If the file is missing, damaged, or holds anything but optimizer states.
        """
        found = pickles.loads(files.read_bytes(fname), fname)
        states, *optimizer = found if isinstance(found, tuple) else (found,)
        if not isinstance(states, dict):
            raise MXNetError(f"{fname} holds no optimizer states")
        tables = [{} for _ in self._lines]
        for key, state in states.items():
            for part in self._known(key).parts:
                tables[part.server][key] = _divided(state, part, self._known(key))
        for line, table in zip(self._lines, tables):
            line.tell({"store": self._name, "do": "load_states"}, [_as_tensor(pickles.dumps((table, *optimizer) if optimizer else table))])
        for line in self._lines:
            line.hear()

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Compress the gradients that are sent to the servers; see `KVStore.set_gradient_compression`."""
        self._on_wire = make_compression(compression_params), dict(compression_params)

    # -- properties --------------------------------------------------------------------------------------------------------------

    def _send_command_to_servers(self, head, body):
        """Send a command by its number to all servers: 5 is the profiler."""
        self._ask({"do": "command", "head": head, "body": body})

    def _barrier(self):
        """Wait for the other workers, and until the servers have processed all earlier pushes."""
        self._ask({"do": "flush"})
        self._group.barrier()


def _as_tensor(content):
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def _for_servers(optimizer):
    """Return a copy of the optimizer with the multipliers of Gluon's parameters as its own numbers; the parameters are not sent."""
    sent = copy.copy(optimizer)
    sent.lr_mult = {**optimizer.lr_mult, **{i: p.lr_mult for i, p in optimizer.param_dict.items() if p.lr_mult != 1}}
    sent.wd_mult = {**optimizer.wd_mult, **{i: p.wd_mult for i, p in optimizer.param_dict.items() if p.wd_mult != 1}}
    return sent


def _joined(parts, kept):
    """Return the state of a whole value, joined from those of its parts."""
    first = parts[0]
    if isinstance(first, (list, tuple)):
        return type(first)(_joined(list(some), kept) for some in zip(*parts))
    if not isinstance(first, NDArray) or len(kept.parts) == 1:
        return first
    whole = torch.cat([(p if p.stype == "default" else p.tostype("default"))._raw() for p in parts])
    return NDArray._new(whole.view(kept.shape) if whole.numel() == torch.Size(kept.shape).numel() else whole, cpu())


def _divided(state, part, kept):
    """Return a part's slice of the state of a whole value."""
    if isinstance(state, (list, tuple)):
        return type(state)(_divided(some, part, kept) for some in state)
    if not isinstance(state, NDArray) or len(kept.parts) == 1 or state.shape != kept.shape:
        return state
    return NDArray._new(cut(state._raw(), part).clone(), cpu())
