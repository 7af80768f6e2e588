"""Writes whose source and target overlap: the values are those that the source had before, as with NumPy."""
import pathlib
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.ndarray import dispatch, mutation_tracking
from mxnet.ops import registry

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))
from records import RECORDS  # noqa: E402

ROWS = [slice(None, -1), slice(1, None), slice(None, None, 2), slice(1, None, 2), slice(None, None, -1), slice(2, 0, -1), slice(0, 2), slice(1, 3),
        0, -1, Ellipsis, None, [1, 0, 2], [2, 0, 3]]
COLUMNS = [(slice(None), 0), (slice(None), slice(None, None, -1)), (slice(None), slice(1, None)), (slice(None), slice(None, -1)),
           (slice(None), [1, 0, 2]), (0, slice(None))]


@pytest.mark.parametrize("create", [mx.nd.array, mx.np.array])
@pytest.mark.parametrize("size", [(6,), (4, 3)])
def test_assignment(create, size):
    start = np.arange(np.prod(size), dtype="float32").reshape(size)
    keys, count = ROWS + COLUMNS if len(size) == 2 else ROWS, 0
    with mx.util.np_shape(create is mx.np.array):
        for target in keys:
            for source in keys:
                expected = start.copy()
                try:
                    expected[target] = start[source]
                except ValueError:  # shapes that do not broadcast
                    continue
                x = create(start)
                x[target] = x[source]
                assert x.asnumpy().tolist() == expected.tolist(), (target, source)
                count += 1
    assert count > 50 * len(size)


def test_a_mask_and_its_own_values():
    x = mx.np.arange(6)
    x[x > 2] = x[:3]
    assert x.tolist() == [0, 1, 2, 0, 1, 2]
    x[::-1] = x
    assert x.tolist() == [2, 1, 0, 2, 1, 0]


def test_copyto():
    for create in (mx.nd.array, mx.np.array):
        for source, target, expected in ((slice(0, 3), slice(1, 4), [0, 0, 1, 2, 4]), (slice(1, 4), slice(0, 3), [1, 2, 3, 3, 4])):
            x = create([0, 1, 2, 3, 4])
            x[source].copyto(x[target])
            assert x.asnumpy().tolist() == expected


@pytest.mark.parametrize("create", [mx.nd.array, mx.np.array])
def test_in_place_arithmetic(create):
    x = create([1, 2, 3, 4])
    x[1:] += x[:-1]
    assert x.asnumpy().tolist() == [1, 3, 5, 7]
    x[:-1] *= x[1:]
    assert x.asnumpy().tolist() == [3, 15, 35, 7]
    y = create([[1, 2], [3, 4]])
    y -= y[1]
    assert y.asnumpy().tolist() == [[-2, -2], [0, 0]]


def test_executors_and_custom_operators():
    executor = (mx.sym.Variable("x") + 0).bind(mx.cpu(), {"x": mx.nd.arange(4)})
    array = executor.arg_dict["x"]
    array[:-1] = array[1:]
    assert executor.forward()[0].asnumpy().tolist() == [1, 2, 3, 3]
    mx.operator.CustomOp().assign(array[1:], "write", array[:-1])
    assert executor.forward()[0].asnumpy().tolist() == [1, 1, 2, 3]
    mx.operator.CustomOp().assign(array[1:], "add", array[:-1])
    assert executor.forward()[0].asnumpy().tolist() == [1, 2, 3, 5]


def test_other_storages_on_the_same_memory():
    memory = np.arange(6, dtype="float32")
    first, second = (mx.nd.NDArray(mx.nd.from_numpy(part)._data) for part in (memory[:4], memory[2:]))
    assert first._data.untyped_storage()._cdata != second._data.untyped_storage()._cdata
    second[:] = first
    assert memory.tolist() == [0, 1, 0, 1, 2, 3]


def test_what_does_not_overlap_is_not_copied():
    x = mx.nd.arange(6)
    assert mutation_tracking.apart(x[:3]._data, x[3:]._data).data_ptr() == x._data.data_ptr()
    assert mutation_tracking.apart(x[:3]._data, x[2:]._data).data_ptr() != x._data.data_ptr()
    grid = mx.nd.zeros((3, 4))._data
    assert mutation_tracking.apart(grid[:, ::2], grid[2, 3:]).data_ptr() == grid.data_ptr()
    assert mutation_tracking.apart(grid[0:0], grid).data_ptr() == grid[0:0].data_ptr()


def views_that_overlap():
    """Operators with one result whose first sample has an input of the result's type."""
    for name, samples in RECORDS.items():
        operator = registry.get(name)
        if samples and samples[0].inputs and not operator.mutated_indices:
            yield name


def call(name, sample, inputs, out=None):
    operator = registry.get(name)
    mx.random.seed(3)
    kind = mx.np.ndarray if name.startswith("_np") else mx.nd.NDArray
    inputs = [kind._new(x._data, x._ctx) for x in inputs]
    with mx.autograd.train_mode() if sample.training else mx.autograd.predict_mode():
        result = dispatch.invoke(operator, inputs, operator.parse({k: str(v) for k, v in sample.attributes.items()}), out, kind)
    return result if isinstance(result, (list, tuple)) else [result]


def test_every_operator_writes_to_memory_that_it_reads():
    count = 0
    for name in views_that_overlap():
        sample = RECORDS[name][0]
        with mx.util.np_shape(name.startswith("_np")):
            values = [np.asarray(a) for a in sample.inputs]
            results = call(name, sample, [mx.nd.array(a, dtype=a.dtype) for a in values])
            expected = results[0].asnumpy()
            if len(results) > 1 or not expected.size or values[0].dtype != expected.dtype or not values[0].size:
                continue
            for before, behind in ((0, 0), (0, 1)):
                memory = mx.nd.zeros(max(before + values[0].size, behind + expected.size), dtype=expected.dtype)
                first, out = (mx.nd.NDArray(memory._data[at:at + like.size].view(like.shape))
                              for at, like in ((before, values[0]), (behind, expected)))
                first[...] = mx.nd.array(values[0], dtype=values[0].dtype)
                call(name, sample, [first, *(mx.nd.array(a, dtype=a.dtype) for a in values[1:])], out)
                np.testing.assert_allclose(out.asnumpy().astype("f8"), expected.astype("f8"), 1e-4, 1e-5, err_msg=f"{name} {before} {behind}")
                count += 1
    assert count > 600
