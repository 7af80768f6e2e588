"""Operators for the probability densities of samples, differentiable in the samples and the parameters.

Parameters of the shape (s1, ..., sn) go with samples (s1, ..., sn, *t): the leading axes belong to the parameters.
"""
import torch

from ...base import MXNetError
from ..registry import op
from ..shapes import unify


def _columns(name, sample, parameters):
    """Append axes of size 1 to the parameters for the samples' further axes."""
    shape = parameters[0].shape
    if any(p.shape != shape for p in parameters) or sample.shape[:len(shape)] != shape:
        raise MXNetError(f"{name}: the parameters must have one shape, with which that of `sample` begins; received sample "
                         f"{tuple(sample.shape)}, parameters {', '.join(str(tuple(p.shape)) for p in parameters)}")
    return [p.reshape((*shape, *[1] * (sample.dim() - len(shape)))) for p in parameters]


def _rule(in_shapes, out_shapes, **_):
    sample = unify(in_shapes[0], out_shapes[0])
    common = None
    for s in in_shapes[1:]:
        common = unify(common, s)
    if sample is None or common is None or len(common) > len(sample):
        return [sample] + [common] * (len(in_shapes) - 1), out_shapes
    common = unify(common, sample[:len(common)])
    sample = (*common, *sample[len(common):])
    return [sample] + [common] * (len(in_shapes) - 1), [sample]


def _density(name):
    def register(fn):
        operator = op(f"_random_pdf_{name}", aliases=(f"random_pdf_{name}",), complete_rule="shape", amp="widest")(fn)
        operator.shape_rule(_rule)
        return operator
    return register


def _finish(logarithm, is_log):
    return logarithm if is_log else logarithm.exp()


@_density("uniform")
def pdf_uniform(sample, low, high, *, is_log: bool = False):
    """The density of the uniform distribution, ``1 / (high - low)``, or its logarithm; samples outside get the same value.

    Example
    -------
    >>> mx.nd.random.pdf_uniform(mx.nd.array([[1, 2, 3]]), mx.nd.array([0]), mx.nd.array([4])).asnumpy()
    array([[0.25, 0.25, 0.25]], dtype=float32)
    """
    low, high = _columns("_random_pdf_uniform", sample, (low, high))
    return _finish(-torch.log(high - low) + 0 * sample, is_log)


@_density("normal")
def pdf_normal(sample, mu, sigma, *, is_log: bool = False):
    """The density of the normal distribution of mean `mu` and standard deviation `sigma`, or its logarithm.

    Example
    -------
    >>> mx.nd.random.pdf_normal(mx.nd.array([[0, 1]]), mx.nd.array([0]), mx.nd.array([1])).asnumpy().round(3)
    array([[0.399, 0.242]], dtype=float32)
    """
    mu, sigma = _columns("_random_pdf_normal", sample, (mu, sigma))
    deviation = (sample - mu) / sigma
    return _finish(-0.5 * deviation * deviation - torch.log(sigma) - 0.9189385332046727, is_log)  # log(sqrt(2 * pi))


@_density("gamma")
def pdf_gamma(sample, alpha, beta, *, is_log: bool = False):
    """The density of the gamma distribution of the shape parameter `alpha` and the rate `beta`, or its logarithm.

    Example
    -------
    >>> mx.nd.random.pdf_gamma(mx.nd.array([[1, 2]]), mx.nd.array([1]), mx.nd.array([2])).asnumpy().round(3)
    array([[0.271, 0.037]], dtype=float32)
    """
    alpha, beta = _columns("_random_pdf_gamma", sample, (alpha, beta))
    return _finish(alpha * torch.log(beta) + (alpha - 1) * torch.log(sample) - beta * sample - torch.lgamma(alpha), is_log)


@_density("exponential")
def pdf_exponential(sample, lam, *, is_log: bool = False):
    """The density of the exponential distribution, ``lam * exp(-lam * x)``, or its logarithm.

    Example
    -------
    >>> mx.nd.random.pdf_exponential(mx.nd.array([[0, 1]]), mx.nd.array([2]), is_log=True).asnumpy().round(3)
    array([[ 0.693, -1.307]], dtype=float32)
    """
    lam, = _columns("_random_pdf_exponential", sample, (lam,))
    return _finish(torch.log(lam) - lam * sample, is_log)


@_density("poisson")
def pdf_poisson(sample, lam, *, is_log: bool = False):
    """The probability of a count under the Poisson distribution, or its logarithm.

    Example
    -------
    >>> mx.nd.random.pdf_poisson(mx.nd.array([[0, 1, 2]]), mx.nd.array([1])).asnumpy().round(3)
    array([[0.368, 0.368, 0.184]], dtype=float32)
    """
    lam, = _columns("_random_pdf_poisson", sample, (lam,))
    return _finish(torch.xlogy(sample, lam) - lam - torch.lgamma(sample + 1), is_log)


def _negative_binomial(sample, k, p):
    return (torch.lgamma(sample + k) - torch.lgamma(sample + 1) - torch.lgamma(k) + k * torch.log(p) + torch.xlogy(sample, 1 - p))


@_density("negative_binomial")
def pdf_negative_binomial(sample, k, p, *, is_log: bool = False):
    """The probability of that many failures before the k-th success, or its logarithm.

    Example
    -------
    >>> mx.nd.random.pdf_negative_binomial(mx.nd.array([[0, 1, 2]]), mx.nd.array([1]), mx.nd.array([0.5])).asnumpy().round(3)
    array([[0.5  , 0.25 , 0.125]], dtype=float32)
    """
    k, p = _columns("_random_pdf_negative_binomial", sample, (k, p))
    return _finish(_negative_binomial(sample, k, p), is_log)


@_density("generalized_negative_binomial")
def pdf_generalized_negative_binomial(sample, mu, alpha, *, is_log: bool = False):
    """The probability of a count under the negative binomial distribution of mean `mu` and dispersion `alpha`, or its logarithm.

    Example
    -------
    >>> mx.nd.random.pdf_generalized_negative_binomial(mx.nd.array([[0, 1, 2]]), mx.nd.array([1]), mx.nd.array([1])).asnumpy().round(3)
    array([[0.5  , 0.25 , 0.125]], dtype=float32)
    """
    mu, alpha = _columns("_random_pdf_generalized_negative_binomial", sample, (mu, alpha))
    return _finish(_negative_binomial(sample, 1 / alpha, 1 / (mu * alpha + 1)), is_log)


@op("_random_pdf_dirichlet", complete_rule="shape", aliases=("random_pdf_dirichlet",), amp="widest")
def pdf_dirichlet(sample, alpha, *, is_log: bool = False):
    """The density of the Dirichlet distribution, or its logarithm.

    `alpha` (s1, ..., sn, k) goes with `sample` (s1, ..., sn, *t, k); the result is (s1, ..., sn, *t), or (1,) for a single sample.

    Raises
    ------
    MXNetError
        If `sample` does not begin and end with the sizes of `alpha`.

    Example
    -------
    >>> mx.nd.random.pdf_dirichlet(mx.nd.array([[0.5, 0.5], [0.25, 0.75]]), mx.nd.array([2, 2])).asnumpy().round(3)
    array([1.5  , 1.125], dtype=float32)
    """
    lead = alpha.shape[:-1]
    if sample.shape[:len(lead)] != lead or sample.shape[-1] != alpha.shape[-1]:
        raise MXNetError(f"_random_pdf_dirichlet: `sample` must begin and end with the sizes of `alpha`; received {tuple(sample.shape)} "
                         f"and {tuple(alpha.shape)}")
    alpha = alpha.reshape(*lead, *[1] * (sample.dim() - alpha.dim()), alpha.shape[-1])
    logarithm = (torch.xlogy(alpha - 1, sample) - torch.lgamma(alpha)).sum(-1) + torch.lgamma(alpha.sum(-1))
    return _finish(logarithm if logarithm.dim() else logarithm.reshape(1), is_log)


@pdf_dirichlet.shape_rule
def _(in_shapes, out_shapes, **_):
    sample, alpha = in_shapes
    if sample is not None and alpha is not None and 0 < len(alpha) <= len(sample):
        alpha = unify(alpha, (*sample[:len(alpha) - 1], sample[-1]))
        sample = (*alpha[:-1], *sample[len(alpha) - 1:-1], alpha[-1])
        out_shapes = [unify(out_shapes[0], sample[:-1] or (1,))]
    return [sample, alpha], out_shapes
