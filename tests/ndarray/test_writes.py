import gc

import pytest
import torch

from mxnet.ndarray import writes


class Watcher:
    stale = compares = False


@pytest.fixture(autouse=True)
def nothing_shared(monkeypatch):
    for name, empty in (("_exposed", set()), ("_shared", set()), ("watched", {})):
        monkeypatch.setattr(writes, name, empty)


def test_a_write_is_told_to_who_watches_the_memory():
    t, other, watcher = torch.ones(4), torch.ones(4), Watcher()
    writes.watch([t], watcher)
    writes.written(other)
    assert not watcher.stale
    writes.written(t[1:2])  # shares its memory
    assert watcher.stale and not writes.watched  # told once


def test_watchers_are_not_kept_alive():
    t, watcher = torch.ones(1), Watcher()
    writes.watch([t], watcher)
    del watcher
    gc.collect()
    writes.written(t)


def test_what_torch_may_write_to_has_to_be_compared():
    first, second, watcher = torch.ones(1), torch.ones(1), Watcher()
    writes.watch([first, second], watcher)
    assert not watcher.compares
    writes.share(second)
    assert watcher.compares and not watcher.stale
    late = Watcher()
    writes.watch([second], late)
    assert late.compares


def test_exposed_memory_is_never_watched_again():
    t, watcher = torch.ones(1), Watcher()
    writes.watch([t], watcher)
    assert writes.may_watch(t)
    writes.expose(t)
    assert watcher.stale and not writes.may_watch(t)


def test_tensors_of_inference_mode_cannot_be_watched():
    with torch.inference_mode():
        t = torch.ones(1)
    assert not writes.may_watch(t)
