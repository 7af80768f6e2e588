"""Tensors as text, right ones and wrong ones: what a case of a kernel is made of."""
import math

import torch

_MOST = 1 << 21
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64]
TYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8", "bool"]
ORDERS = ["plain", "last", "turned", "every second", "repeated", "the end", "parameter", "meta", "sparse", "subclass"]
INTEGERS = [0, 1, -1, 2, 3, 127, 128, 255, 256, 2**31 - 1, 2**31, -2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, -2**63, 2**64, 1.0, 1.5,
            True, None, "a", float("nan")]
NUMBERS = [0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 1e300, float("nan"), float("inf"), 10**400, 2**63, -1, 7, True, None, "a"]


class _Other(torch.Tensor):
    pass


def described(dtype, shape, rng, order="plain", low=None, high=None):
    """A description, from which `made` makes always the same tensor; `low` to `high` for whole numbers."""
    found = {"dtype": dtype, "shape": list(shape), "order": order, "seed": rng.randrange(1 << 30)}
    if low is not None:
        found.update(low=low, high=high)
    elif rng.random() < 0.05:
        found["special"] = True
    return found


def made(spec):
    """The tensor of a description; None for None."""
    if spec is None:
        return None
    shape, order, dtype = spec["shape"], spec["order"], getattr(torch, spec["dtype"])
    if order == "meta":
        return torch.empty(shape, dtype=dtype, device="meta")
    found = _filled(spec, [1] * len(shape) if order == "repeated" else shape)
    if dtype is not found.dtype:
        found = found.to(dtype)
    if order == "last" and found.dim() == 4:
        return found.contiguous(memory_format=torch.channels_last)
    if order == "turned" and found.dim() > 1:
        return found.transpose(-1, -2).contiguous().transpose(-1, -2)
    if order == "every second" and found.dim():
        return found.repeat_interleave(2, dim=-1)[..., ::2]
    if order == "repeated":
        return found.expand(shape)
    if order == "the end":
        memory = torch.zeros(found.numel() + 1, dtype=dtype)
        memory[1:] = found.reshape(-1)
        return memory[1:].view(shape)
    if order == "parameter":
        return torch.nn.Parameter(found, requires_grad=False)
    if order == "sparse" and dtype is not torch.uint32:  # torch has none of these
        return found.to_sparse()
    return found.as_subclass(_Other) if order == "subclass" else found


def _filled(spec, shape):
    generator = torch.Generator().manual_seed(spec["seed"])
    if "low" in spec:
        return torch.randint(spec["low"], spec["high"] + 1, shape, generator=generator)
    if not getattr(torch, spec["dtype"]).is_floating_point:
        return torch.randint(0, 3, shape, generator=generator)
    found = torch.randn(shape, generator=generator)
    if spec.get("special"):
        values = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e38, -1e38, 1e-42])
        where = torch.rand(shape, generator=generator) < 0.1
        found = torch.where(where, values[torch.randint(0, len(values), shape, generator=generator)], found)
    return found


def spoil(specs, rng):
    """Change something about one of the descriptions, in place."""
    i = rng.randrange(len(specs))
    spec = specs[i] = None if specs[i] is None else dict(specs[i])
    way = rng.randrange(8)
    if spec is None or "same" in spec:
        specs[i] = described(rng.choice(TYPES), [rng.choice(SIZES[:9]) for _ in range(rng.randrange(5))], rng)
    elif way == 0:
        spec = specs[i] = None
    elif way == 1:
        spec["dtype"] = rng.choice(TYPES)
    elif way == 2:
        spec["order"] = rng.choice(ORDERS)
    elif way == 3:
        spec["shape"] = list(spec["shape"])
        if rng.random() < 0.5:
            spec["shape"].insert(rng.randrange(len(spec["shape"]) + 1), rng.choice((0, 1, 2)))
        elif spec["shape"]:
            del spec["shape"][rng.randrange(len(spec["shape"]))]
    elif way == 4 and len(specs) > 1:
        specs[i] = {"same": rng.randrange(len(specs))}
    elif spec["shape"]:
        spec["shape"] = list(spec["shape"])
        axis = rng.randrange(len(spec["shape"]))
        size = spec["shape"][axis]
        spec["shape"][axis] = max(0, rng.choice((size - 1, size + 1, 2 * size, size // 2, 1, 0, rng.choice(SIZES))))
    if spec is not None and math.prod(spec.get("shape", ())) > _MOST:  # a wrong axis of 64 before a long one
        specs[i] = {**spec, "shape": [min(spec["shape"])]}


def all_made(specs):
    """The tensors of descriptions; ``{"same": i}`` is the i-th of them, or None if that is no tensor of its own or gone."""
    found = [None if spec is None or "same" in spec else made(spec) for spec in specs]
    return [(found + [None] * spec["same"])[spec["same"]] if spec is not None and "same" in spec else t for spec, t in zip(specs, found)]
