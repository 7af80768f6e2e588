"""The GPU's addition of a bias beside torch's in double precision: in Triton's interpreter, and on a GPU."""
import torch

from batch_norm_checks import arranged
from mxnet.kernels.nn import bias_on_gpu

ROUNDED = "out", "dx", "dbias"  # to the type of the data


def biased(shape, dtype, relu, device="cpu"):
    """Return result and gradients of the kernels and of torch in double precision, by name."""
    random = torch.Generator().manual_seed(0)
    dtype = getattr(torch, dtype)
    values = [torch.randn(*sizes, generator=random).to(dtype).to(device) for sizes in (shape, shape[1:2], shape)]
    data, bias = arranged(values[0]).requires_grad_(), values[1].requires_grad_()
    before = data.clone()
    out = bias_on_gpu.add_bias(before, bias, relu)
    out.backward(arranged(values[2]))
    expected = values[0].double() + values[1].double().view(-1, *[1] * (len(shape) - 2))
    dx = torch.where(out <= 0, 0, values[2].double()) if relu else values[2].double()
    dbias = dx.sum([axis for axis in range(len(shape)) if axis != 1])
    found = {"out": out, "dx": data.grad, "dbias": bias.grad, "in place": torch.tensor(out.data_ptr() == before.data_ptr())}
    return found, {"out": expected.relu() if relu else expected, "dx": dx, "dbias": dbias, "in place": torch.ones((), dtype=torch.float64)}
