"""Norms, learning rates, overflow checks and resets for large-batch and mixed-precision training."""
import torch

from ...base import MXNetError
from ...kernels.elementwise import pointwise
from ..registry import op
from ..shapes import unify


@op("multi_sum_sq", complete_rule="shape", no_gradient=True, amp=None)
def multi_sum_sq(*data, num_arrays: int):
    """The sum of the squares of each array, all in one float32 vector (num_arrays,).

    Raises
    ------
    MXNetError
        If `num_arrays` is not the number of inputs.

    Example
    -------
    >>> mx.nd.multi_sum_sq(mx.nd.array([3, 4]), mx.nd.ones((2, 3)), num_arrays=2).asnumpy().round(3)
    array([25.,  6.], dtype=float32)
    """
    _require_count("multi_sum_sq", data, num_arrays)
    return torch.stack([torch.linalg.vector_norm(t.float() if t.dtype is torch.float64 else t, dtype=torch.float32) for t in data]).square_()


@multi_sum_sq.shape_rule
def _(in_shapes, out_shapes, *, num_arrays):
    _require_count("multi_sum_sq", in_shapes, num_arrays)
    return in_shapes, [unify(out_shapes[0], (num_arrays,))] if num_arrays else out_shapes


@op("multi_lars", same_shape=True, no_gradient=True, amp=None)
def multi_lars(lrs, weights_sum_sq, grads_sum_sq, wds, *, eta: float, eps: float, rescale_grad: float = 1.0):
    """The learning rates of LARS (You et al. 2017): each one times ``eta * |w| / (|g| * rescale_grad + wd * |w| + eps)``.

    All four inputs hold a number for each weight; `weights_sum_sq` and `grads_sum_sq` are the squares of |w| and |g|, as `multi_sum_sq` gives
    them. Where a norm is 0 the rate stays.

    Raises
    ------
    MXNetError
        If the inputs have different shapes.

    Example
    -------
    >>> lrs, weights, grads, none = mx.nd.ones(2), mx.nd.array([100, 0]), mx.nd.array([25, 25]), mx.nd.zeros(2)
    >>> mx.nd.multi_lars(lrs, weights, grads, none, eta=0.25, eps=0).asnumpy()
    array([0.5, 1. ], dtype=float32)
    """
    shapes = [tuple(t.shape) for t in (lrs, weights_sum_sq, grads_sum_sq, wds)]
    if len(set(shapes)) > 1:
        raise MXNetError(f"multi_lars: all inputs must have one shape, a number for each weight; received {', '.join(map(str, shapes))}")
    rates = pointwise.adapted_rates(lrs, weights_sum_sq, grads_sum_sq, wds, eta, rescale_grad, eps)
    if rates is not None:
        return rates
    weight_norms = weights_sum_sq.sqrt()
    adapted = lrs * eta * weight_norms / (grads_sum_sq.sqrt() * rescale_grad + wds * weight_norms + eps)
    return torch.where((weight_norms > 0) & (grads_sum_sq > 0), adapted, lrs)


def _require_count(name, data, num_arrays):
    if len(data) != num_arrays:
        raise MXNetError(f"{name}: `num_arrays` must be the number of inputs, {len(data)}; received {num_arrays}")


def _require_init(name, init_output):
    if not init_output:
        raise MXNetError(f"{name}: with init_output=False the result joins what `out` held before, which an operator does not see here; "
                         "take the minimum of both results")


def _flag(tensors, init_output, name):
    _require_init(name, init_output)
    # 0 times infinity or nan is nan, and stays so in a sum: much faster than a mask of isfinite.
    finite = torch.stack([(t.detach() * 0).sum() == 0 for t in tensors]).all()
    return finite.to(torch.float32).reshape(1)


@op("all_finite", complete_rule="shape", no_gradient=True)
def all_finite(data, *, init_output: bool = True):
    """1 if all elements are finite, 0 if one is infinite or nan; a float32 vector of one element.

    Raises
    ------
    MXNetError
        If `init_output` is False.

    Example
    -------
    >>> mx.nd.all_finite(mx.nd.array([1, 2])).asnumpy(), mx.nd.all_finite(mx.nd.array([1, float("inf")])).asnumpy()
    (array([1.], dtype=float32), array([0.], dtype=float32))
    """
    return _flag((data,), init_output, "all_finite")


@op("multi_all_finite", complete_rule="shape", no_gradient=True)
def multi_all_finite(*data, num_arrays: int = 1, init_output: bool = True):
    """1 if all elements of all arrays are finite, 0 if one is infinite or nan; a float32 vector of one element.

    Raises
    ------
    MXNetError
        If `num_arrays` is not the number of inputs, or `init_output` is False.

    Example
    -------
    >>> mx.nd.multi_all_finite(mx.nd.ones(2), mx.nd.array([float("nan")]), num_arrays=2).asnumpy()
    array([0.], dtype=float32)
    """
    _require_count("multi_all_finite", data, num_arrays)
    return _flag(data, init_output, "multi_all_finite")


def _float32_result(in_types, out_types, **_):
    return in_types, [torch.float32]


@all_finite.shape_rule
def _(in_shapes, out_shapes, *, init_output):
    _require_init("all_finite", init_output)
    return in_shapes, [unify(out_shapes[0], (1,))]


@multi_all_finite.shape_rule
def _(in_shapes, out_shapes, *, num_arrays, init_output):
    _require_count("multi_all_finite", in_shapes, num_arrays)
    _require_init("multi_all_finite", init_output)
    return in_shapes, [unify(out_shapes[0], (1,))] if num_arrays else out_shapes


for _operator in (all_finite, multi_all_finite, multi_sum_sq):
    _operator.dtype_rule(_float32_result)


@op("reset_arrays", num_outputs=0, mutates=("data",), no_gradient=True, amp=None)
def reset_arrays(*data, num_arrays: int):
    """Fill arrays with zeros, in place.

    Raises
    ------
    MXNetError
        If `num_arrays` is not the number of inputs.

    Example
    -------
    >>> x, y = mx.nd.ones(2), mx.nd.ones((1, 2))
    >>> mx.nd.reset_arrays(x, y, num_arrays=2)
    []
    >>> x.asnumpy(), y.asnumpy()
    (array([0., 0.], dtype=float32), array([[0., 0.]], dtype=float32))
    """
    _require_count("reset_arrays", data, num_arrays)
    for t in data:
        t.detach().zero_()
    return ()
