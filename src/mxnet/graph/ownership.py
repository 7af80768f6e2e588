"""Ownership of results: functions that ensure that a result shares no memory with an input."""
from collections.abc import Iterable, Sequence

import torch


def owned(data: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy in newly allocated memory."""
    return data.clone(memory_format=torch.contiguous_format)


def distinct(results: Iterable[torch.Tensor], inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return the results; those that share memory with an input or an earlier result are copied. For functions that lowering cannot analyse."""
    taken = {t.untyped_storage().data_ptr() for t in inputs}
    separate = []
    for result in results:
        storage = result.untyped_storage().data_ptr()
        if storage in taken:
            result = owned(result)
            storage = result.untyped_storage().data_ptr()
        taken.add(storage)
        separate.append(result)
    return tuple(separate)
