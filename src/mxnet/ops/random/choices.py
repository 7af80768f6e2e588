"""Operators that choose from given elements: classes by probability, distinct classes, and shuffling."""
import functools
import math
import warnings
from typing import Annotated

import torch

from ...base import MXNetError
from ...kernels.random.generators import classes as compiled_classes
from ..random_state import generator, source
from ..registry import op
from ..schema import Between, Device, DType, Optional, Shape
from ..shapes import product, unify


@op("_sample_multinomial", aliases=("sample_multinomial",), num_outputs=lambda attributes: 2 if attributes["get_prob"] else 1, stochastic=True)
def sample_multinomial(data, *, shape: Shape = (), get_prob: bool = False, dtype: DType = torch.int32):
    """Draw classes with the probabilities `data`: (k,) or (..., k), along the last axis.

    The result has the shape ``(*data.shape[:-1], *shape)``, or (1,) for one class out of one distribution. With `get_prob` the
    logarithms of the probabilities follow as a second array; the gradient reaches `data` through these. Rows with negative numbers, or nothing
    but zeros, are no probabilities: as in MXNet their first class is drawn whose cumulative sum reaches a uniform number, or else the last one.

    Raises
    ------
    MXNetError
        If `data` has no axis.

    Example
    -------
    >>> mx.nd.sample_multinomial(mx.nd.array([[0, 1], [1, 0]]), shape=2).asnumpy()
    array([[1, 1],
           [0, 0]], dtype=int32)
    """
    if data.dim() == 0:
        raise MXNetError("_sample_multinomial: `data` must have at least one axis, received a scalar")
    out_shape = (*data.shape[:-1], *shape) or (1,)
    if data.device.type == "meta":
        classes = torch.empty(out_shape, dtype=dtype, device=data.device)
        return (classes, torch.empty(out_shape, dtype=data.dtype, device=data.device)) if get_prob else classes
    rows = data.reshape(-1, data.shape[-1])
    classes_of_rows = _classes(rows.detach(), max(product(shape), 1))
    classes = classes_of_rows.reshape(out_shape).to(dtype)
    if not get_prob:
        return classes
    return classes, rows.gather(1, classes_of_rows).log().reshape(out_shape)


def _classes(rows, count):
    """For each row of chances, (n, k), so many classes, (n, count)."""
    bank = source(rows.device)
    if bank is None:
        # Torch's sampler works in the type of the chances.
        chances = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
        return torch.multinomial(chances, count, replacement=True, generator=generator(rows.device))
    numbers = bank.numbers(len(rows) * count).view(len(rows), count)
    chosen, right = compiled_classes(rows, numbers) or _classes_on_torch(rows, numbers)
    if not right:
        warnings.warn("_sample_multinomial: rows of `data` hold negative numbers, or nothing but zeros; probabilities are expected", stacklevel=2)
        chosen = _classes_on_torch(rows, numbers)[0]
    return chosen


def _classes_on_torch(rows, numbers):
    """The classes that uniform numbers choose, and whether all rows hold probabilities or weights."""
    sums = rows.double().cumsum(1)
    totals = sums[:, -1:]
    right = (rows >= 0).all(1, keepdim=True) & (totals > 0)
    # Rows that do not add up to 1 are taken for weights; those that almost do, or hold none, are left as they are.
    scaled = torch.where(right & ((totals - 1).abs() >= 1e-3), numbers * totals.float(), numbers)
    return torch.searchsorted(sums.float().nan_to_num_(math.inf, math.inf, -math.inf), scaled).clamp_(max=rows.shape[1] - 1), bool(right.all())


@sample_multinomial.shape_rule
def _(in_shapes, out_shapes, *, shape, **_):
    data = in_shapes[0]
    if data is None or len(data) == 0:
        return in_shapes, out_shapes
    out = (*data[:-1], *shape) or (1,)
    return in_shapes, [unify(o, out) for o in out_shapes]


@sample_multinomial.dtype_rule
def _(in_types, out_types, *, dtype, get_prob, **_):
    return in_types, [dtype, in_types[0]] if get_prob else [dtype]


@op("_sample_unique_zipfian", stochastic=True, num_outputs=2, output_names=("samples", "num_tries"), no_gradient=True)
def sample_unique_zipfian(*, range_max: Annotated[int, Between(1, 1 << 52)], shape: Optional[Shape] = None, device: Device = None):
    """For each of the n rows of `shape` (n, k) different classes below `range_max`, small ones more likely, and the draws it took.

    The probability of class c is ``log((c + 2) / (c + 1)) / log(range_max + 1)``, as in candidate sampling. The second array, of
    shape (n,), counts the draws, repeated ones included.

    Raises
    ------
    MXNetError
        If `shape` is not (n, k), or k is above `range_max`.
    """
    if shape is None or len(shape) != 2 or min(shape) < 0:
        raise MXNetError(f"_sample_unique_zipfian: `shape` must be (rows, classes), received {shape}")
    rows, k = shape
    if k > range_max:
        raise MXNetError(f"_sample_unique_zipfian: {k} different classes cannot be drawn out of {range_max}")
    if device is not None and device.type == "meta":
        return torch.empty(shape, dtype=torch.int64, device=device), torch.empty((rows,), dtype=torch.int64, device=device)
    classes = torch.empty(shape, dtype=torch.int64, device=device)
    tries = torch.zeros(rows, dtype=torch.int64, device=device)
    bank = source(device)
    rare = k > max(range_max // 4, 1024)
    if bank is not None and not rare and classes.numel() <= 1 << 20:
        each = -(-rows // min(rows, 1024)) if rows else 1  # rows that share a state
        for row in range(rows):
            drawn, count = _unique_classes(range_max, k, functools.partial(bank.state_numbers, state=row // each))
            classes[row], tries[row] = torch.tensor(drawn, dtype=torch.int64), count
    elif classes.numel():
        draw = _raced if rare else _drawn
        each = max(1, (1 << 18) // k)
        for some, count in zip(classes.split(each), tries.split(each)):
            draw(range_max, some, count)
    return classes, tries


def _drawn(range_max, classes, tries):
    """Fill the rows of `classes` by drawing until there are enough different ones; `tries` receives the numbers of draws."""
    rows, k = classes.shape
    open_rows = torch.arange(rows, device=classes.device)
    history = classes.new_empty(rows, 0)
    while len(open_rows):
        u = torch.empty(len(open_rows), 2 * k, dtype=torch.float64, device=classes.device).uniform_(generator=generator(classes.device))
        more = (torch.exp(u * math.log(range_max + 1)).long() - 1).clamp_(0, range_max - 1)
        history = torch.cat([history, more], 1)
        ranked, order = history.sort(dim=1, stable=True)
        new = torch.ones_like(history, dtype=torch.bool)
        new.scatter_(1, order[:, 1:], ranked[:, 1:] != ranked[:, :-1])
        seen = new.cumsum(1)
        done = seen[:, -1] >= k
        finished = open_rows[done]
        classes[finished] = history[done][(new & (seen <= k))[done]].reshape(-1, k)
        tries[finished] = (seen[done] < k).sum(1) + 1
        open_rows, history = open_rows[~done], history[~done]


def _raced(range_max, classes, tries):
    """`_drawn`, by the same distribution, where most classes are asked for and the last would hardly ever be drawn.

    Waiting times with the rates p determine the order in which classes appear, and how many draws pass between two of them is geometric.
    """
    number = torch.arange(range_max, dtype=torch.float64, device=classes.device)
    p = torch.log1p(1 / (number + 1)) / math.log(range_max + 1)
    torchs = generator(classes.device)
    for row, count in zip(classes, tries):
        row.copy_((torch.empty_like(p).exponential_(generator=torchs) / p).argsort()[:len(row)])
        rest = p.sum() - p[row].cumsum(0)  # the remaining probability after each class
        u = torch.empty_like(rest).uniform_(generator=torchs)
        count.copy_((torch.log1p(-u) / torch.log1p(-rest)).ceil().clamp_min(1)[:-1].sum() + 1)


def _unique_classes(range_max, k, uniform):
    """Different classes, and how many of ``uniform(count)``'s numbers it took: never more than were needed."""
    seen: dict[int, None] = {}
    tries, scale = 0, math.log(range_max)
    while len(seen) < k:
        numbers = uniform(k - len(seen)).tolist()
        tries += len(numbers)
        seen.update((math.floor(math.exp(u * scale) + 0.5) - 1, None) for u in numbers)
    return list(seen), tries


@sample_unique_zipfian.dtype_rule
def _(in_types, out_types, **_):
    return in_types, [torch.int64, torch.int64]


@op("_shuffle", aliases=("shuffle", "_npi_shuffle"), same_shape=True, stochastic=True, amp=("inputs", "inputs"))
def shuffle(data):
    """The entries of the first axis in random order.

    Example
    -------
    >>> sorted(mx.nd.shuffle(mx.nd.array([1, 2, 3])).asnumpy().tolist())
    [1.0, 2.0, 3.0]
    """
    if data.device.type == "meta":
        return torch.empty_like(data)
    bank = source(data.device)
    if bank is None:
        return data.index_select(0, torch.randperm(data.shape[0], generator=generator(data.device), device=data.device))
    return data.index_select(0, bank.order(data.shape[0], backwards=data.dim() > 1))
