"""The use of stores in training: their choice, the initialization of parameters, and the updates."""
from collections.abc import Callable, Iterator, Mapping, Sequence

from .. import environment
from ..base import MXNetError
from ..ndarray import NDArray
from ..optimizer import Updater, pickles
from ..suggestions import shortened
from .base import KVStoreBase, create, spans_processes
from .kvstore import KVStore

# A weight of more elements than this is updated on each device instead of once on the CPU by a 'local' store.
_BIG_WEIGHT = 16 * 1024 * 1024

# Per parameter, the array on each device.
PerDevice = Sequence[Sequence[NDArray]]


def create_kvstore(kvstore: str | KVStoreBase | None, num_device: int, arg_params: Mapping[str, NDArray]) -> tuple[KVStoreBase | None, bool]:
    """Return the store for `kvstore` (None if one device needs none), and True if the store runs the optimizer.

    ``MXNET_UPDATE_ON_KVSTORE=0`` keeps the optimizer out of the store.
    """
    update_on_kvstore = environment.get_bool("MXNET_UPDATE_ON_KVSTORE")
    if kvstore is None or isinstance(kvstore, KVStoreBase):
        store = kvstore
    elif not isinstance(kvstore, str):
        raise TypeError(f"kvstore must be KVStore, str or None, received {shortened(kvstore)}")
    elif num_device == 1 and not spans_processes(kvstore):
        store = None
    else:
        store = create(kvstore)
        if kvstore == "local" and max((value.size for value in arg_params.values()), default=0) > _BIG_WEIGHT:
            update_on_kvstore = False
    if store is None:
        return None, False
    return store, update_on_kvstore and store.is_capable(KVStoreBase.OPTIMIZER)


def joined_store(kvstore: str | KVStoreBase | None) -> str | KVStoreBase | None:
    """Create the store if `kvstore` is the name of one that spans processes; return anything else unchanged."""
    return create(kvstore) if isinstance(kvstore, str) and spans_processes(kvstore) else kvstore


def create_sparse_kvstore(kvstore: str | KVStore) -> tuple[KVStoreBase, bool]:
    """Return the store for row_sparse parameters and True: it always runs the optimizer."""
    if isinstance(kvstore, KVStore):
        store = kvstore
    elif isinstance(kvstore, str):
        store = create(kvstore)
    else:
        raise TypeError(f"row_sparse parameters need a KVStore or the name of one, received {shortened(kvstore)}")
    if not store.is_capable(KVStoreBase.OPTIMIZER):
        raise MXNetError(f"row_sparse parameters need a kvstore that runs the optimizer; {store.type!r} does not: use 'local' or 'device'")
    return store, True


def initialize_kvstore(kvstore: KVStoreBase, param_arrays: PerDevice, arg_params: Mapping[str, NDArray], param_names: Sequence[str],
                       update_on_kvstore: bool) -> None:
    """Initialize the store with all parameters; if it runs the optimizer, its values are written to the devices."""
    for name, on_devices in zip(param_names, param_arrays):
        value = arg_params[name]
        # `init` is not part of the interface of stores (KVStoreBase), only of the built-in one.
        if (update_on_kvstore and value.stype == "default") or not hasattr(kvstore, "init"):
            kvstore.broadcast(name, value, out=on_devices)
        else:
            kvstore.init(name, value)
            if value.stype == "default" and kvstore.num_workers > 1:  # all begin with the values of worker 0, regardless of their seeds
                kvstore.pull(name, out=on_devices)


def _with_gradient(param_arrays: PerDevice, grad_arrays: PerDevice) -> Iterator[tuple[int, Sequence[NDArray], Sequence[NDArray]]]:
    """Yield ``(index, arrays, gradients)`` of each parameter that has a gradient."""
    for index, (arrays, gradients) in enumerate(zip(param_arrays, grad_arrays)):
        if gradients[0] is not None:
            yield index, arrays, gradients


def _exchange_many(kvstore: KVStoreBase, items: Sequence[tuple[str, Sequence[NDArray], Sequence[NDArray]]], in_store: bool) -> bool:
    """Push the gradients of many parameters and pull in one call; return False if the store or sparse arrays need single calls."""
    if not kvstore.batches or any(gradients[0].stype != "default" or arrays[0].stype != "default" for _, arrays, gradients in items):
        return False
    if items:
        names, weights, gradients = zip(*items)
        kvstore.pushpull(list(names), list(gradients), out=list(weights) if in_store else None)
    return True


def _exchange(kvstore: KVStoreBase, name: str, gradients: Sequence[NDArray], arrays: Sequence[NDArray], out: Sequence[NDArray] | None,
              priority: int) -> None:
    """Push gradients and pull into `out`."""
    if arrays[0].stype == "default" and (out is not None or gradients[0].stype == "default"):
        kvstore.pushpull(name, gradients, out=out, priority=priority)
    else:
        kvstore.push(name, gradients, priority=priority)
        kvstore.pull(name, out=gradients if out is None else out, priority=priority)


def renumber_states(updater: Updater, names: Sequence[str], num_device: int, by_name: bool) -> None:
    """Rename the keys of loaded states to those of the updater.

    A store's keys are names of parameters; a module's keys are ``position * num_device + device``, for each device. A file may be from another number
    of devices.
    """
    updater._states_matched = True
    states = updater.states
    numbers = [key for key in states if isinstance(key, int)]
    saved_devices = max(numbers, default=0) // max(len(names), 1) + 1
    if not by_name and len(numbers) == len(states) and saved_devices == num_device or by_name and not numbers:
        return
    first: dict[str, object] = {}  # all devices have the same states
    for key, state in states.items():
        if isinstance(key, str):
            first.setdefault(key, state)
        elif isinstance(key, int) and 0 <= key < saved_devices * len(names):
            first.setdefault(names[key // saved_devices], state)
    if by_name:
        updater.states = first
    else:
        positions = {name: position for position, name in enumerate(names)}
        updater.states = {positions[name] * num_device + k: pickles.loads(pickles.dumps(state), name) if k else state
                          for name, state in first.items() if name in positions for k in range(num_device)}
    updater.states_synced = dict.fromkeys(updater.states, False)


def update_params_on_kvstore(param_arrays: PerDevice, grad_arrays: PerDevice, kvstore: KVStoreBase, param_names: Sequence[str]) -> None:
    """Update the parameters in the store, and pull them."""
    if _exchange_many(kvstore, [(param_names[i], *rest) for i, *rest in _with_gradient(param_arrays, grad_arrays)], True):
        return
    for index, arrays, gradients in _with_gradient(param_arrays, grad_arrays):
        _exchange(kvstore, param_names[index], gradients, arrays, arrays, -index)


def update_params_on_kvstore_nccl(param_arrays: PerDevice, grad_arrays: PerDevice, kvstore: KVStoreBase, param_names: Sequence[str]) -> None:
    """Do the same as `update_params_on_kvstore`, with ``MXNET_UPDATE_AGGREGATION_SIZE`` parameters at a time."""
    items = list(_with_gradient(param_arrays, grad_arrays))
    step = environment.get_int("MXNET_UPDATE_AGGREGATION_SIZE") or 16
    for start in range(0, len(items), step):
        indices, arrays, gradients = zip(*items[start:start + step])
        kvstore.pushpull([param_names[i] for i in indices], list(gradients), out=list(arrays), priority=-start)


def update_params(param_arrays: PerDevice, grad_arrays: PerDevice, updater: Callable[[list, list, list], object], num_device: int,
                  kvstore: KVStoreBase | None = None, param_names: Sequence[str] = (), updated_names: Sequence[str] | None = None) -> None:
    """Update the parameters on each device, after the store, if any, has summed the gradients.

    The updater receives all parameters of a device in one call, so that it can update many at a time. It numbers them as `updated_names`
    does, by default as `param_names`: networks that share an updater may have their parameters in another order, or fewer of them.
    """
    same = updated_names is None or param_names == updated_names
    numbers = None if same else {name: number for number, name in enumerate(updated_names or ())}
    updates: list[tuple[list, list, list]] = [([], [], []) for _ in range(num_device)]
    done = kvstore is None or _exchange_many(kvstore, [(param_names[i], *rest) for i, *rest in _with_gradient(param_arrays, grad_arrays)], False)
    for index, arrays, gradients in _with_gradient(param_arrays, grad_arrays):
        if kvstore and not done:
            _exchange(kvstore, param_names[index], gradients, arrays, None, -index)
        number = index if numbers is None else numbers[param_names[index]]
        for k, (indices, grads, weights) in enumerate(updates):
            indices.append(number * num_device + k)
            grads.append(gradients[k])
            weights.append(arrays[k])
    for indices, grads, weights in updates:
        if indices:
            updater(indices, grads, weights)
