"""Sums and selections of row_sparse arrays."""
import torch

from ..ndarray.sparse import row_sparse_array


def _parts(array):
    """The stored rows and their numbers, as torch tensors."""
    return array.data.as_torch(), array.indices.as_torch()


def _build(rows, numbers, like):
    from ..ndarray import from_torch
    return row_sparse_array((from_torch(rows, like.context), from_torch(numbers, like.context)), shape=like.shape, ctx=like.context,
                            dtype=like.dtype)


def add(arrays):
    """The sum of row_sparse arrays on one device; a single one is returned as it is."""
    if len(arrays) == 1:
        return arrays[0]
    parts = [_parts(a) for a in arrays]
    rows = torch.cat([r for r, _ in parts])
    numbers, position = torch.unique(torch.cat([n for _, n in parts]), return_inverse=True)
    total = rows.new_zeros((len(numbers), *rows.shape[1:])).index_add_(0, position, rows)
    return _build(total, numbers, arrays[0])


def retain(array, row_ids):
    """The rows of a row_sparse array that an NDArray of numbers lists, in rising order; rows that are not stored are zero."""
    rows, numbers = _parts(array)
    wanted = torch.unique(row_ids.as_torch().to(numbers.device, numbers.dtype))
    found = torch.isin(wanted, numbers)
    selected = rows.new_zeros((len(wanted), *rows.shape[1:]))
    selected[found] = rows[torch.searchsorted(numbers, wanted[found])]
    return _build(selected, wanted, array)
