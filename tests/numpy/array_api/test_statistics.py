import numpy as onp
import pytest

import mxnet as mx

xp = mx.np.array_api


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any"])
def test_reductions_as_in_numpy(name, keepdims, axis):
    host = onp.random.RandomState(0).rand(2, 3, 4)
    found = getattr(xp, name)(xp.asarray(host), axis=axis, keepdims=keepdims)
    onp.testing.assert_allclose(found.asnumpy(), getattr(onp, name)(host, axis=axis, keepdims=keepdims), rtol=1e-12)


def test_sums_of_integers_have_64_bits():
    assert xp.sum(xp.full(3, 2**31 - 1, dtype=xp.int32)).item() == 3 * (2**31 - 1) and xp.sum(xp.asarray([True, True])).dtype == xp.int64
    total = xp.sum(xp.full(3, 2**63, dtype=xp.uint64))
    assert total.dtype == xp.uint64 and total.item() == 2**63 and xp.sum(xp.ones(2, dtype=xp.uint8)).dtype == xp.uint64
    assert xp.prod(xp.full(3, 200, dtype=xp.uint8)).item() == 8000000 and xp.sum(xp.ones(2, dtype=xp.int8), dtype=xp.float64).dtype == xp.float64


def test_unsigned_extrema():
    x = xp.asarray([1, 2**64 - 1, 2**63], dtype=xp.uint64)
    assert xp.max(x).item() == 2**64 - 1 and xp.min(x).item() == 1


def test_corrections():
    x = xp.asarray([1.0, 2.0, 6.0])
    assert xp.var(x, correction=1).item() == pytest.approx(7) and xp.std(x).item() == pytest.approx(onp.std([1, 2, 6]))
    with pytest.raises(TypeError, match="mean: floating-point numbers expected, received int64"):
        xp.mean(xp.asarray([1]))


def test_running_sums():
    assert xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True).tolist() == [0, 1, 3, 6]
    assert xp.cumulative_prod(xp.asarray([[1, 2], [3, 4]], dtype=xp.uint16), axis=0).tolist() == [[1, 2], [3, 8]]
    with pytest.raises(ValueError, match="cumulative_sum: an axis expected for an array of 2 axes, received None"):
        xp.cumulative_sum(xp.ones((2, 2)))


def test_differences():
    assert xp.diff(xp.asarray([1, 4, 9]), n=2).tolist() == [2] and xp.diff(xp.asarray([5, 3], dtype=xp.uint8)).tolist() == [254]
    assert xp.diff(xp.asarray([1, 4]), prepend=xp.asarray([0]), append=xp.asarray([9])).tolist() == [1, 3, 5]
    assert xp.count_nonzero(xp.asarray([[1, 0], [2, 3]]), axis=0).tolist() == [2, 1]
