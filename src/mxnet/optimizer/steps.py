"""The arithmetic of optimizers, in place on torch tensors, and its application to arrays.

Weights and states are written, gradients are only read. A `clip` of None, 0 or less disables clipping, as in MXNet's update operators.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch

from ..kernels.nn import optimizer_update as kernels
from ..kernels.nn import updates_on_gpu
from ..kernels.nn.updates_on_gpu import Step
from ..ndarray import memory_format, mutation_tracking
from ..ndarray.sparse import RowSparseNDArray
from . import multi_tensor

if TYPE_CHECKING:
    from ..ndarray import NDArray
    Tensors = list[torch.Tensor] | tuple[torch.Tensor, ...]

_data, _is_sparse = operator.attrgetter("_data"), operator.attrgetter("_is_sparse")
_FUSED = torch.float32, torch.float64  # the types of torch's fused kernels on a CPU
_FINE = 1e-8  # the smallest rate at which torch's fused SGD kernel, which receives 1 + rate, is exact to float32's last place
# Bytes of the rows of one array that are updated at a time, on a CPU and on other devices: copies of all would take the memory of the gradient again.
_CACHED, _MANY = 1 << 20, 1 << 26


def apply(step: Callable[..., Any], weight: NDArray, grad: NDArray, states: Sequence[NDArray] = (), rows: bool = False,
          in_place: Callable[..., Any] | None = None, rule: Callable[[], Step] | None = None) -> None:
    """Run ``step(weight, grad, *states)`` on the tensors of arrays.

    Parameters
    ----------
    step : callable
        Updates the tensors of weight and states in place.
    weight, grad : NDArray
    states : sequence of NDArray
    rows : bool
        For a row sparse gradient, read and update only the stored rows of gradient, weight and states; `step`, which must treat each row by itself,
        gets some of them at a time. Otherwise it is handled as dense.
    in_place : callable, optional
        A `step` on whole tensors, with the numbers of the gradient's rows as the last argument; it returns False if it is not applicable.
    rule : callable, optional
        Returns the same step for the kernel that updates dense weights on a GPU, see `multi_tensor`.
    """
    if not (weight._is_sparse or grad._is_sparse):
        for s in states:
            memory_format.like(s, weight)
        tensors = [weight._writable(), grad._data.data, *[s._writable() for s in states]]
        if rule is not None and updates_on_gpu.on_gpu(tensors[0]):
            multi_tensor.move(step, rule(), tensors[0], tensors[1], tensors[2:])
        else:
            step(*tensors)
        return
    multi_tensor.finish()
    arrays = (weight, *states)
    tensors = [_all_rows(a) for a in arrays]
    if rows and isinstance(grad, RowSparseNDArray):
        index = grad._aux[0].long()
        if len(index) and not (in_place and in_place(tensors[0], grad._values, *tensors[1:], index)):
            count = max(1, (_CACHED if index.is_cpu else _MANY) // (grad._values[0].nbytes or 1))
            for some, values in zip(index.split(count), grad._values.split(count)):
                parts = [t.index_select(0, some) for t in tensors]
                step(parts[0], values, *parts[1:])
                for tensor, part in zip(tensors, parts):
                    tensor.index_copy_(0, some, part)
    else:
        step(tensors[0], grad._raw(), *tensors[1:])
    for array, tensor in zip(arrays, tensors):
        if isinstance(array, RowSparseNDArray):
            array._refresh_leaf()
        elif array._is_sparse:
            array._set_values(tensor)


def _all_rows(array: NDArray) -> torch.Tensor:
    """Return a writable tensor of all values of an array; a row sparse array stores all rows from then on, a csr matrix is copied."""
    return array._all_rows() if isinstance(array, RowSparseNDArray) else array._writable()


def positive(clip: float | None) -> float | None:
    """Return a bound for clipping, or None for no clipping if it is 0 or less."""
    return clip if clip and clip > 0 else None


def prepared(grad: torch.Tensor, rescale: float, clip: float | None, weight: torch.Tensor | None = None, wd: float = 0) -> torch.Tensor:
    """Return ``clip(rescale * grad + wd * weight)``. The result may be `grad` itself and must not be written to."""
    if rescale != 1:
        grad = grad * rescale
        if wd and weight is not None:
            grad.add_(weight, alpha=wd)
    elif wd and weight is not None:
        grad = torch.add(grad, weight, alpha=wd)
    return grad.clamp(-clip, clip) if clip is not None else grad


def _fusible(*tensors: torch.Tensor) -> bool:
    """Return True if torch's fused kernels support the tensors of one weight: they ignore strides, and do not check sizes."""
    first = tensors[0]
    return (first.dtype in _FUSED and all(t.dtype == first.dtype and t.shape == first.shape for t in tensors)
            and memory_format.same(*tensors))


def _together(weights: Tensors, grads: Tensors, moms: Tensors) -> Sequence[Any] | Literal[False]:
    """Return the arguments of torch's fused SGD kernel for these tensors, or False: it ignores strides, and does not check sizes."""
    plain = True
    for w, g, m in zip(weights, grads, moms):
        if not (w.dtype is g.dtype is m.dtype is torch.float32 and w.shape == g.shape == m.shape):
            return False
        if not (w.is_contiguous() and g.is_contiguous() and m.is_contiguous()):
            plain = False
            if not memory_format.same(w, g, m):
                return False
    return (weights, grads, moms) if plain else [[memory_format.in_order(t) for t in tensors] for tensors in (weights, grads, moms)]


def sgd_rule(lr: float, wd: float, momentum: float, rescale: float, clip: float | None) -> Step:
    """Return the step of `sgd`."""
    return Step("sgd", (lr, momentum), rescale, positive(clip), decay=lr * wd)


def sgd(weights: Tensors, grads: Tensors, moms: Tensors | None, lr: float, wd: float, momentum: float, rescale: float, clip: float | None,
        copies: Tensors | None = None) -> None:
    """Update several weights: ``mom = momentum * mom - lr * (clip(rescale * grad) + wd * weight)``, ``weight += mom``.

    Parameters
    ----------
    weights, grads : list of torch.Tensor
    moms : list of torch.Tensor or None
        The momentum of each weight; None without momentum.
    lr, wd, momentum, rescale : float
    clip : float or None
    copies : list of torch.Tensor, optional
        Receive the new weights, converted to their types.
    """
    if updates_on_gpu.on_gpu(weights[0]) and all(map(memory_format.same, weights, grads, moms or grads, copies or grads)) \
            and updates_on_gpu.move(sgd_rule(lr, wd, momentum, rescale, clip), weights, grads, [moms] if moms else [], copies):
        return
    _sgd_of_torch(weights, cast_together(grads, weights), moms, lr, wd, momentum, rescale, clip)
    if copies is not None:
        torch._foreach_copy_(copies, weights)


def _sgd_of_torch(weights: Tensors, grads: Tensors, moms: Tensors | None, lr: float, wd: float,
                  momentum: float, rescale: float, clip: float | None) -> None:
    if clip and clip > 0:
        grads = torch._foreach_mul(grads, rescale)
        torch._foreach_clamp_max_(grads, clip)
        torch._foreach_clamp_min_(grads, -clip)
        rescale = 1
    if moms is None:
        if wd:
            torch._foreach_mul_(weights, 1 - lr * wd)
        torch._foreach_add_(weights, grads, alpha=-lr * rescale)
        return
    # Without momentum (loaded states may have arrays for it) the kernel accepts no momentum arrays. On a GPU it computes in single precision, where
    # 1 + rate would round off most of a small rate.
    fused = _together(weights, grads, moms) if momentum and abs(lr * rescale) >= _FINE and not weights[0].is_cuda else False
    if fused:
        # torch's momentum does not contain the learning rate; with a suitable dampening and a rate of -1 its formula equals MXNet's.
        torch._fused_sgd_(*fused, weight_decay=wd / rescale, momentum=momentum, lr=-1.0, dampening=1 + lr * rescale,
                          nesterov=False, maximize=False, is_first_step=False)
        return
    torch._foreach_mul_(moms, momentum)
    torch._foreach_add_(moms, grads, alpha=-lr * rescale)
    if wd:
        torch._foreach_add_(moms, weights, alpha=-lr * wd)
    torch._foreach_add_(weights, moms)


def nag_rule(lr: float, wd: float, momentum: float, rescale: float, clip: float | None) -> Step:
    """Return the step of `nag`."""
    rate = (1 + momentum) * lr
    return Step("nag", (lr, momentum, rate, 1 - rate * wd), rescale, positive(clip), decay=lr * wd)


def nag(weight: torch.Tensor, grad: torch.Tensor, mom: torch.Tensor, lr: float, wd: float, momentum: float, rescale: float,
        clip: float | None) -> None:
    """Update a weight by Nesterov's accelerated gradient."""
    if clip and clip > 0:
        grad, rescale = prepared(grad, rescale, clip), 1
    mom.mul_(momentum)
    if wd:
        weight.mul_(1 - (1 + momentum) * lr * wd)
    weight.add_(mom, alpha=momentum).add_(grad, alpha=-(1 + momentum) * lr * rescale)
    mom.add_(grad, alpha=-lr * rescale)
    if wd:
        mom.add_(weight, alpha=-lr * wd)  # as MXNet's in-place update does, the momentum's decay uses the new weight


def nag_together(weights: Tensors, grads: Tensors, moms: Tensors, copies: Tensors | None, lr: float, wd: float, momentum: float,
                 rescale: float, clip: float | None) -> None:
    """Update several weights on a GPU, selected by `small`, as `nag` does for each; see `sgd` for `copies`."""
    if not updates_on_gpu.move(nag_rule(lr, wd, momentum, rescale, clip), weights, grads, [moms], copies):
        _nag_of_torch(weights, grads, moms, lr, wd, momentum, rescale, clip)
        if copies is not None:
            torch._foreach_copy_(copies, weights)


def _nag_of_torch(weights: Tensors, grads: Tensors, moms: Tensors, lr: float, wd: float, momentum: float, rescale: float, clip: float | None) -> None:
    grads = cast_together(grads, weights)
    if clip and clip > 0:
        grads, rescale = torch._foreach_mul(grads, rescale), 1
        torch._foreach_clamp_max_(grads, clip)
        torch._foreach_clamp_min_(grads, -clip)
    torch._foreach_mul_(moms, momentum)
    if wd:
        torch._foreach_mul_(weights, 1 - (1 + momentum) * lr * wd)
    torch._foreach_add_(weights, moms, alpha=momentum)
    torch._foreach_add_(weights, grads, alpha=-(1 + momentum) * lr * rescale)
    torch._foreach_add_(moms, grads, alpha=-lr * rescale)
    if wd:
        torch._foreach_add_(moms, weights, alpha=-lr * wd)


def small(weight: NDArray, *arrays: NDArray) -> tuple[torch.Tensor, ...] | None:
    """Return the tensors of a weight, its gradient and its states if the weight should be updated together with others, else None.

    A weight is updated by itself if it is sparse, or, on a CPU, large enough for a kernel of its own. On a GPU, where a launch takes longer than most
    kernels, all others are updated together; there the gradient may be of half precision.
    """
    if weight._is_sparse or any(a._is_sparse for a in arrays):
        return None
    first = weight._data
    if updates_on_gpu.on_gpu(first):
        return _in_memory_order(weight, *arrays)
    if not (first.is_cpu and first.numel() < kernels.WORTHWHILE and first.dtype in _FUSED):
        return None
    if not first.is_contiguous():
        return _in_memory_order(weight, *arrays) if arrays[0]._data.dtype is first.dtype else None
    dtype, shape = first.dtype, first.shape
    for a in arrays:
        t = a._data
        if t.dtype is not dtype or t.shape != shape or not t.is_contiguous():
            return None
    return weight._writable(), arrays[0]._data.data, *[s._writable() for s in arrays[1:]]


def copy_target(weight: NDArray, master: NDArray) -> torch.Tensor | None:
    """Return the tensor of a half-precision weight as a view in memory order, if this is its master's order."""
    target = weight._writable()
    return memory_format.in_order(target) if memory_format.same(target, master._data) else None


def _in_memory_order(weight: NDArray, grad: NDArray, *states: NDArray) -> tuple[torch.Tensor, ...] | None:
    """Return the tensors as views in their memory order, which is made that of the weight; None if types, shapes or the order differ."""
    for s in states:
        memory_format.like(s, weight)
    tensors = weight._writable(), grad._data.data, *[s._writable() for s in states]
    first = tensors[0]
    if first.dtype not in _FUSED or any(t.dtype is not first.dtype for t in tensors[2:]) or any(t.shape != first.shape for t in tensors):
        return None
    return tuple(map(memory_format.in_order, tensors)) if memory_format.same(*tensors) else None


def cast_together(tensors: Tensors, likes: Tensors) -> Tensors:
    """Return tensors in the types of `likes`; those of another type are converted in one call."""
    wrong = [i for i, (t, like) in enumerate(zip(tensors, likes)) if t.dtype is not like.dtype]
    if not wrong:
        return tensors
    made = {i: torch.empty_like(likes[i]) for i in wrong}
    torch._foreach_copy_(list(made.values()), [tensors[i] for i in wrong])
    return [made.get(i, t) for i, t in enumerate(tensors)]


def _in_order(kernel: Callable[..., bool], weight: torch.Tensor, grad: torch.Tensor, first: torch.Tensor, second: torch.Tensor,
              *numbers: Any) -> bool:
    """Call a kernel that ignores strides with four tensors of one weight; return False if their layouts do not allow it."""
    tensors = weight, grad, first, second
    return _fusible(*tensors) and kernel(*map(memory_format.in_order, tensors), None, *numbers)


def adamax(weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, largest: torch.Tensor, lr: float, beta1: float, beta2: float, epsilon: float,
           wd: float, rescale: float, clip: float | None) -> None:
    """Update a weight by ``-lr * mean / largest``; `lr` contains the bias correction of the first steps."""
    if _in_order(kernels.adamax, weight, grad, mean, largest, lr, beta1, beta2, epsilon, wd, rescale, clip):
        return
    grad = prepared(grad, rescale, clip, weight, wd)
    mean.mul_(beta1).add_(grad, alpha=1 - beta1)
    torch.maximum(largest.mul_(beta2), grad.abs().add_(epsilon), out=largest)
    weight.addcdiv_(mean, largest, value=-lr)


def adamax_rule(lr: float, beta1: float, beta2: float, epsilon: float, wd: float, rescale: float, clip: float | None) -> Step:
    """Return the step of `adamax`."""
    return Step("adamax", (lr, beta1, 1 - beta1, beta2, epsilon), rescale, clip, wd)


def adam_rule(lr: float, beta1: float, beta2: float, epsilon: float, wd: float, rescale: float, clip: float | None) -> Step:
    """Return the step of `adam`."""
    return Step("adam", (lr, beta1, 1 - beta1, beta2, 1 - beta2, epsilon), rescale, positive(clip), wd)


def adam_together(weights: Tensors, grads: Tensors, means: Tensors, variances: Tensors, copies: Tensors | None,
                  lr: float, beta1: float, beta2: float, epsilon: float, wd: float, rescale: float, clip: float | None) -> None:
    """Update several weights, selected by `small`, as `adam` does for each; see `sgd` for `copies`."""
    numbers = lr, beta1, beta2, epsilon, wd, rescale, clip
    if not (updates_on_gpu.on_gpu(weights[0]) and updates_on_gpu.move(adam_rule(*numbers), weights, grads, [means, variances], copies)):
        _adam_of_torch(weights, grads, means, variances, *numbers)
        if copies is not None:
            torch._foreach_copy_(copies, weights)


def _adam_of_torch(weights: Tensors, grads: Tensors, means: Tensors, variances: Tensors,
                   lr: float, beta1: float, beta2: float, epsilon: float, wd: float, rescale: float, clip: float | None) -> None:
    if kernels.adam_together(weights, grads, means, variances, lr, beta1, beta2, epsilon, wd, rescale, positive(clip)):
        return
    grads = cast_together(grads, weights)
    if clip and clip > 0 or rescale != 1:
        grads = torch._foreach_mul(grads, rescale)
        if wd:
            torch._foreach_add_(grads, weights, alpha=wd)
        if clip and clip > 0:
            torch._foreach_clamp_min_(grads, -clip)
            torch._foreach_clamp_max_(grads, clip)
        wd = 0
    count = _forever(weights[0].device)
    torch._fused_adam_(weights, grads, means, variances, [], [count] * len(weights), lr=lr, beta1=beta1, beta2=beta2, weight_decay=wd, eps=epsilon,
                       amsgrad=False, maximize=False)


def adam_of_arrays(weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Sequence[NDArray]],
                   lr: float, beta1: float, beta2: float, epsilon: float, wd: float, rescale: float, clip: float | None) -> bool:
    """Update several weights of any size as `adam` does for each, by one kernel, whose contract makes all checks of types and shapes.

    False, with none of them changed, if there is no kernel for one.
    """
    means, variances = zip(*states)
    if any(map(_is_sparse, (*weights, *grads, *means, *variances))):
        return False
    tensors = [list(map(_data, arrays)) for arrays in (weights, grads, means, variances)]
    ws, gs, ms, vs = tensors
    if not ws[0].is_cpu or updates_on_gpu.on_gpu(ws[0]):
        return False
    for i, weight in enumerate(ws):
        if not weight.is_contiguous():
            views = _in_memory_order(weights[i], grads[i], *states[i])
            if views is None:
                return False
            for row, view in zip(tensors, views):
                row[i] = view
    if mutation_tracking.watched:
        for array in (*weights, *means, *variances):
            array._writable()
    return kernels.adam_together(ws, gs, ms, vs, lr, beta1, beta2, epsilon, wd, rescale, positive(clip))


_FOREVER: dict[torch.device, torch.Tensor] = {}  # device -> a step count at which the bias correction of the first steps has vanished


def _forever(device: torch.device) -> torch.Tensor:
    count = _FOREVER.get(device)
    if count is None:
        count = _FOREVER[device] = torch.full((), math.inf, device=device)
    return count


def adam(weight: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, lr: float, beta1: float, beta2: float, epsilon: float,
         wd: float, rescale: float, clip: float | None) -> None:
    """Update a weight by ``-lr * mean / (sqrt(var) + epsilon)``; `lr` contains the bias correction of the first steps."""
    if weight.numel() < kernels.WORTHWHILE and _fusible(weight, grad, mean, var):
        w, g, m, v = [(memory_format.in_order(t),) for t in (weight, grad, mean, var)]
        if kernels.adam_together(w, g, m, v, lr, beta1, beta2, epsilon, wd, rescale, positive(clip)):
            return
    if clip and clip > 0 or rescale != 1:
        if _in_order(kernels.adam, weight, grad, mean, var, lr, beta1, beta2, epsilon, wd, rescale, positive(clip)):
            return
        grad, wd = prepared(grad, rescale, positive(clip), weight, wd), 0
    if _fusible(weight, grad, mean, var):
        weights, grads, means, variances = ([memory_format.in_order(t)] for t in (weight, grad, mean, var))
        torch._fused_adam_(weights, grads, means, variances, [], [_forever(weight.device)], lr=lr, beta1=beta1, beta2=beta2, weight_decay=wd,
                           eps=epsilon, amsgrad=False, maximize=False)
        return
    if wd:
        grad = torch.add(grad, weight, alpha=wd)
    mean.lerp_(grad, 1 - beta1)
    var.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    weight.addcdiv_(mean, var.sqrt().add_(epsilon), value=-lr)
