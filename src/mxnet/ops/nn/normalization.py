"""Normalization layers."""
import warnings
from typing import Literal, Optional

import torch

from ...base import MXNetError
from ...kernels.nn import lrn as kernels
from .. import rendezvous
from ..dtypes import same_type
from ..quantization.arithmetic import INT8, UINT8, Quantized, calibrated, limit_of, store
from ..quantization.form import EightBits, quantized_form
from ..registry import op
from ..schema import AtLeast0, Finite, Training
from ..shapes import unify
from .common import assign, check_axis, norm_types

_functional = torch.nn.functional


def _moment_outputs(attributes):
    return 3 if attributes["output_mean_var"] else 1


def _normalize_batch(data, gamma, beta, moving_mean, moving_var, eps, momentum, output_mean_var, use_batch, inverse_deviation):
    """Batch normalization over axis 1; `gamma` is None where it is fixed to 1.

    The second moment that `output_mean_var` returns is ``1 / sqrt(var + eps)``, as BatchNorm gives it, or the plain variance.
    """
    if gamma is None and data.is_cuda:
        gamma = torch.ones_like(beta)  # CUDA has no gradient where there is a shift alone, and cuDNN not even the forward pass
    if not use_batch:
        moving_mean, moving_var = moving_mean.detach(), moving_var.detach()  # a graph's caller may have marked them, for zeros as gradients
        out = torch.batch_norm(data, gamma, beta, moving_mean, moving_var, False, 0.0, eps, True)
        return (out, moving_mean.clone(), torch.rsqrt(moving_var + eps) if inverse_deviation else moving_var.clone()) \
            if output_mean_var else out
    count = data.numel() // max(data.shape[1], 1)
    # `.data`, because backward never reads the moving statistics of a training pass: changing them must not invalidate the graph.
    if not output_mean_var and count > 1:
        # torch keeps the unbiased variance, MXNet the biased one: the old value and torch's new one give it.
        old = moving_var.data * (momentum / count)
        out = torch.batch_norm(data, gamma, beta, moving_mean.data, moving_var.data, True, 1 - momentum, eps, True)
        var = moving_var.data
        torch.add(old, var, alpha=(count - 1) / count, out=var)
        return out
    for name, parameter in (("gamma", gamma), ("beta", beta)):  # this function of torch reads beyond what is too small
        if parameter is not None and parameter.shape != data.shape[1:2]:
            raise MXNetError(f"BatchNorm's {name}: expected shape ({data.shape[1]},), received {tuple(parameter.shape)}")
    out, mean, deviation = torch.native_batch_norm(data, gamma, beta, None, None, True, 0.0, eps)
    var = deviation.detach().pow(-2).sub_(eps).clamp_(min=0)
    moving_mean.data.mul_(momentum).add_(mean.detach(), alpha=1 - momentum)
    moving_var.data.mul_(momentum).add_(var, alpha=1 - momentum)
    return (out, mean, deviation if inverse_deviation else var) if output_mean_var else out


def _batch_norm(data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, output_mean_var, axis, training,
                inverse_deviation=True):
    moved = axis != 1 and axis + data.dim() != 1
    if moved:
        data = data.movedim(axis, 1)
    results = _normalize_batch(data, None if fix_gamma else gamma, beta, moving_mean, moving_var, eps, momentum, output_mean_var,
                               training and not use_global_stats, inverse_deviation)
    if not moved:
        return results
    out = (results[0] if output_mean_var else results).movedim(1, axis).contiguous()
    return (out, *results[1:]) if output_mean_var else out


def _batch_norm_shape_rule(in_shapes, out_shapes, *, axis=1, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if data is None:
        return in_shapes, out_shapes
    channels = (data[check_axis(axis, len(data), "BatchNorm")],)
    for i, name in enumerate(("gamma", "beta", "moving_mean", "moving_var"), 1):
        assign(in_shapes, i, channels, f"BatchNorm's {name}")
    out_shapes[1:] = [channels] * (len(out_shapes) - 1)
    return in_shapes, out_shapes


_MOVING = {"mutates": ("moving_mean", "moving_var"), "num_outputs": _moment_outputs, "output_names": ("output", "mean", "var"),
           "initial": {"moving_mean": ["zero", {}], "moving_var": ["one", {}]}}


@op("BatchNorm", aliases=("_npx_batch_norm", "CuDNNBatchNorm"), **_MOVING, layout_agnostic=lambda a: a["axis"] == 1 and not a["output_mean_var"],
    result_type="data", inplace_safe=lambda a: not a["output_mean_var"], compute_bound=True, complete_rule="mixed", names_output=True,
    amp=("inputs", "inputs"))
def batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9, fix_gamma: bool = True,
               use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False,
               min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None, training: Training = False):
    """Normalize each channel (index on `axis`) to mean 0 and variance 1, then scale it by `gamma` and shift it by `beta` (Ioffe, Szegedy 2015).

    `gamma`, `beta`, `moving_mean` and `moving_var` are (C,). While training, mean and (biased) variance are those of the batch and the
    moving ones are updated: ``moving = moving * momentum + batch * (1 - momentum)``. Otherwise, or with `use_global_stats`, the moving ones
    are used. With `fix_gamma` gamma counts as 1 and gets no gradient. `output_mean_var` also returns the mean and ``1 / sqrt(var + eps)``.
    Parameters and moments of half-precision data are float32. `cudnn_off` and the calibration range are hints for
    other backends.

    Raises
    ------
    MXNetError
        If `axis` is out of range or the parameters do not have one value for each channel.

    Example
    -------
    >>> x, one, zero = mx.nd.array([[1, 2], [3, 6]]), mx.nd.ones(2), mx.nd.zeros(2)
    >>> with mx.autograd.train_mode():
    ...     mx.nd.BatchNorm(x, one, zero, zero.copy(), one.copy(), eps=0).asnumpy()
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """
    return _batch_norm(data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, output_mean_var, axis,
                       training)


@op("_contrib_BatchNormWithReLU", complete_rule="shape", **_MOVING, names_output=True, amp=None)
def batch_norm_with_relu(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9, fix_gamma: bool = True,
                         use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False,
                         min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None, training: Training = False):
    """`BatchNorm` followed by ReLU, with the same inputs, attributes and errors.

    Example
    -------
    >>> x, one, zero = mx.nd.array([[1, 2], [3, 6]]), mx.nd.ones(2), mx.nd.zeros(2)
    >>> with mx.autograd.train_mode():
    ...     mx.nd.contrib.BatchNormWithReLU(x, one, zero, zero.copy(), one.copy(), eps=0).asnumpy()
    array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    results = _batch_norm(data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, output_mean_var, axis,
                          training)
    return (torch.relu(results[0]), *results[1:]) if output_mean_var else torch.relu(results)


@op("BatchNorm_v1", complete_rule="shape", **_MOVING, names_output=True)
def batch_norm_v1(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9, fix_gamma: bool = True,
                  use_global_stats: bool = False, output_mean_var: bool = False, training: Training = False):
    """The batch normalization of MXNet before 0.9, kept for old files: axis 1 only, and `output_mean_var` returns the plain variance.

    Other attributes and the inputs are those of `BatchNorm`.

    Example
    -------
    >>> x, one, zero = mx.nd.array([[1, 2], [3, 6]]), mx.nd.ones(2), mx.nd.zeros(2)
    >>> with mx.autograd.train_mode():
    ...     _, mean, var = mx.nd.BatchNorm_v1(x, one, zero, zero.copy(), one.copy(), output_mean_var=True)
    >>> mean.asnumpy().round(3), var.asnumpy().round(3)
    (array([2., 4.], dtype=float32), array([1., 4.], dtype=float32))
    """
    return _batch_norm(data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, output_mean_var, 1,
                       training, inverse_deviation=False)


@op("_contrib_SyncBatchNorm", aliases=("_npx_sync_batch_norm",), complete_rule="shape", **_MOVING, names_output=True,
    synchronizes=lambda a: a["ndev"] > 1 and not a["use_global_stats"],
    amp="float32")
def sync_batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9, fix_gamma: bool = True,
                    use_global_stats: bool = False, output_mean_var: bool = False, ndev: AtLeast0 = 1, key: str, training: Training = False):
    """`BatchNorm` with the statistics of `ndev` devices, whose calls share a `key`. They count alike, however many rows each has.

    A call waits for those of the other devices, forward and backward, so each device needs a thread of its own, as `mx.mod.Module` gives it. In
    the main thread, and on GPUs, a device's own statistics are used, with a warning. `output_mean_var` returns the plain
    variance. Other attributes and the inputs are those of `BatchNorm`, on axis 1.

    Raises
    ------
    MXNetError
        If the other devices' calls do not arrive.

    Example
    -------
    >>> x, one, zero = mx.nd.array([[1, 2], [3, 6]]), mx.nd.ones(2), mx.nd.zeros(2)
    >>> with mx.autograd.train_mode():
    ...     mx.nd.contrib.SyncBatchNorm(x, one, zero, zero.copy(), one.copy(), eps=0, key="bn1").asnumpy()
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """
    if ndev > 1 and training and not use_global_stats:
        meet = rendezvous.place() if data.device.type == "cpu" else None
        if meet is not None:
            out, mean, var = _Joined.apply(data, None if fix_gamma else gamma, beta, eps, key, ndev, meet)
            moving_mean.data.mul_(momentum).add_(mean, alpha=1 - momentum)
            moving_var.data.mul_(momentum).add_(var, alpha=1 - momentum)
            return (out, mean, var) if output_mean_var else out
        warnings.warn(f"SyncBatchNorm {key!r}: statistics are those of each device, not of all {ndev}; they are joined on the CPU, where each device "
                      "has a thread of its own other than the main one", stacklevel=2)
    return _batch_norm(data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, output_mean_var, 1, training,
                       inverse_deviation=False)


class _Joined(torch.autograd.Function):
    """Batch normalization whose sums over the batch, forward and backward, are averages over several devices."""

    @staticmethod
    def forward(ctx, data, gamma, beta, eps, key, ndev, meet):
        wide = data.double()  # the variance is a difference of two sums
        axes = [axis for axis in range(data.dim()) if axis != 1]
        mean, square = meet(key, ndev, (wide.mean(axes), wide.square().mean(axes)))
        var = (square - mean.square()).clamp_(min=0)
        shape = [1, -1, *[1] * (data.dim() - 2)]
        factor = torch.rsqrt(var + eps)
        normal = ((wide - mean.view(shape)) * factor.view(shape)).to(data.dtype)
        mean, var = mean.to(data.dtype), var.to(data.dtype)
        ctx.save_for_backward(normal, gamma, factor.to(data.dtype))
        ctx.mark_non_differentiable(mean, var)
        ctx.meeting, ctx.axes, ctx.shape = (key, ndev), axes, shape
        scaled = normal if gamma is None else normal * gamma.view(shape)
        return scaled + beta.view(shape), mean, var

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient, _mean, _var):
        normal, gamma, factor = ctx.saved_tensors
        (key, ndev), axes, shape = ctx.meeting, ctx.axes, ctx.shape
        meet = rendezvous.place()
        if meet is None:
            raise MXNetError(f"SyncBatchNorm {key!r}: forward was joined with other devices', so call backward in each device's thread, too")
        # Two sums of a device, of which the averages over all devices go into the data's gradient, and the device's own are the parameters'.
        total, product = gradient.sum(axes), (gradient * normal).sum(axes)
        joined = meet(f"gradient of {key}", ndev, (total, product))
        count = normal.numel() // max(normal.shape[1], 1)
        of_mean, of_var = (value.view(shape) / max(count, 1) for value in joined)
        factor = (factor if gamma is None else factor * gamma).view(shape)
        return (gradient - of_mean - normal * of_var) * factor, None if gamma is None else product, total, None, None, None, None


for _operator in (batch_norm, batch_norm_with_relu, batch_norm_v1, sync_batch_norm):
    _operator.shape_rule(_batch_norm_shape_rule)
    _operator.dtype_rule(norm_types)


@quantized_form(batch_norm, "_contrib_quantized_batch_norm", result=torch.int8, calibrated=True, amp=None)
def quantized_batch_norm(data: EightBits, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor, moving_var: torch.Tensor, *, eps,
                         axis, min_calib_range, max_calib_range, **attributes) -> Quantized:
    """Batch normalization of int8 or uint8 `data` by the moving statistics (float32). Returns int8, and the calibrated range, which is required.

    `gamma` is always used, and `fix_gamma` is ignored, as in MXNet.

    Example
    -------
    >>> q, low, high = mx.nd.array([[10], [-20]], dtype='int8'), mx.nd.array([-1]), mx.nd.array([1])
    >>> zero, one = mx.nd.zeros(1), mx.nd.ones(1)
    >>> out, *ends = mx.nd.contrib.quantized_batch_norm(q, one * 2, zero, zero, one, low, high, min_calib_range=-1, max_calib_range=1)
    >>> out.asnumpy()
    array([[ 20],
           [-40]], dtype=int8)
    """
    values, ends = data.values, calibrated(min_calib_range, max_calib_range, data.values)
    if ends is None:
        raise MXNetError("_contrib_quantized_batch_norm works with a calibrated range only: give `min_calib_range` and `max_calib_range`")
    scale = INT8 / limit_of(*ends)
    factor = gamma / (moving_var + eps).sqrt()
    shape = [1] * values.dim()
    shape[axis] = -1
    signed = store(values * (INT8 / UINT8), torch.int8) if values.dtype == torch.uint8 else values
    out = signed * (factor * (scale * data.limit / INT8)).reshape(shape) + ((beta - moving_mean * factor) * scale).reshape(shape)
    return Quantized(store(out, torch.int8), *ends)


def _moments(data, axes, eps):
    """Return the mean and standard deviation outputs of the layers, without a gradient, as in MXNet."""
    data = data.detach()
    var, mean = torch.var_mean(data.float() if data.dtype == torch.float16 else data, axes, correction=0, keepdim=True)
    if _examines(data) and not var.isfinite().all():
        var, mean = torch.var_mean(data.double(), axes, correction=0, keepdim=True)
    return mean.to(data.dtype), (var + eps).sqrt_().to(data.dtype)


def _examines(data):
    """Return True if results for `data` are checked for overflow: not on GPUs (it would wait) and not on tracers (no values)."""
    return data.dtype is torch.float32 and data.is_cpu and type(data) is torch.Tensor and data.numel() and not torch.compiler.is_compiling()


def _overflowed(deviations):
    """Return True if a float32 variance overflowed although the result may be finite: its reciprocal root is 0 or NaN then."""
    return not (deviations if deviations.numel() == 1 else deviations.min()).item() > 0


def _layer_norm(data, gamma, beta, eps):
    """Normalize along the last axis; in double precision where single overflows."""
    if not _examines(data):
        return torch.layer_norm(data, gamma.shape, gamma, beta, eps)
    out, _, deviations = torch.native_layer_norm(data, gamma.shape, gamma, beta, eps)
    if _overflowed(deviations):
        return torch.layer_norm(data.double(), gamma.shape, gamma.double(), beta.double(), eps).to(data.dtype)
    return out


@op("LayerNorm", aliases=("_npx_layer_norm",), num_outputs=_moment_outputs, output_names=("output", "mean", "std"), compute_bound=True,
    names_output=True, complete_rule="shape", amp="float32")
def layer_norm(data, gamma, beta, *, axis: int = -1, eps: float = 1e-5, output_mean_var: bool = False):
    """Normalize along `axis` to mean 0 and variance 1, then scale by `gamma` and shift by `beta`, both of that axis's size (Ba et al. 2016).

    `output_mean_var` also returns the mean and ``sqrt(var + eps)``, with size 1 on the axis.

    Raises
    ------
    MXNetError
        If `axis` is out of range.

    Example
    -------
    >>> mx.nd.LayerNorm(mx.nd.array([[1, 3]]), mx.nd.ones(2), mx.nd.zeros(2), eps=0).asnumpy()
    array([[-1.,  1.]], dtype=float32)
    """
    if axis == -1 or axis == data.dim() - 1:
        out = _layer_norm(data, gamma, beta, eps)
    else:
        out = _layer_norm(data.movedim(axis, -1), gamma, beta, eps).movedim(-1, axis).contiguous()
    return (out, *_moments(data, axis, eps)) if output_mean_var else out


@layer_norm.shape_rule
def _layer_norm_shape_rule(in_shapes, out_shapes, *, axis, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if data is None:
        return in_shapes, out_shapes
    axis = check_axis(axis, len(data), "LayerNorm")
    assign(in_shapes, 1, data[axis:axis + 1], "LayerNorm's gamma")
    assign(in_shapes, 2, data[axis:axis + 1], "LayerNorm's beta")
    out_shapes[1:] = [(*data[:axis], 1, *data[axis + 1:])] * (len(out_shapes) - 1)
    return in_shapes, out_shapes


@op("GroupNorm", complete_rule="shape", num_outputs=_moment_outputs, output_names=("output", "mean", "std"), names_output=True, amp="float32")
def group_norm(data, gamma, beta, *, num_groups: int = 1, eps: float = 1e-5, output_mean_var: bool = False):
    """Normalize each of `num_groups` groups of channels of `data` (N, C, ...) to mean 0 and variance 1, then scale and shift it (Wu, He 2018).

    `gamma` and `beta` (num_groups,) have one value for each group; as in MXNet 2 they may have one for each channel, (C,).
    `output_mean_var` also returns mean and ``sqrt(var + eps)``, (N, num_groups).

    Raises
    ------
    MXNetError
        If the groups do not divide the channels, or `data` has fewer than 3 axes.

    Example
    -------
    >>> x = mx.nd.array([[[1], [3], [10], [30]]])           # four channels in two groups
    >>> mx.nd.GroupNorm(x, mx.nd.ones(2), mx.nd.array([0, 5]), num_groups=2, eps=0).asnumpy().ravel()
    array([-1.,  1.,  4.,  6.], dtype=float32)
    """
    channels = data.shape[1]
    gamma, beta = (f if f.shape[0] == channels else f.repeat_interleave(channels // num_groups) for f in (gamma, beta))
    out = _group_norm(data, num_groups, gamma, beta, eps)
    if not output_mean_var:
        return out
    mean, deviation = _moments(data.reshape(data.shape[0], num_groups, -1), 2, eps)
    return out, mean.squeeze(2), deviation.squeeze(2)


def _group_norm(data, groups, gamma, beta, eps):
    """Normalize groups of channels, in double precision where single overflows; `gamma` and `beta` have one value for each channel."""
    n, channels = data.shape[:2]
    if not _examines(data) or not gamma.shape == beta.shape == data.shape[1:2] or groups < 1 or channels % groups:
        return torch.group_norm(data, groups, gamma, beta, eps)  # raises the error
    out, _, deviations = torch.native_group_norm(data.contiguous(), gamma, beta, n, channels, data.numel() // (n * channels), groups, eps)
    if _overflowed(deviations):
        return torch.group_norm(data.double(), groups, gamma.double(), beta.double(), eps).to(data.dtype)
    return out


def _check_groups(data, num_groups):
    if len(data) < 3:
        raise MXNetError(f"GroupNorm: data must have at least 3 axes, received shape {data}")
    if num_groups < 1 or data[1] >= 0 and data[1] % num_groups:
        raise MXNetError(f"GroupNorm: {data[1]} channels must be divisible by `num_groups`, received {num_groups}")


@group_norm.shape_rule
def _group_norm_shape_rule(in_shapes, out_shapes, *, num_groups, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if data is None:
        return in_shapes, out_shapes
    _check_groups(data, num_groups)
    for i, name in ((1, "gamma"), (2, "beta")):
        if in_shapes[i] is None or data[1] >= 0 and in_shapes[i] != data[1:2]:
            assign(in_shapes, i, (num_groups,), f"GroupNorm's {name}")
    out_shapes[1:] = [(data[0], num_groups)] * (len(out_shapes) - 1)
    return in_shapes, out_shapes


@op("_contrib_group_norm", aliases=("_npx_group_norm",), complete_rule="shape", num_outputs=_moment_outputs, output_names=("output", "mean", "std"),
    names_output=True, amp=None)
def channel_group_norm(data, gamma, beta, *, num_groups: int = 1, eps: float = 1e-5, output_mean_var: bool = False):
    """`GroupNorm` as MXNet 2 has it: `gamma` and `beta` (C,) have one value for each channel.

    Raises
    ------
    MXNetError
        If the groups do not divide the channels, or `data` has fewer than 3 axes.

    Example
    -------
    >>> x = mx.np.array([[[1], [3], [10], [30]]])           # four channels in two groups
    >>> mx.npx.group_norm(x, mx.np.array([1, 1, 1, 2]), mx.np.zeros(4), num_groups=2, eps=0).reshape(-1)
    array([-1.,  1., -1.,  2.])
    """
    return group_norm.fn(data, gamma, beta, num_groups=num_groups, eps=eps, output_mean_var=output_mean_var)


@channel_group_norm.shape_rule
def _channel_group_norm_shape_rule(in_shapes, out_shapes, *, num_groups, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if data is not None:
        _check_groups(data, num_groups)
        for i, name in ((1, "gamma"), (2, "beta")):
            assign(in_shapes, i, data[1:2], f"group_norm's {name}")
        out_shapes[1:] = [(data[0], num_groups)] * (len(out_shapes) - 1)
    return in_shapes, out_shapes


@op("InstanceNorm", aliases=("_npx_instance_norm",), complete_rule="shape", names_output=True, amp="float32")
def instance_norm(data, gamma, beta, *, eps: float = 1e-3):
    """Normalize each channel of each instance of `data` (N, C, ...) to mean 0 and variance 1, then scale and shift it (Ulyanov et al. 2016).

    `gamma` and `beta` (C,) have one value for each channel.

    Raises
    ------
    MXNetError
        If `data` has fewer than 2 axes, or the parameters have another shape.

    Example
    -------
    >>> x = mx.nd.array([[[1, 3], [10, 30]]])
    >>> mx.nd.InstanceNorm(x, mx.nd.ones(2), mx.nd.array([0, 5]), eps=0).asnumpy()
    array([[[-1.,  1.],
            [ 4.,  6.]]], dtype=float32)
    """
    flat = data.reshape(*data.shape[:2], -1) if data.dim() < 3 or data.dim() > 5 else data  # cuDNN has at most 5 axes
    return _instance_norm(flat, gamma, beta, eps).view(data.shape)


def _instance_norm(data, gamma, beta, eps):
    """Normalize channels of (N, C, ...) as one instance with N * C channels, as torch does; in double precision where single overflows."""
    if not _examines(data) or data.dim() < 3 or not gamma.shape == beta.shape == data.shape[1:2]:
        return torch.instance_norm(data, gamma, beta, None, None, True, 0.0, eps, True)  # raises the error
    n = data.shape[0]
    flat = data.contiguous().view(1, -1, *data.shape[2:])
    out, _, deviations = torch.native_batch_norm(flat, gamma.repeat(n), beta.repeat(n), None, None, True, 0.0, eps)
    if _overflowed(deviations):
        return torch.instance_norm(data.double(), gamma.double(), beta.double(), None, None, True, 0.0, eps, True).to(data.dtype)
    return out.view(data.shape)


@instance_norm.shape_rule
def _instance_norm_shape_rule(in_shapes, out_shapes, **_):
    data = in_shapes[0] = out_shapes[0] = unify(in_shapes[0], out_shapes[0])
    if data is None:
        return in_shapes, out_shapes
    if len(data) < 2:
        raise MXNetError(f"InstanceNorm: data must be (batch, channel, ...), received shape {data}")
    assign(in_shapes, 1, data[1:2], "InstanceNorm's gamma")
    assign(in_shapes, 2, data[1:2], "InstanceNorm's beta")
    return in_shapes, out_shapes


for _operator in (layer_norm, group_norm, instance_norm):
    _operator.dtype_rule(same_type)


@op("L2Normalization", complete_rule="shape", same_shape=True, by_rows=True, names_output=True, amp="float32")
def l2_normalization(data, *, eps: float = 1e-10, mode: Literal["channel", "instance", "spatial"] = "instance"):
    """Divide `data` (N, C, ...) by ``sqrt(sum(x ** 2) + eps)``.

    The sum runs over all of an instance (``instance``), over axis 1 (``channel``), or over all axes from 2 on (``spatial``).

    Raises
    ------
    MXNetError
        If `data` has fewer than 3 axes in another mode than ``instance``.

    Example
    -------
    >>> mx.nd.L2Normalization(mx.nd.array([[3, 4], [0, 2]])).asnumpy()
    array([[0.6, 0.8],
           [0. , 1. ]], dtype=float32)
    """
    if mode != "instance" and data.dim() < 3:
        raise MXNetError(f"L2Normalization: mode {mode!r} needs data with at least 3 axes, received shape {tuple(data.shape)}")
    axes = 1 if mode == "channel" else tuple(range(1 if mode == "instance" else 2, data.dim()))
    if data.dtype is torch.float16:  # whose squares overflow from 256 on
        return l2_normalization.raw(data.float(), eps=eps, mode=mode).half()
    # A vector's instances are its elements.
    total = data.square() if axes == () else data.square().sum(axes, keepdim=True)
    if _examines(data) and not total.max().item() < torch.inf:
        return l2_normalization.raw(data.double(), eps=eps, mode=mode).float()
    return data / (total + eps).sqrt()


@op("LRN", complete_rule=True, names_input=True, names_output=True, amp=("float32", "inputs"))
def lrn(data, *, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0, nsize: int):
    """Local response normalization: ``x / (knorm + alpha / nsize * sum(x ** 2)) ** beta`` (Krizhevsky et al. 2012).

    `data` is (N, C, H, W) or (N, C); the sum is over `nsize` neighbouring channels, of which the middle one is normalized.

    Raises
    ------
    MXNetError
        If `nsize` is even, or `data` has another number of axes.

    Example
    -------
    >>> mx.nd.LRN(mx.nd.array([[1, 0, 2, 0]]), alpha=3, beta=1, knorm=1, nsize=3).asnumpy()
    array([[0.5, 0. , 0.4, 0. ]], dtype=float32)
    """
    _lrn_shape_rule([tuple(data.shape)], [None], nsize=nsize)
    if data.dim() == 2:
        return lrn.raw(data.view(*data.shape, 1, 1), alpha=alpha, beta=beta, knorm=knorm, nsize=nsize).view(data.shape)
    if data.dtype == torch.float16:
        return lrn.raw(data.float(), alpha=alpha, beta=beta, knorm=knorm, nsize=nsize).half()
    reach = min(nsize // 2, max(data.shape[1] - 1, 0))  # beyond there are no channels
    return kernels.normalize(data, reach, alpha / nsize, beta, knorm,
                                    lambda data: _local_response(data, reach, alpha / nsize, beta, knorm))


@lrn.shape_rule
def _lrn_shape_rule(in_shapes, out_shapes, *, nsize, **_):
    if nsize % 2 == 0 or nsize < 1:
        raise MXNetError(f"LRN: `nsize` must be odd and above 0, received {nsize}")
    shape = unify(in_shapes[0], out_shapes[0])
    if shape is not None and len(shape) not in (2, 4):
        raise MXNetError(f"LRN: `data` must be (N, C, H, W) or (N, C), received shape {shape}")
    return [shape], [shape]


def _local_response(data, reach, alpha, beta, knorm):
    """A sum of shifted views: many times as fast as torch's local_response_norm, which pools."""
    channels = data.shape[1]
    squares = _functional.pad(data.square(), (0, 0, 0, 0, reach, reach))
    total = squares.narrow(1, 0, channels)
    for shift in range(1, 2 * reach + 1):
        total = total + squares.narrow(1, shift, channels)
    base = total * alpha + knorm
    if beta == 0.75:  # the usual value: two roots are three times as fast as a power
        root = base.rsqrt()
        return data * (root * root.sqrt())
    return data * base.pow(-beta)
