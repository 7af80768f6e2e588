
import mxnet as mx
from mxnet.ndarray import sparse


def test_arithmetic_of_one_shape_stays_sparse_and_else_broadcasts():
    r = mx.nd.array([[0, 0], [1, 2], [0, 0]]).tostype("row_sparse")
    c = mx.nd.array([[0, 0], [1, 2], [0, 0]]).tostype("csr")
    assert [x.stype for x in (r + r, r - r, r * r, r / r, c + c, c * c)] == ["row_sparse"] * 3 + ["default"] + ["csr"] * 2
    assert [x.stype for x in (2 * r, r * 2, r / 2)] == ["row_sparse"] * 3 and [x.stype for x in (r + 1, 1 - r, 2 / r, 1 + r)] == ["default"] * 4
    assert (mx.nd.ones((3, 2)) + r).stype == "default" and mx.nd.add(r, r).stype == "default"
    assert (c * mx.nd.array([2, 3])).stype == "csr" and (c * mx.nd.array([2, 3])).asnumpy().tolist() == [[0, 0], [2, 6], [0, 0]]
    assert sparse.add(c, mx.nd.array([1, 1])).asnumpy().tolist() == [[1, 1], [2, 3], [1, 1]]
    assert (1 - r).asnumpy().tolist() == [[1, 1], [0, -1], [1, 1]]
