"""Who wants to know that values were written in place.

A compiled graph has the values of its weights built in. Writes bypass torch's version counter (a later backward must see new values
without an error), so every place that writes into an array calls `written`. Writes through torch itself
(``x.as_torch().mul_(2)``) are told by torch's counter.
"""
import weakref

_exposed: set = set()  # addresses of storages that others may write to without telling
watched: dict = {}  # the address of a storage -> the watchers of what lies in it


def watch(tensors, watcher):
    """Set ``watcher.stale`` to True when any of the tensors, or what shares memory with them, is written to."""
    for t in tensors:
        watched.setdefault(t.untyped_storage().data_ptr(), weakref.WeakSet()).add(watcher)


def expose(tensor):
    """From now on others may write to the tensor's memory unseen: what has its values built in is out of date, and never made again."""
    written(tensor)
    _exposed.add(tensor.untyped_storage().data_ptr())


def may_watch(tensor):
    """Whether every write to the tensor can be noticed."""
    return not tensor.is_inference() and tensor.untyped_storage().data_ptr() not in _exposed


def written(tensor):
    """Say that a tensor's values have changed."""
    if watched:
        watchers = watched.pop(tensor.untyped_storage().data_ptr(), ())
        for watcher in watchers:
            watcher.stale = True
