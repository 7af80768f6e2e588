import pytest
import torch

from mxnet.base import MXNetError
from mxnet.ops.registry import get

DILATION = torch.tensor([1, 2], dtype=torch.int32)


def dense(score, w, symmetric):
    """Scores of windows as those of all pairs of elements."""
    batch, length, heads, _ = score.shape
    out = torch.zeros(batch, heads, length, length)
    for k, offset in enumerate(range(-w, (w if symmetric else 0) + 1)):
        for h in range(heads):
            for i in range(length):
                j = i + offset * int(DILATION[h])
                if 0 <= j < length:
                    out[:, h, i, j] = score[:, i, h, k]
    return out


@pytest.mark.parametrize("symmetric", [True, False])
def test_windows_are_bands_of_dense_attention(symmetric):
    torch.manual_seed(0)
    query, key, value = torch.rand(3, 2, 6, 2, 4)
    score = get("_contrib_sldwin_atten_score")(query, key, DILATION, w=2, symmetric=symmetric)
    full = torch.einsum("bihd,bjhd->bhij", query, key)
    banded = dense(score, 2, symmetric)
    torch.testing.assert_close(banded, torch.where(banded != 0, full, banded))
    assert (score != 0).sum() == (banded != 0).sum() > 0
    context = get("_contrib_sldwin_atten_context")(score, value, DILATION, w=2, symmetric=symmetric)
    torch.testing.assert_close(context, torch.einsum("bhij,bjhd->bihd", banded, value))


def test_masks_leave_out_what_is_beyond_an_example():
    mask = get("_contrib_sldwin_atten_mask_like")(torch.zeros(1, 4, 2, 3), DILATION, torch.tensor([3]), w=1, symmetric=True)
    assert mask[0, :, 0].tolist() == [[0, 1, 1], [1, 1, 1], [1, 1, 0], [0, 0, 0]]
    assert mask[0, :, 1].tolist() == [[0, 1, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_one_dilation_a_head_is_expected():
    with pytest.raises(MXNetError, match=r"one dilation a head expected, received shapes \(1, 4, 3, 5\) and \(2,\)"):
        get("_contrib_sldwin_atten_score")(torch.zeros(1, 4, 3, 5), torch.zeros(1, 4, 3, 5), DILATION, w=1)
