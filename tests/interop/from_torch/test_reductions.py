import torch

from torch_checks import check, real

X = real(2, 3, 4)


def test_functions():
    check([
        lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.mean((1, 2)), lambda x: x.mean(-1, keepdim=True), lambda x: x.mean(), lambda x: x.amax(1),
        lambda x: x.amin((1, 2), True),
        lambda x: x.max(), lambda x: x.prod(2), lambda x: x.var(1), lambda x: x.var((1, 2), correction=0), lambda x: x.std(-1, keepdim=True),
        lambda x: x.norm(dim=1),
        lambda x: x.norm(p=1, dim=(1, 2)), lambda x: x.cumsum(1), lambda x: x.max(1).values, lambda x: torch.linalg.vector_norm(x, dim=-1),
    ], X)


def test_places_and_truth():
    check([
        lambda x: x.argmax(1), lambda x: x.argmin(-1, keepdim=True), lambda x: x.max(2)[1], lambda x: (x > 1).any(1), lambda x: (x > -1).all(2),
        lambda x: (x > 0).sum(1),
    ], X, gradient=False)
