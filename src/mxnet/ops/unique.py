"""Distinct integers of a tensor, such as the rows or columns that a batch uses."""
import numpy as np
import torch


def unique(values: torch.Tensor) -> torch.Tensor:
    """Return the distinct elements of an int64 tensor, in ascending order.

    Example
    -------
    >>> unique(torch.tensor([7, 2, 7])).tolist()
    [2, 7]
    """
    if not _on_host(values):
        return torch.unique(values)
    ordered = np.sort(values.reshape(-1).numpy())
    return torch.from_numpy(ordered[_begins(ordered)])


def unique_inverse(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `unique` of an int64 tensor of one axis, and for each of its elements the position there.

    Example
    -------
    >>> [t.tolist() for t in unique_inverse(torch.tensor([7, 2, 7]))]
    [[2, 7], [1, 0, 1]]
    """
    if not _on_host(values):
        return torch.unique(values, return_inverse=True)
    array = values.numpy()
    bits = len(array).bit_length()
    if int(array.min()) < 0 or int(array.max()) >> (63 - bits):
        return torch.unique(values, return_inverse=True)
    # NumPy sorts integers with vector instructions, which its argsort and torch's do not: each value carries its position along.
    positions = np.arange(len(array))
    keys = np.sort(array << bits | positions)
    ordered = keys >> bits
    first = _begins(ordered)
    inverse = positions  # its memory is not needed any more
    inverse[keys & ((1 << bits) - 1)] = first.cumsum() - 1
    return torch.from_numpy(ordered[first]), torch.from_numpy(inverse)


def _on_host(values: torch.Tensor) -> bool:
    """Return whether NumPy sorts these, as far as types and devices go."""
    return values.is_cpu and values.dtype is torch.int64 and values.numel() > 0


def _begins(ordered: np.ndarray) -> np.ndarray:
    """Return where an array in ascending order has an element that differs from the one before."""
    first = np.empty(len(ordered), bool)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first
