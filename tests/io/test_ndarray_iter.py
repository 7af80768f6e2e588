import json
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.io import NDArrayIter


def epoch(it):
    return [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in it]


FULL = [([0, 1], [0, 10], 0), ([2, 3], [20, 30], 0)]


@pytest.mark.parametrize("handle, epochs", [
    ("pad", [FULL + [([4, 0], [40, 0], 1)]] * 3),
    ("discard", [FULL] * 3),
    ("roll_over", [FULL, [([4, 0], [40, 0], 1), ([1, 2], [10, 20], 0), ([3, 4], [30, 40], 0)], FULL]),
])
def test_last_batch(handle, epochs):
    it = NDArrayIter(np.arange(5), np.arange(5) * 10, 2, last_batch_handle=handle)
    for expected in epochs:
        assert epoch(it) == expected
        it.reset()


def test_hard_reset_forgets_what_would_roll_over():
    it = NDArrayIter(np.arange(5), batch_size=3, last_batch_handle="roll_over")
    assert len(list(it)) == 1
    it.hard_reset()
    assert [b.data[0].asnumpy().tolist() for b in it] == [[0, 1, 2]]


def test_roll_over_with_fewer_examples_than_a_batch():
    it = NDArrayIter(np.arange(2), batch_size=5, last_batch_handle="roll_over")
    batches = []
    for _ in range(3):
        batches += [b.data[0].asnumpy().tolist() for b in it]
        it.reset()
    assert batches == [[0, 1, 0, 1, 0]]


def test_pad_of_several_rounds():
    it = NDArrayIter(np.arange(3), batch_size=8)
    batch = next(it)
    assert batch.data[0].asnumpy().tolist() == [0, 1, 2, 0, 1, 2, 0, 1] and batch.pad == 5


def test_by_pieces():
    it = NDArrayIter(np.arange(5), batch_size=3)
    assert it.iter_next()
    assert it.getdata()[0].asnumpy().tolist() == [0, 1, 2] and it.getlabel() == [] and it.getpad() == 0 and it.getindex() is None
    assert it.iter_next() and it.getpad() == 1
    assert not it.iter_next()
    with pytest.raises(MXNetError, match="at the end of its data, at example 6 of 5; call reset"):
        it.getdata()
    assert (it.cursor, it.num_source, it.num_data) == (6, 1, 5)


def test_names_and_types():
    data, label = {"b": np.zeros((4, 2)), "a": mx.nd.zeros((4, 3), dtype="int32")}, [np.zeros(4), np.zeros((4, 1))]
    it = NDArrayIter(data, label, batch_size=2)
    assert str(it.provide_data) == "[DataDesc[a,(2, 3),<class 'numpy.int32'>,NCHW], DataDesc[b,(2, 2),<class 'numpy.float32'>,NCHW]]"
    assert [d.name for d in it.provide_label] == ["_0_softmax_label", "_1_softmax_label"]
    assert NDArrayIter(np.zeros(3), data_name="x").provide_data == [("x", (1,))]


def test_layout():
    it = NDArrayIter(np.arange(24).reshape(2, 4, 3), np.arange(8).reshape(2, 4), batch_size=3, layout="TNC")
    assert it.provide_data == [("data", (2, 3, 3))] and it.num_data == 4
    first, last = it
    assert first.label[0].asnumpy().tolist() == [[0, 1, 2], [4, 5, 6]]
    assert last.label[0].asnumpy().tolist() == [[3, 0, 1], [7, 4, 5]] and last.pad == 2


def test_shuffle_in_mxnets_order():
    np.random.seed(3)
    it = NDArrayIter(np.arange(6), np.arange(6) * 10, batch_size=3, shuffle=True)
    assert it.idx.tolist() == [3, 5, 4, 1, 0, 2]
    first = epoch(it)
    assert first == [([3, 5, 4], [30, 50, 40], 0), ([1, 0, 2], [10, 0, 20], 0)]
    it.reset()
    # What MXNet 1.9.1 gives after the same seed.
    assert [b[0] for b in epoch(it)] == [[4, 3, 2], [0, 5, 1]]


def test_shuffled_examples_roll_over():
    it = NDArrayIter(np.arange(5), np.arange(5) * 10, batch_size=2, shuffle=True, last_batch_handle="roll_over")
    first = epoch(it)
    it.reset()
    second = epoch(it)
    seen = [x for data, _, _ in first for x in data]
    assert second[0][0][0] == ({0, 1, 2, 3, 4} - set(seen)).pop() and second[0][2] == 1
    assert all(label == [x * 10 for x in data] for data, label, _ in first + second)


def test_a_batch_can_be_changed_without_changing_the_data():
    data = mx.nd.zeros((4, 2))
    batch = next(NDArrayIter(data, batch_size=2))
    batch.data[0][:] = 7
    assert data.asnumpy().sum() == 0


def test_sparse():
    dense = np.arange(12).reshape(6, 2) % 5
    csr = mx.nd.array(dense).tostype("csr")
    it = NDArrayIter({"x": csr}, dense[:, 0], batch_size=4, last_batch_handle="discard")
    batch, = it
    assert batch.data[0].stype == "csr" and (batch.data[0].asnumpy() == dense[:4]).all()
    shuffled, = NDArrayIter({"x": csr}, np.arange(6), batch_size=4, shuffle=True, last_batch_handle="discard")
    assert shuffled.data[0].stype == "csr"
    assert (shuffled.data[0].asnumpy() == dense[shuffled.label[0].asnumpy().astype(int)]).all()
    with pytest.raises(NotImplementedError, match="csr arrays need last_batch_handle='discard', received 'pad'"):
        NDArrayIter({"x": csr}, batch_size=4)


def test_invalid():
    with pytest.raises(TypeError, match="received str"):
        NDArrayIter("abc")
    with pytest.raises(TypeError, match="Invalid type '<class 'str'>' for a"):
        NDArrayIter({"a": "xyz"})
    with pytest.raises(MXNetError, match="`data` holds no array"):
        NDArrayIter([])
    with pytest.raises(MXNetError, match="softmax_label has 4 examples and data has 5"):
        NDArrayIter(np.zeros((5, 2)), np.zeros(4))
    with pytest.raises(MXNetError, match="last_batch_handle must be one of"):
        NDArrayIter(np.zeros(3), last_batch_handle="keep")
    with pytest.raises(MXNetError, match="batch_size must be at least 1, received 0"):
        NDArrayIter(np.zeros(3), batch_size=0)
    with pytest.raises(MXNetError, match="places the examples on axis 1, which data of shape"):
        NDArrayIter(np.zeros(3), layout="TN")


def test_parts_that_programs_override_or_call():
    it = mx.io.NDArrayIter(mx.nd.arange(10).reshape((5, 2)), mx.nd.arange(5), 2)

    def values(arrays):
        return [x.asnumpy().tolist() for x in arrays]

    part = it._getdata
    assert values(part(it.data, 1, 3)) == [[[2, 3], [4, 5]]] and values(part(it.label, end=2)) == [[0, 1]] and values(part(it.label, 3)) == [[3, 4]]
    assert values(it._concat(part(it.label, 0, 1), part(it.label, 3, 4))) == [[0, 3]] and it._concat([], [1]) == it._concat([1], []) == [1]
    assert values(it._tile(part(it.label, 0, 2), 2)) == [[0, 1, 0, 1]] and it._tile([], 3) == []
    it.next()
    assert values(it._batchify(it.data)) == [[[0, 1], [2, 3]]]


@pytest.fixture
def stored(tmp_path):
    """Seven examples in an HDF5 file: data (7, 2) and labels."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data"], file["label"] = np.arange(14, dtype="float32").reshape(7, 2), np.arange(7, dtype="int32")
        yield file


@pytest.mark.parametrize(("handle", "expected"), [
    ("pad", [([0, 2, 4], 0), ([6, 8, 10], 0), ([12, 0, 2], 2), "|", ([0, 2, 4], 0), ([6, 8, 10], 0), ([12, 0, 2], 2), "|"]),
    ("discard", [([0, 2, 4], 0), ([6, 8, 10], 0), "|", ([0, 2, 4], 0), ([6, 8, 10], 0), "|"]),
    ("roll_over", [([0, 2, 4], 0), ([6, 8, 10], 0), "|", ([12, 0, 2], 1), ([4, 6, 8], 0), "|"]),
])
def test_files_of_h5py(stored, handle, expected):
    it, found = mx.io.NDArrayIter(stored["data"], stored["label"], 3, last_batch_handle=handle), []
    for _ in range(2):
        for batch in it:
            first = batch.data[0].asnumpy()[:, 0].tolist()
            assert [2 * label for label in batch.label[0].asnumpy().tolist()] == first
            found.append((first, batch.pad))
        found.append("|")
        it.reset()
    assert found == expected


def test_shuffled_files_of_h5py_are_in_mxnets_order(stored):
    np.random.seed(3)
    it = mx.io.NDArrayIter(stored["data"], stored["label"], 3, shuffle=True, last_batch_handle="discard")
    epochs = []
    for _ in range(2):
        epochs.append([batch.label[0].asnumpy().tolist() for batch in it])
        it.reset()
    assert epochs == [[[4, 6, 5], [3, 1, 0]], [[2, 1, 6], [5, 3, 0]]]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
def test_an_epoch_goes_on_where_its_state_was_asked_for(shuffle, handle):
    def iterator():
        return mx.io.NDArrayIter(np.arange(11), np.arange(11), batch_size=4, shuffle=shuffle, last_batch_handle=handle)

    it, states, seen = iterator(), [], []
    for _ in range(2):
        for batch in it:
            seen.append((batch.data[0].asnumpy().tolist(), batch.pad))
            states.append(json.loads(json.dumps(it.state())))
        np.random.seed(len(seen))
        it.reset()
    for place in range(len(seen) // 2):
        again = iterator()
        again.load_state(states[place])
        rest = [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in again]
        assert rest and rest == seen[place + 1:place + 1 + len(rest)] or place + 1 == len(seen) // 2
    with pytest.raises(mx.MXNetError, match=f"an NDArrayIter over 11 examples with shuffle={shuffle} returned is expected"):
        it.load_state({"cursor": 1, "rest": [], "idx": [0], "order": [0]})


def test_shuffled_rows_of_csr_arrays_stay_sparse(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)  # no dependency
    dense = np.zeros((7, 6), "float32")
    dense[[0, 0, 2, 3, 3, 3, 6], [1, 4, 0, 1, 2, 5, 3]] = range(1, 8)
    np.random.seed(5)
    it = mx.io.NDArrayIter({"x": mx.nd.array(dense).tostype("csr")}, np.arange(7), 3, shuffle=True, last_batch_handle="discard")
    seen = []
    for batch in it:
        assert batch.data[0].stype == "csr"
        batch.data[0].check_format(True)
        rows = batch.label[0].asnumpy().astype(int)
        assert np.array_equal(batch.data[0].asnumpy(), dense[rows])
        seen += rows.tolist()
    assert len(set(seen)) == 6
