"""A layer of the GPU's batch norm beside torch's in double precision: in Triton's interpreter, and on a GPU."""
import torch

from mxnet.kernels.nn import batch_norm_on_gpu as on_gpu

TOLERANCES = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def arranged(tensor):
    """The tensor in the order that the kernels take."""
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor.contiguous()


def layer(shape, dtype, relu, residual, fix_gamma, bias, mean=3.0, device="cpu"):
    """What the kernels compute and what torch does in double precision: result, gradients and moving moments, by name."""
    dtype = getattr(torch, dtype)
    random = torch.Generator().manual_seed(0)

    def numbers(*sizes):
        return torch.randn(*sizes, generator=random)

    x, added, dout = (arranged(numbers(*shape).add(m).to(dtype).to(device)) for m in (mean, 0, 0))
    vectors = [(numbers(shape[1]) + m).to(device) for m in (1.5, 0, 0)]  # gamma, beta, bias
    ours = [t.clone().requires_grad_() for t in (x, added, *vectors)]
    theirs = [t.double().requires_grad_() for t in (x, added, *vectors)]
    moving, wide = [torch.full((shape[1],), 0.5, device=device) for _ in range(2)], [torch.full((shape[1],), 0.5, device=device).double()] * 2
    out = on_gpu.batch_norm(ours[0], ours[2], ours[3], *moving, ours[1] if residual else None, bias=ours[4] if bias else None, relu=relu,
                            fix_gamma=fix_gamma, eps=1e-3, momentum=0.8)
    out.backward(dout)
    axes = [axis for axis in range(len(shape)) if axis != 1]
    var, average = torch.var_mean(theirs[0].detach(), axes, correction=0)
    view = (-1, *[1] * (len(shape) - 2))
    expected = (theirs[0] - theirs[0].mean(axes, keepdim=True)) * (theirs[0].var(axes, correction=0, keepdim=True) + 1e-3).rsqrt()
    expected = (expected if fix_gamma else expected * theirs[2].view(view)) + theirs[3].view(view)
    expected = expected + theirs[1] if residual else expected
    # Numbers that are rounded fall on either side of ReLU's kink.
    on = out > 0 if relu else torch.ones_like(out, dtype=torch.bool)
    (expected * on).backward(dout.double())
    found = {"out": out, "mean": moving[0], "var": moving[1], "dx": ours[0].grad, "dbeta": ours[3].grad}
    wanted = {"out": torch.relu(expected) if relu else expected, "dx": theirs[0].grad, "dbeta": theirs[3].grad,
              "mean": wide[0] * 0.8 + 0.2 * (average + (vectors[2] if bias else 0)), "var": wide[1] * 0.8 + 0.2 * var}
    if residual:
        found["dresidual"], wanted["dresidual"] = ours[1].grad, theirs[1].grad
    if bias:
        found["dbias"], wanted["dbias"] = ours[4].grad, torch.zeros(shape[1], device=device)
    if not fix_gamma:
        found["dgamma"], wanted["dgamma"] = ours[2].grad, theirs[2].grad
    elif ours[2].grad is not None:
        found["dgamma"], wanted["dgamma"] = ours[2].grad, torch.zeros(0)
    return found, wanted


def faults(found, wanted, tolerance, rounded=("out", "dx", "dresidual")):
    """What differs by more than `tolerance` of the largest number (what is not `rounded`: by more than a float32's digits), and by how much."""
    differing = []
    for name, value in wanted.items():
        limit = tolerance if name in rounded else 2e-5
        other = found[name].detach().double()
        if other.shape != value.shape:
            differing.append(f"{name} has shape {tuple(other.shape)}")
        elif value.numel():
            difference = ((other - value.detach()).abs().max() / value.abs().max().clamp(min=1)).item()
            if not difference <= limit:
                differing.append(f"{name} differs by {difference:.2g}")
    return differing
