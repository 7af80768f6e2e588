"""Rarer building blocks: straight-through estimators, sketches, Fourier transforms, a point process."""
import torch

from ...base import MXNetError
from ...kernels.elementwise import pointwise
from ..bounds import within
from ..registry import op
from .common import assign


@op("_contrib_quadratic", complete_rule="shape", same_shape=True)
def quadratic(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):
    """``a * x ** 2 + b * x + c``.

    Example
    -------
    >>> mx.nd.contrib.quadratic(mx.nd.array([0, 1, 2]), a=1, b=10, c=100).asnumpy()
    array([100., 111., 124.], dtype=float32)
    """
    result = pointwise.quadratic(data, a, b, c)
    if result is not None:
        return result
    return (data * a).add_(b).mul(data).add_(c) if data.is_floating_point() else ((data * a + b) * data + c).to(data.dtype)


@quadratic.gradient
def _(out_grads, inputs, outputs, *, a=0.0, b=0.0, c=0.0):
    result = pointwise.quadratic_back(inputs[0], out_grads[0], a, b)
    return (inputs[0] * (2 * a)).add_(b) * out_grads[0] if result is None else result


def _pass_gradient(out_grads, inputs, outputs, **_):
    return out_grads[0].clone()


@op("_contrib_round_ste", complete_rule="shape", aliases=("_sparse__contrib_round_ste", "_npx_round_ste"), same_shape=True, amp=None)
def round_ste(data):
    """Round to the nearest integer, halves away from zero; the gradient passes unchanged (straight through, Bengio et al. 2013).

    Example
    -------
    >>> x = mx.nd.array([-1.5, 0.4])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.contrib.round_ste(x)
    >>> y.backward()
    >>> y.asnumpy(), x.grad.asnumpy()
    (array([-2.,  0.], dtype=float32), array([1., 1.], dtype=float32))
    """
    return torch.trunc(data + torch.sign(data) * 0.5).to(data.dtype)


@op("_contrib_sign_ste", complete_rule="shape", aliases=("_sparse__contrib_sign_ste", "_npx_sign_ste"), same_shape=True, amp=None)
def sign_ste(data):
    """The sign, -1, 0 or 1; the gradient passes unchanged (straight through, Bengio et al. 2013).

    Example
    -------
    >>> x = mx.nd.array([-1.5, 0.4])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.contrib.sign_ste(x)
    >>> y.backward()
    >>> y.asnumpy(), x.grad.asnumpy()
    (array([-1.,  1.], dtype=float32), array([1., 1.], dtype=float32))
    """
    return torch.sign(data)


round_ste.gradient(_pass_gradient)
sign_ste.gradient(_pass_gradient)


@op("_contrib_gradientmultiplier", complete_rule="shape", same_shape=True)
def gradient_multiplier(data, *, scalar: float = 1.0, is_int: bool = True):
    """Pass `data` on; multiply its gradient by `scalar`. A negative one reverses it, as for domain adaptation (Ganin, Lempitsky 2015).

    `is_int` marks a scalar written as an integer; it has no effect, as the data's type decides.

    Example
    -------
    >>> x = mx.nd.ones(2)
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.contrib.gradientmultiplier(x, scalar=-0.5)
    >>> y.backward()
    >>> y.asnumpy(), x.grad.asnumpy()
    (array([1., 1.], dtype=float32), array([-0.5, -0.5], dtype=float32))
    """
    return data.clone()


@gradient_multiplier.gradient
def _gradient_multiplier_gradient(out_grads, inputs, outputs, *, scalar=1.0, is_int=True):
    return out_grads[0] * scalar


@op("_contrib_count_sketch", complete_rule="shape", names_output=True, amp="float32")
def count_sketch(data, h, s, *, out_dim: int, processing_batch_size: int = 32):
    """Project the last axis of `data` (N, d) or (N, a, b, d) to `out_dim` sums: element i is added to sum ``h[0, i]`` with the sign ``s[0, i]``.

    `h` (1, d) holds numbers from 0 to out_dim - 1, `s` (1, d) 1 or -1, both usually drawn once (Charikar et al. 2002; for bilinear pooling
    Gao et al. 2016). `processing_batch_size` bounds the memory of a loop that is not needed here.

    Raises
    ------
    MXNetError
        If `data` has another number of axes, or `h` or `s` another shape.

    Example
    -------
    >>> x, h, s = mx.nd.array([[1, 5, 3]]), mx.nd.array([[0, 1, 0]]), mx.nd.array([[1, 1, -1]])
    >>> mx.nd.contrib.count_sketch(x, h, s, out_dim=2).asnumpy()
    array([[-2.,  5.]], dtype=float32)
    """
    if data.dim() not in (2, 4) or not h.shape == s.shape == (1, data.shape[-1]):
        raise MXNetError(f"count_sketch: h and s of shape (1, {data.shape[-1] if data.dim() else 'd'}) expected for data of shape "
                         f"{tuple(data.shape)}, which has 2 or 4 axes; received {tuple(h.shape)} and {tuple(s.shape)}")
    signed = data * s.reshape(-1).to(data.dtype)
    out = torch.zeros((*data.shape[:-1], out_dim), dtype=data.dtype, device=data.device)
    index, = within("count_sketch", [h.reshape(-1).long()], [out_dim], negative=False)
    return out.index_add(-1, index, signed)


@count_sketch.shape_rule
def _count_sketch_shape_rule(in_shapes, out_shapes, *, out_dim, **_):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    if len(data) not in (2, 4):
        raise MXNetError(f"count_sketch: data must have 2 or 4 axes, received shape {data}")
    assign(in_shapes, 1, (1, data[-1]), "count_sketch's h")
    assign(in_shapes, 2, (1, data[-1]), "count_sketch's s")
    assign(out_shapes, 0, (*data[:-1], out_dim), "count_sketch's output")
    return in_shapes, out_shapes


@op("_contrib_fft", complete_rule="shape", names_output=True, amp="float32")
def fft(data, *, compute_size: int = 128):
    """The Fourier transform along the last axis (..., d): real and imaginary parts interleaved, (..., 2 * d).

    `compute_size` bounds the memory of a loop that is not needed here.

    Example
    -------
    >>> mx.nd.contrib.fft(mx.nd.array([[0, 1, 0, 0]])).asnumpy()
    array([[ 1.,  0.,  0., -1., -1.,  0.,  0.,  1.]], dtype=float32)
    """
    return torch.view_as_real(torch.fft.fft(data, dim=-1)).flatten(-2)


@op("_contrib_ifft", complete_rule="shape", names_output=True)
def ifft(data, *, compute_size: int = 128):
    """The real part of the inverse Fourier transform along the last axis: interleaved complex numbers (..., 2 * d) to (..., d).

    It is not divided by d. `compute_size` bounds the memory of a loop that is not needed here.

    Raises
    ------
    MXNetError
        If the last axis has an odd size.

    Example
    -------
    >>> x = mx.nd.array([[1, 2, 3, 4]])
    >>> (mx.nd.contrib.ifft(mx.nd.contrib.fft(x)) / 4).asnumpy()
    array([[1., 2., 3., 4.]], dtype=float32)
    """
    numbers = torch.complex(*data.reshape(*data.shape[:-1], -1, 2).unbind(-1))
    return torch.fft.ifft(numbers, dim=-1, norm="forward").real.contiguous()


@fft.shape_rule
def _fft_shape_rule(in_shapes, out_shapes, **_):
    data = in_shapes[0]
    if data and data[-1]:
        assign(out_shapes, 0, (*data[:-1], 2 * data[-1] if data[-1] >= 0 else -1), "fft's output")
    return in_shapes, out_shapes


@ifft.shape_rule
def _ifft_shape_rule(in_shapes, out_shapes, **_):
    data = in_shapes[0]
    if data and data[-1]:
        if data[-1] % 2 and data[-1] > 0:
            raise MXNetError(f"ifft: the last axis holds pairs of numbers, received size {data[-1]}")
        assign(out_shapes, 0, (*data[:-1], data[-1] // 2 if data[-1] >= 0 else -1), "ifft's output")
    return in_shapes, out_shapes


@op("_contrib_hawkesll", complete_rule="shape", num_outputs=2, output_names=("output", "out_state"), names_output=True, amp="float32")
def hawkes_log_likelihood(lda, alpha, beta, state, lags, marks, valid_length, max_time):
    """The log likelihood (N,) of N marked point processes that excite themselves, and their memory (N, K) at `max_time`.

    Mark k has the intensity ``lda[n, k] + alpha[k] * sum(beta[k] * exp(-beta[k] * (t - t_i)))`` over its points t_i before t (Hawkes 1971).

    Parameters
    ----------
    lda : (N, K)
        The background's rate.
    alpha, beta : (K,)
        The excitation by each point, and the rate of its decay.
    state : (N, K)
        The memory of earlier points, 0 at the start.
    lags, marks : (N, T)
        The times between points, and their marks from 0 to K - 1.
    valid_length, max_time : (N,)
        The number of valid points out of T, and the end of the observation.

    Example
    -------
    >>> rate, none = mx.nd.array([[0.5]]), mx.nd.zeros(1)   # without excitation: a Poisson process, 2 * log(rate) - rate * 6
    >>> lags, marks, two = mx.nd.array([[1, 1]]), mx.nd.zeros((1, 2), dtype="int32"), mx.nd.array([2])
    >>> score, _ = mx.nd.contrib.hawkesll(rate, none, none + 1, mx.nd.zeros((1, 1)), lags, marks, two, mx.nd.array([6]))
    >>> score.asnumpy().round(3)
    array([-4.386], dtype=float32)
    """
    counts = torch.arange(lags.shape[1], device=lags.device) < valid_length.unsqueeze(1)
    marks, = within("hawkesll", [torch.where(counts, marks.long(), 0)], lda.shape[1:], negative=False)
    times = torch.cumsum(lags, 1)
    last = torch.zeros_like(lda)
    total = torch.zeros_like(lda[:, 0])
    for j in range(lags.shape[1]):
        mark, valid = marks[:, j:j + 1], counts[:, j:j + 1]
        background, memory = lda.gather(1, mark), state.gather(1, mark)
        branching, decay = alpha[mark], beta[mark]
        now = times[:, j:j + 1]
        passed = now - last.gather(1, mark)
        faded = torch.exp(-decay * passed)
        intensity = background + branching * decay * memory * faded
        compensator = background * passed + branching * memory * (1 - faded)
        total = total + torch.where(valid, torch.log(torch.where(valid, intensity, 1)) - compensator, 0).squeeze(1)
        state = state.scatter(1, mark, torch.where(valid, 1 + memory * faded, memory))
        last = last.scatter(1, mark, torch.where(valid, now, now - passed))
    passed = max_time.unsqueeze(1) - last
    faded = torch.exp(-beta * passed)
    remaining = (lda * passed + alpha * state * (1 - faded)).sum(1)
    return total - remaining, state * faded


@hawkes_log_likelihood.shape_rule
def _hawkes_shape_rule(in_shapes, out_shapes):
    lda, lags = in_shapes[0], in_shapes[4]
    if any(s is not None and len(s) != 2 for s in (lda, lags)):
        raise MXNetError(f"hawkesll: `lda` must be (batch, marks) and `lags` (batch, times), received shapes {lda} and {lags}")
    if lda is not None:
        batch, marks = lda
        assign(in_shapes, 4, (batch, -1), "hawkesll's lags")
        for i, shape in ((1, (marks,)), (2, (marks,)), (3, lda), (6, (batch,)), (7, (batch,))):
            assign(in_shapes, i, shape, f"hawkesll's {hawkes_log_likelihood.inputs[i]}")
        assign(out_shapes, 0, (batch,), "hawkesll's output")
        assign(out_shapes, 1, lda, "hawkesll's out_state")
    if lags is not None:
        assign(in_shapes, 5, in_shapes[4], "hawkesll's marks")
    return in_shapes, out_shapes


@hawkes_log_likelihood.dtype_rule
def _hawkes_dtype_rule(in_types, out_types):
    dtype = next((t for i, t in enumerate((*in_types, *out_types)) if t is not None and i != 5), None)
    in_types = [t or dtype for t in in_types]
    in_types[5] = torch.int32
    return in_types, [t or dtype for t in out_types]
