"""Element-wise functions in one pass over memory. Torch's operators take several passes, or a call of libm for each number."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ..runtime.contract import Kernel

# Elements below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 14
_IN, _DOUT, _OUT = {"data": "float32 (n)"}, {"dout": "float32 (n)"}, {"out": "float32 (n)"}
_PAIR, _BOTH = {"a": "float32 (n)", "b": "float32 (n)"}, {"da": "float32 (n)", "db": "float32 (n)"}


def _kernel(entry, takes, makes=_OUT, numbers=""):
    return Kernel("elementwise/pointwise", entry, takes, makes, sizes=("n",), numbers=numbers)


_gamma = _kernel("gamma_of", _IN)
_softsign = _kernel("softsign", _IN)
_softsign_back = _kernel("softsign_back", {**_IN, **_DOUT})
_rest_by = _kernel("rest_by", _IN, numbers="f")
_rest_by_back = _kernel("rest_by_back", {**_IN, **_DOUT}, numbers="f")
_rest_of = _kernel("rest_of", _PAIR)
_rest_of_back = _kernel("rest_of_back", {**_PAIR, **_DOUT})
_add_three = _kernel("add_three", {**_PAIR, "c": "float32 (n)"})
_square_back = _kernel("square_back", {**_IN, **_DOUT})
_quadratic = _kernel("quadratic", _IN, numbers="fff")
_quadratic_back = _kernel("quadratic_back", {**_IN, **_DOUT}, numbers="ff")
_round_down, _round_away = _kernel("round_down", _IN), _kernel("round_away", _IN)
_cube_roots = _kernel("cube_roots", _IN)
_cube_roots_back = _kernel("cube_roots_back", {"roots": "float32 (n)", **_DOUT})
_arcsinh, _arccosh = _kernel("arcsinh_of", _IN), _kernel("arccosh_of", _IN)
_arcsinh_back, _arccosh_back = _kernel("arcsinh_back", {**_IN, **_DOUT}), _kernel("arccosh_back", {**_IN, **_DOUT})
_hard_sigmoid = _kernel("hard_sigmoid", _IN, numbers="ff")
_hard_sigmoid_back = _kernel("hard_sigmoid_back", {**_IN, **_DOUT}, numbers="f")
_clip_back = _kernel("clip_back", {**_IN, **_DOUT}, numbers="ff")
_not_below_back = _kernel("not_below_back", {**_IN, **_DOUT}, numbers="f")
_not_above_back = _kernel("not_above_back", {**_IN, **_DOUT}, numbers="f")
_inverse_back = _kernel("inverse_back", {**_IN, **_DOUT}, numbers="f")
_larger_back = _kernel("larger_back", {**_PAIR, **_DOUT}, _BOTH)
_smaller_back = _kernel("smaller_back", {**_PAIR, **_DOUT}, _BOTH)
_quotient_back = _kernel("quotient_back", {**_PAIR, **_DOUT}, _BOTH)
_choose = _kernel("choose_{T}", {"condition": "T (n)", **_PAIR})
_choose_back = _kernel("choose_back_{T}", {"condition": "T (n)", **_DOUT}, _BOTH)
_adapted_rates = _kernel("adapted_rates", {n: "float32 (n)" for n in ("rates", "weights", "gradients", "wds")}, numbers="fff")

_FAR = 1e8  # from here on ``x * x - 1 == x * x`` in float32, and larger squares overflow


def gamma(data: torch.Tensor) -> torch.Tensor | None:
    """Return the gamma function; None without a kernel. Functions here that may return None record no gradient."""
    return _one(_gamma, (data,))


def softsign(data: torch.Tensor) -> torch.Tensor | None:
    """Return ``data / (1 + |data|)``; None without a kernel."""
    return _one(_softsign, (data,))


def softsign_back(data: torch.Tensor, dout: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient of `softsign`, ``dout / (1 + |data|) ** 2``; None without a kernel."""
    return _one(_softsign_back, (data, dout))


def rest_by(data: torch.Tensor, scalar: float) -> torch.Tensor | None:
    """Return the remainder of ``scalar / data`` with the sign of `data`, 0 where it is 0; None without a kernel."""
    return _one(_rest_by, (data,), scalar)


def rest_by_back(data: torch.Tensor, dout: torch.Tensor, scalar: float) -> torch.Tensor | None:
    """Return the gradient of `rest_by`, ``-floor(scalar / data) * dout``; None without a kernel."""
    return _one(_rest_by_back, (data, dout), scalar)


def rest_of(lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor | None:
    """Return the remainder of ``lhs / rhs`` with the sign of `rhs`, 0 where it is 0; None without a kernel, or for unequal shapes."""
    return _one(_rest_of, (lhs, rhs))


def rest_of_back(lhs: torch.Tensor, rhs: torch.Tensor, dout: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient of `rhs` in `rest_of`, ``-floor(lhs / rhs) * dout``; None without a kernel."""
    return _one(_rest_of_back, (lhs, rhs, dout))


def add_three(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor | None:
    """Return ``a + b + c`` of arrays of one shape; None where torch is as fast."""
    recorded = [t for t in (a, b, c) if t.requires_grad] if torch.is_grad_enabled() else []
    if recorded:
        return _Three.apply(a, b, c) if _gains(recorded[0]) else None
    return _one(_add_three, (a, b, c))


class _Three(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        found = _one(_add_three, (a, b, c))
        return torch.add(a, b).add_(c) if found is None else found

    @staticmethod
    def backward(ctx, dout):
        return dout, dout, dout


def quadratic(data: torch.Tensor, a: float, b: float, c: float) -> torch.Tensor | None:
    """Return ``(a * data + b) * data + c``; None without a kernel."""
    return _one(_quadratic, (data,), a, b, c)


def quadratic_back(data: torch.Tensor, dout: torch.Tensor, a: float, b: float) -> torch.Tensor | None:
    """Return the gradient of `quadratic`, ``(2 * a * data + b) * dout``; None without a kernel."""
    return _one(_quadratic_back, (data, dout), 2 * a, b)


def round_down(data: torch.Tensor) -> torch.Tensor | None:
    """Round to the nearest integers, halves down; return None without a kernel."""
    return _one(_round_down, (data,))


def round_away(data: torch.Tensor) -> torch.Tensor | None:
    """Round to the nearest integers, halves away from zero; return None without a kernel."""
    return _one(_round_away, (data,))


def cube_root(data: torch.Tensor) -> torch.Tensor | None:
    """Return the cube root; None without a kernel."""
    return _one(_cube_roots, (data,))


def cube_root_back(roots: torch.Tensor, dout: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient of `cube_root`, ``dout / (3 * roots ** 2)``; None without a kernel."""
    return _one(_cube_roots_back, (roots, dout))


def flat(function: Callable[[torch.Tensor], torch.Tensor], data: torch.Tensor) -> torch.Tensor:
    """Return ``function(data)`` with a gradient of zero."""
    return _Flat.apply(function, data) if _gains(data) else function(data)


class _Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, data):
        return function(data)

    @staticmethod
    def backward(ctx, dout):
        return None, torch.zeros_like(dout)


def hard_sigmoid(data: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    """Return ``alpha * data + beta`` clipped to [0, 1]. The gradient is 0 at both bounds, too."""
    if _gains(data):
        return _HardSigmoid.apply(data, alpha, beta)
    found = _one(_hard_sigmoid, (data,), alpha, beta)
    return torch.nn.functional.hardtanh(data * alpha + beta, 0.0, 1.0) if found is None else found


class _HardSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, data, alpha, beta):
        out = hard_sigmoid(data, alpha, beta)
        ctx.save_for_backward(out)
        ctx.alpha = alpha
        return out

    @staticmethod
    def backward(ctx, dout):
        out = ctx.saved_tensors[0].detach()
        found = _one(_hard_sigmoid_back, (out, dout), ctx.alpha)
        return (dout * ctx.alpha).masked_fill(~((out > 0) & (out < 1)), 0) if found is None else found, None, None


def clip_back(data: torch.Tensor, dout: torch.Tensor, low: float, high: float) -> torch.Tensor | None:
    """Return the gradient of clip: `dout` where ``low <= data <= high`` or `data` is NaN, else 0; None without a kernel."""
    return _one(_clip_back, (data, dout), low, high)


def larger_back(lhs: torch.Tensor, rhs: torch.Tensor, dout: torch.Tensor) -> Any:
    """Return the gradients of the maximum: `dout` for `lhs` where it is not smaller, else for `rhs`; None without a kernel."""
    return _run(_larger_back, (lhs, rhs, dout))


def smaller_back(lhs: torch.Tensor, rhs: torch.Tensor, dout: torch.Tensor) -> Any:
    """Return the gradients of the minimum: `dout` for `lhs` where it is not larger, else for `rhs`; None without a kernel."""
    return _run(_smaller_back, (lhs, rhs, dout))


def adapted_rates(rates: torch.Tensor, weights: torch.Tensor, gradients: torch.Tensor, wds: torch.Tensor, eta: float, rescale: float,
                  epsilon: float) -> torch.Tensor | None:
    """Return LARS rates ``rates * eta * |w| / (|g| * rescale + wds * |w| + epsilon)``; the unchanged rate where a norm is 0. None without a kernel.

    `weights` and `gradients` are the squares of the norms ``|w|`` and ``|g|``.
    """
    return _one(_adapted_rates, (rates, weights, gradients, wds), eta, rescale, epsilon)


class _Way(NamedTuple):
    """A function of an array and numbers, with a kernel for its gradient."""

    function: Callable[..., torch.Tensor]
    kernel: Kernel
    gradient: Callable[..., torch.Tensor]  # of the array, the result's gradient and the numbers; the fallback without a kernel
    always: bool = False  # for small arrays, too: torch's own gradient overflows

    def __call__(self, data, *numbers):
        records = _gains(data) or self.always and data.requires_grad and torch.is_grad_enabled() and not torch.compiler.is_compiling()
        return _Recorded.apply(self, data, *numbers) if records else self.function(data, *numbers)


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, way, data, *numbers):
        ctx.save_for_backward(data)
        ctx.way, ctx.numbers = way, numbers
        return way.function(data, *numbers)

    @staticmethod
    def backward(ctx, dout):
        data, = ctx.saved_tensors
        found = _one(ctx.way.kernel, (data, dout), *ctx.numbers)
        return None, ctx.way.gradient(data, dout, *ctx.numbers) if found is None else found, *[None for _ in ctx.numbers]


def _either(kernel, function):
    """Return a function that calls the kernel, or `function` where the kernel does not fit."""
    def run(data):
        found = _one(kernel, (data,))
        return function(data) if found is None else found
    return run


square = _Way(torch.square, _square_back, lambda data, dout: dout * (data * 2))
# Maximum and minimum of an array and a number: at a tie the array gets the gradient.
not_below = _Way(torch.clamp_min, _not_below_back, lambda data, dout, border: dout.masked_fill(~(data >= border), 0))
not_above = _Way(torch.clamp_max, _not_above_back, lambda data, dout, border: dout.masked_fill(~(data <= border), 0))
inverse = _Way(lambda data, number: torch.div(data.new_full((), number), data), _inverse_back,
               lambda data, dout, number: dout * (-number / (data * data)))
arcsinh = _Way(_either(_arcsinh, torch.asinh), _arcsinh_back, lambda data, dout: dout / torch.hypot(data, data.new_ones(())), True)
arccosh = _Way(_either(_arccosh, torch.acosh), _arccosh_back,
               lambda data, dout: dout / torch.where(data.abs() < _FAR, (data * data - 1).sqrt(), data.abs()), True)


def divide(lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Return ``lhs / rhs``, with both gradients in one kernel where they are recorded."""
    if lhs.shape == rhs.shape and lhs.requires_grad and rhs.requires_grad and _gains(lhs):
        return _Divided.apply(lhs, rhs)
    return torch.div(lhs, rhs)


class _Divided(torch.autograd.Function):
    @staticmethod
    def forward(ctx, lhs, rhs):
        ctx.save_for_backward(lhs, rhs)
        return torch.div(lhs, rhs)

    @staticmethod
    def backward(ctx, dout):
        lhs, rhs = ctx.saved_tensors
        found = _run(_quotient_back, (lhs, rhs, dout))
        return (dout / rhs, -dout * (lhs / rhs / rhs)) if found is None else tuple(found)


def choose(condition: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ``torch.where(condition != 0, x, y)``."""
    condition = condition.detach()
    if not condition.shape == x.shape == y.shape or x.numel() < _WORTHWHILE:
        return torch.where(condition if condition.dtype is torch.bool else condition != 0, x, y)
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        if x.is_cpu and not torch.compiler.is_compiling():
            return _Selected.apply(condition, x, y)
    elif (found := _one(_choose, (condition, x, y))) is not None:
        return found
    return torch.where(condition if condition.dtype is torch.bool else condition != 0, x, y)


class _Selected(torch.autograd.Function):
    @staticmethod
    def forward(ctx, condition, x, y):
        ctx.save_for_backward(condition)
        return choose(condition, x, y)

    @staticmethod
    def backward(ctx, dout):
        condition, = ctx.saved_tensors
        found = _run(_choose_back, (condition, dout))
        if found is None:
            marks = condition != 0
            found = dout.masked_fill(~marks, 0), dout.masked_fill(marks, 0)
        return None, *found


def _gains(data):
    """Return True if a gradient is recorded for `data` and a kernel may compute it."""
    return data.numel() >= _WORTHWHILE and data.dtype is torch.float32 and data.is_cpu and torch.is_grad_enabled() and data.requires_grad \
        and not torch.compiler.is_compiling()


def _one(kernel, arrays, *numbers):
    found = _run(kernel, arrays, *numbers)
    return None if found is None else found[0]


def _run(kernel, arrays, *numbers):
    first = arrays[0]
    if first.numel() < _WORTHWHILE or torch.compiler.is_compiling() or torch.is_grad_enabled() and any(a.requires_grad for a in arrays):
        return None
    if any(a.shape != first.shape for a in arrays):
        return None
    if first.is_contiguous():
        shape, arrays = first.shape, [a.contiguous().view(-1) for a in arrays]
    elif first.dim() == 4 and all(a.is_contiguous(memory_format=torch.channels_last) for a in arrays):
        shape, arrays = None, [a.permute(0, 2, 3, 1) for a in arrays]
        last, arrays = arrays[0].shape, [a.reshape(-1) for a in arrays]
    else:
        return None
    plan = kernel.plan(arrays)
    if plan is None:
        return None
    made = plan(arrays, numbers)
    return [m.view(shape) for m in made] if shape is not None else [m.view(last).permute(0, 3, 1, 2) for m in made]
