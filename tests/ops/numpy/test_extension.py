import pytest
import torch

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.ops.registry import get


def test_places_named_twice_receive_both():
    ind = torch.tensor([[0, 0, 1], [2, 2, 0]], dtype=torch.int32)
    assert get("_npx_index_add")(torch.zeros(2, 3), ind, torch.tensor([1.0, 2.0, 4.0])).tolist() == [[0, 0, 3], [4, 0, 0]]
    assert get("_npx_index_update")(torch.zeros(2, 3), ind[:, 1:], torch.tensor([2.0, 4.0])).tolist() == [[0, 0, 2], [4, 0, 0]]
    with pytest.raises(MXNetError, match="must hold integers"):
        get("_npx_index_add")(torch.zeros(2), torch.zeros(1, 1), torch.ones(1))
    with pytest.raises(MXNetError, match="at most 1 rows of indices expected"):
        get("_npx_index_update")(torch.zeros(2), ind, torch.ones(3))


def test_older_operators_have_names_in_npx():
    boxes = mx.np.array([[0, 0, 2, 2], [0, 0, 2, 1]])
    assert mx.npx.box_iou(boxes[:1], boxes).tolist() == [[1.0, 0.5]]
    out = mx.npx.sequence_last(mx.np.array([[1, 2], [3, 4]]))
    assert type(out) is mx.np.ndarray and out.tolist() == [3.0, 4.0]
