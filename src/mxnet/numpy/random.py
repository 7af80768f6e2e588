"""``mx.np.random``: random numbers. Seed with ``mx.random.seed`` or ``npx.random.seed``."""
from .frontend import TABLE, arrays, bind
from . import functions  # noqa: F401
from .multiarray import ndarray

for _name, _function in TABLE["random"].items():
    globals()[_name] = bind(_function, arrays, _name, __name__)


def shuffle(x):
    """Put the entries of the first axis in random order, in place."""
    arrays.call("_npi_shuffle", x, out=x)


def multivariate_normal(mean, cov, size=None, check_valid=None, tol=None):
    """Normally distributed vectors.

    Parameters
    ----------
    mean : ndarray
        (..., N)
    cov : ndarray
        (..., N, N), symmetric and positive definite.
    size : int or tuple of int, optional
        Put before the axes that `mean` and `cov` broadcast to.

    Raises
    ------
    NotImplementedError
        If `check_valid` or `tol` is given.
    """
    for name, value in (("check_valid", check_valid), ("tol", tol)):
        if value is not None:
            raise NotImplementedError(f"Parameter `{name}` is not supported")
    import torch

    from ..ops.random_state import generator
    for x in (mean, cov):
        if not isinstance(x, ndarray):
            raise TypeError(f"multivariate_normal: mean and cov must be arrays, received {type(x)}")
    loc, matrix = mean._raw(), cov._raw()
    batch = torch.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
    size = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    noise = torch.empty((*size, *batch, loc.shape[-1]), dtype=loc.dtype, device=loc.device).normal_(generator=generator(loc.device))
    root = torch.linalg.cholesky(matrix)
    return ndarray._new(loc + (root @ noise.unsqueeze(-1)).squeeze(-1), mean.ctx)


__all__ = sorted([*TABLE["random"], "multivariate_normal", "shuffle"])
