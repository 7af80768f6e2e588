"""Memory of results: functions that make sure that a result shares none with an input."""
from collections.abc import Iterable, Sequence

import torch


def owned(data: torch.Tensor) -> torch.Tensor:
    """Return the same values in memory of their own."""
    return data.clone(memory_format=torch.contiguous_format)


def distinct(results: Iterable[torch.Tensor], inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return the results, copied where they share memory with an input or with a result before them: for functions that lowering cannot look into."""
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
