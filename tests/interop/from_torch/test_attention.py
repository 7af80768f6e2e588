import pytest
import torch
import torch.nn.functional as F

from torch_checks import check, real

Q, K, V = real(2, 2, 3, 4), real(2, 2, 5, 4) * 0.7, real(2, 2, 5, 4) * 1.3


def test_functions():
    check([
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.2),
        lambda q, k, v: F.scaled_dot_product_attention(q, q, q, is_causal=True) + k.sum() * v.sum() * 0.01,
        lambda q, k, v: F.scaled_dot_product_attention(q[:, 0], k[:, 0], v[:, 1]),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor([[True, False, True, True, True]])),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.linspace(0, 2, 15).reshape(3, 5)),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=(k.sum(-1) > -1)[:, :, None, :]),
    ], Q, K, V)


def test_dropout_is_an_operator():
    block = check(lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5) * 0 + q, Q)
    assert [node.op.name for node in block._cached_graph[1]._nodes() if node.op is not None].count("Dropout") == 1


@pytest.mark.parametrize("training", [False, True])
def test_layers(training):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation="gelu", norm_first=True).train(training)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).train(training)
    check([layer, lambda x: attention(x, x, x)[0]], real(2, 5, 8))


def test_rows_that_attend_to_nothing_are_zero():
    masks = [
        lambda x: x[:, :, :, :1] > 0.9, lambda x: torch.where(x[:, :, :, :1] > 0.9, 0.0, -torch.inf),
        lambda x: torch.tensor([[True], [False], [True]]).expand(3, 3),
        lambda x: torch.tensor([[0.0], [-torch.inf], [1.0]]).expand(3, 3),
    ]
    functions = [lambda q, make=make: F.scaled_dot_product_attention(q, q, q, attn_mask=make(q)) for make in masks]
    assert all((function(Q) == 0).all(-1).any() for function in functions)
    check(functions, Q, gradient=False)
