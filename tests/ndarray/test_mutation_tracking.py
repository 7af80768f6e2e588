import gc
import pathlib
import re

import pytest
import torch

import mxnet as mx
from mxnet.ndarray import mutation_tracking


class Watcher:
    stale = compares = False


@pytest.fixture(autouse=True)
def nothing_shared(monkeypatch):
    for name, empty in (("_exposed", mutation_tracking.Storages()), ("_shared", mutation_tracking.Storages()), ("watched", {})):
        monkeypatch.setattr(mutation_tracking, name, empty)


def test_a_write_is_told_to_who_watches_the_memory():
    t, other, watcher = torch.ones(4), torch.ones(4), Watcher()
    mutation_tracking.watch([t], watcher)
    mutation_tracking.written(other)
    assert not watcher.stale
    mutation_tracking.written(t[1:2])  # shares its memory
    assert watcher.stale and not mutation_tracking.watched  # told once


def test_watchers_are_not_kept_alive():
    t, watcher = torch.ones(1), Watcher()
    mutation_tracking.watch([t], watcher)
    del watcher
    gc.collect()
    mutation_tracking.written(t)


def test_what_torch_may_write_to_has_to_be_compared():
    first, second, watcher = torch.ones(1), torch.ones(1), Watcher()
    mutation_tracking.watch([first, second], watcher)
    assert not watcher.compares
    mutation_tracking.share(second)
    assert watcher.compares and not watcher.stale
    late = Watcher()
    mutation_tracking.watch([second], late)
    assert late.compares


def test_watchers_follow_a_tensor_to_other_memory():
    t, other, first, second = torch.ones(2, 3), torch.ones(1), Watcher(), Watcher()
    mutation_tracking.watch([t], first)
    values = t.t().contiguous().t()
    mutation_tracking.watch([values], second)
    mutation_tracking.replace_memory(t, values)
    assert t.stride() == (1, 2) and not first.stale
    mutation_tracking.written(t)
    assert first.stale and second.stale and not mutation_tracking.watched
    mutation_tracking.replace_memory(other, torch.ones(1))
    assert not mutation_tracking.watched


def test_writes_through_torch_are_not_announced():
    t = torch.ones(1)
    assert mutation_tracking.are_writes_announced(t)
    mutation_tracking.share(t)
    assert mutation_tracking.may_watch(t) and not mutation_tracking.are_writes_announced(t)


def test_exposed_memory_is_never_watched_again():
    t, watcher = torch.ones(1), Watcher()
    mutation_tracking.watch([t], watcher)
    assert mutation_tracking.may_watch(t)
    mutation_tracking.expose(t)
    assert watcher.stale and not mutation_tracking.may_watch(t)


def test_tensors_of_inference_mode_cannot_be_watched():
    with torch.inference_mode():
        t = torch.ones(1)
    assert not mutation_tracking.may_watch(t)


def test_a_storage_is_known_as_long_as_it_lives():
    t = torch.ones(4)
    alias = torch.frombuffer(t.numpy(), dtype=torch.float32)  # another storage on the same memory
    mutation_tracking.expose(t)
    mutation_tracking.expose(alias)
    assert len(mutation_tracking._exposed) == 1
    part = t[1:]
    del alias, t
    gc.collect()
    assert not mutation_tracking.may_watch(part)
    kept = [torch.ones(1) for _ in range(3)]
    for x in kept:
        mutation_tracking.share(x)
    for _ in range(1000):
        keep = torch.ones(1)
        kept = [*kept[:3], *kept[-50:], keep]
        mutation_tracking.share(keep)
    assert len(mutation_tracking._shared) <= 128
    assert all(x.data_ptr() in mutation_tracking._shared for x in kept)


def test_addresses_of_watchers_that_are_gone_are_dropped(monkeypatch):
    monkeypatch.setattr(mutation_tracking, "_full", 64)  # other tests may have watched more
    kept = [torch.ones(1) for _ in range(1000)]
    alive = Watcher()
    mutation_tracking.watch(kept[:2], alive)
    for t in kept:
        mutation_tracking.watch([t], Watcher())
    for _ in range(10):
        mutation_tracking.watch([kept[0]], Watcher())
    assert len(mutation_tracking.watched) <= 128 and len(mutation_tracking.watched[kept[0].untyped_storage().data_ptr()]) <= 2
    mutation_tracking.written(kept[1])
    assert alive.stale


def test_every_replaced_tensor_counts():
    """Compiled graphs compare their weights again only after `_rebind` has counted a replacement: no module may assign past it."""
    package, assigns = pathlib.Path(mx.__file__).parent, re.compile(r"([\w\])]+)\._data\b(?!\.)[^=()]*= |setattr\(\w+, slot")
    assignments = set()
    for path in package.rglob("*.py"):
        for line in path.read_text().splitlines():
            match = assigns.search(line)
            if match and (match[1] != "self" or path.name in ("ndarray.py", "multiarray.py")):  # `self` is no array elsewhere
                assignments.add(f"{path.relative_to(package)}: {line.strip()}")
    assert assignments == {
        "ndarray/dispatch.py: array._data = tensor",  # `wrap`: a new array
        "ndarray/fast_calls.py: array._data, array._ctx, array._autograd = result, lhs._ctx, None",  # a new one, too
        "ndarray/fast_calls.py: array._data, array._ctx, array._autograd = result, x._ctx, None",
        "ndarray/ndarray.py: self._data, self._ctx, self._autograd = handle._data, handle._ctx, None",  # `__init__`
        "ndarray/ndarray.py: self._data, self._ctx, self._autograd = handle, context_of(handle), None",
        "ndarray/serialization.py: setattr(array, slot, getattr(loaded, slot))",  # of sparse arrays
        "ndarray/ndarray.py: self._data = tensor"}  # `_rebind`
