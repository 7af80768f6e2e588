"""Functions of single numbers in one pass over memory. Torch's operators take several, or a function of libm for each number."""
import torch

from .gate import Kernel

# Smaller arrays are done before a kernel would have been called.
_WORTHWHILE = 1 << 14
_IN, _DOUT, _OUT = {"data": "float32 (n)"}, {"dout": "float32 (n)"}, {"out": "float32 (n)"}
_gamma = Kernel("pointwise", "gamma_of", _IN, _OUT, sizes=("n",))
_softsign = Kernel("pointwise", "softsign", _IN, _OUT, sizes=("n",))
_softsign_back = Kernel("pointwise", "softsign_back", {**_IN, **_DOUT}, _OUT, sizes=("n",))
_rest_by = Kernel("pointwise", "rest_by", _IN, _OUT, sizes=("n",), numbers="f")
_rest_by_back = Kernel("pointwise", "rest_by_back", {**_IN, **_DOUT}, _OUT, sizes=("n",), numbers="f")


def gamma(data):
    """The gamma function; None without a kernel. It records nothing, as the others here."""
    return _run(_gamma, (data,))


def softsign(data):
    """``data / (1 + |data|)``; None without a kernel."""
    return _run(_softsign, (data,))


def softsign_back(data, dout):
    """The gradient, ``dout / (1 + |data|) ** 2``; None without a kernel."""
    return _run(_softsign_back, (data, dout))


def rest_by(data, scalar):
    """The remainder of ``scalar / data`` with the sign of `data`, 0 where it is 0; None without a kernel."""
    return _run(_rest_by, (data,), scalar)


def rest_by_back(data, dout, scalar):
    """The gradient, ``-floor(scalar / data) * dout``; None without a kernel."""
    return _run(_rest_by_back, (data, dout), scalar)


def _run(kernel, arrays, *numbers):
    first = arrays[0]
    if first.numel() < _WORTHWHILE or not first.is_contiguous() or torch.compiler.is_compiling() \
            or torch.is_grad_enabled() and any(a.requires_grad for a in arrays):
        return None
    shape, arrays = first.shape, [a.contiguous().view(-1) for a in arrays]
    plan = kernel.plan(arrays)
    return None if plan is None else plan(arrays, numbers)[0].view(shape)
