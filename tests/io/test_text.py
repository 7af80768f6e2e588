import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.io import text
from mxnet.io.text import blocks_of_lines


def epoch(it):
    return [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in it]


@pytest.fixture
def csv(tmp_path):
    (tmp_path / "d.csv").write_text("1,2,3\n2,3,4\n3,4,5\n4,5,6\n")
    (tmp_path / "l.csv").write_text("1\n2\n3\n4\n")
    return str(tmp_path / "d.csv"), str(tmp_path / "l.csv")


def test_csv_rounds(csv):
    it = mx.io.CSVIter(data_csv=csv[0], data_shape=(3,), batch_size=3, label_csv=csv[1])
    assert it.provide_data == [("data", (3, 3))] and it.provide_label == [("softmax_label", (3,))]
    assert epoch(it) == [([[1, 2, 3], [2, 3, 4], [3, 4, 5]], [1, 2, 3], 0), ([[4, 5, 6], [1, 2, 3], [2, 3, 4]], [4, 1, 2], 2)]
    it.reset()
    assert epoch(it) == [([[3, 4, 5], [4, 5, 6], [1, 2, 3]], [3, 4, 1], 1)]
    it.reset()
    assert epoch(it) == [([[2, 3, 4], [3, 4, 5], [4, 5, 6]], [2, 3, 4], 0)]


def test_csv_without_rounding(csv):
    it = mx.io.CSVIter(data_csv=csv[0], data_shape=(3,), batch_size=3, round_batch=False)
    for _ in range(2):
        assert epoch(it) == [([[1, 2, 3], [2, 3, 4], [3, 4, 5]], [0, 0, 0], 0), ([[4, 5, 6], [2, 3, 4], [3, 4, 5]], [0, 0, 0], 2)]
        it.reset()


def test_csv_shapes_and_types(csv):
    it = mx.io.CSVIter(data_csv=csv[0], data_shape=(3, 1), label_csv=csv[0], label_shape=(3,), batch_size=2, dtype="int64")
    assert it.provide_data == [("data", (2, 3, 1))] and it.provide_label == [("softmax_label", (2, 3))]
    assert it.provide_data[0].dtype == np.int64
    assert next(it).index.tolist() == [0, 1]


def test_csv_of_large_integers(tmp_path):
    (tmp_path / "d.csv").write_text("2147483648,9007199254740993\n")
    it = mx.io.CSVIter(data_csv=str(tmp_path / "d.csv"), data_shape=(2,), batch_size=1, dtype="int64")
    assert next(it).data[0].asnumpy().tolist() == [[2147483648, 9007199254740993]]


def test_csv_folder(tmp_path, csv):
    (tmp_path / "both").mkdir()
    for name in ("a", "b"):
        (tmp_path / "both" / name).write_text(f"{ord(name)}\n\n")
    assert epoch(mx.io.CSVIter(data_csv=str(tmp_path / "both"), data_shape=(1,), batch_size=2)) == [([[97], [98]], [0, 0], 0)]


def test_csv_errors(csv, tmp_path):
    def read(content, **kwargs):
        (tmp_path / "x.csv").write_text(content)
        return list(mx.io.CSVIter(data_csv=str(tmp_path / "x.csv"), **{"data_shape": (2,), "batch_size": 1, **kwargs}))

    with pytest.raises(MXNetError, match=r"x.csv, line 1: data_shape=\(3,\) asks for 3 numbers, the row has 2"):
        read("1,2\n", data_shape=(3,))
    with pytest.raises(MXNetError, match="x.csv, line 3: .* the row has"):
        read("1,2\n3,4\n5\n")
    with pytest.raises(MXNetError, match="x.csv, line 2: expected numbers of type float32 separated by commas, found '3,x'"):
        read("1,2\n3,x\n")
    with pytest.raises(MXNetError, match="x.csv, line 1: expected numbers of type int32"):
        read("1,2.5\n", dtype="int32")
    with pytest.raises(MXNetError, match="fewer examples than batch_size=3"):
        read("1,2\n", batch_size=3)
    with pytest.raises(MXNetError, match="l.csv has fewer rows than"):
        read("1,2\n" * 5, label_csv=csv[1])
    with pytest.raises(MXNetError, match="float64 is not supported for CSVIter"):
        read("1,2\n", dtype="float64")
    with pytest.raises(MXNetError, match="cannot read nope.csv: No such file"):
        mx.io.CSVIter(data_csv="nope.csv", data_shape=(3,), batch_size=2)


DATA = "1.0 0:0.5 2:1.25\n-2.0\n-3.0 0:0.5 1:2.5 2:1.25 # a comment\n4 2:-1.25\n"
FIRST = [[0.5, 0, 1.25], [0, 0, 0], [0.5, 2.5, 1.25]]


@pytest.fixture
def svm(tmp_path):
    (tmp_path / "d.svm").write_text(DATA)
    (tmp_path / "l.svm").write_text("1.0\n-2.0 0:0.125\n-3.0 2:1.25\n4 1:1.0 2:-1.25\n")
    return str(tmp_path / "d.svm"), str(tmp_path / "l.svm")


def test_libsvm(svm):
    it = mx.io.LibSVMIter(data_libsvm=svm[0], data_shape=(3,), batch_size=3)
    assert it.provide_data == [("data", (3, 3))] and it.provide_label == [("softmax_label", (3,))]
    assert epoch(it) == [(FIRST, [1, -2, -3], 0), ([[0, 0, -1.25], [0.5, 0, 1.25], [0, 0, 0]], [4, 1, -2], 2)]
    it.reset()
    batch = next(it)
    assert batch.data[0].stype == "csr" and batch.label[0].asnumpy().tolist() == [-3, 4, 1]
    batch.data[0].check_format(True)


def test_libsvm_with_labels_from_a_file(svm):
    it = mx.io.LibSVMIter(data_libsvm=svm[0], label_libsvm=svm[1], data_shape=(3,), label_shape=(3,), batch_size=3)
    batch = next(it)
    assert batch.label[0].stype == "csr" and batch.label[0].asnumpy().tolist() == [[0, 0, 0], [0.125, 0, 0], [0, 0, 1.25]]


def test_libsvm_parts(svm):
    parts = [epoch(mx.io.LibSVMIter(data_libsvm=svm[0], data_shape=(3,), batch_size=1, num_parts=2, part_index=i)) for i in range(2)]
    assert [label for part in parts for _, label, _ in part] == [[1], [-2], [-3], [4]] and all(parts)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_labels_of_a_part_are_those_of_its_rows(tmp_path, parts):
    """Half of the bytes of the one file are other rows than half of those of the other."""
    (tmp_path / "d.svm").write_text("".join(f"0 {i}:1" + " 50:1" * (i < 8) + " 51:1.00000000" * (i < 8) + "\n\n" for i in range(40)))
    (tmp_path / "l.svm").write_text("".join(f"0 {i}:1\n" for i in range(40)))
    found = []
    for part in range(parts):
        it = mx.io.LibSVMIter(data_libsvm=str(tmp_path / "d.svm"), label_libsvm=str(tmp_path / "l.svm"), data_shape=(60,), label_shape=(40,),
                              batch_size=1, num_parts=parts, part_index=part)
        found += [(batch.data[0].asnumpy()[0].argmax(), batch.label[0].asnumpy()[0].argmax()) for batch in it]
    assert found == [(i, i) for i in range(40)]


def test_libsvm_errors(svm, tmp_path):
    def read(content, **kwargs):
        (tmp_path / "x.svm").write_text(content)
        return list(mx.io.LibSVMIter(data_libsvm=str(tmp_path / "x.svm"), **{"data_shape": (3,), "batch_size": 1, **kwargs}))

    with pytest.raises(MXNetError, match="x.svm, line 2: columns must be from 0 to 2, found -1 to 1"):
        read("1 0:1\n1 -1:2 1:3\n")
    with pytest.raises(MXNetError, match="columns must be from 0 to 2, found 3 to 3"):
        read("1 3:1\n")
    with pytest.raises(MXNetError, match="the columns must be in ascending order"):
        read("1 2:1 0:1\n")
    with pytest.raises(MXNetError, match="x.svm, line 1: expected a label and column:value pairs, found 'a 0:1'"):
        read("a 0:1\n")
    for kwargs, message in (({"round_batch": False}, "round_batch=False received"), ({"data_shape": (3, 2)}, "dimension of data_shape"),
                            ({"label_shape": (2,)}, "label_shape is expected to be"), ({"label_libsvm": svm[1]}, "is not expected to be"),
                            ({"dtype": "int32"}, "gives float32 arrays"), ({"num_parts": 2, "part_index": 2}, "part_index must be")):
        with pytest.raises(MXNetError, match=message):
            read("1 0:1\n", **kwargs)


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 40])
def test_every_line_belongs_to_one_part(tmp_path, parts):
    (tmp_path / "x").write_text("aa\nb\n\nccccc\ndd\n")
    (tmp_path / "y").write_text("e\nffffffff")
    uri = f"{tmp_path}/x;{tmp_path}/y"
    lines = [line.decode() for i in range(parts) for block in blocks_of_lines(uri, i, parts) for line in block.text[:block.size].split()]
    assert lines == ["aa", "b", "ccccc", "dd", "e", "ffffffff"]


MESSY = b"1 0:1 3:2\n\n  2\t1:.5  # x\r\n3:0.5 qid:9 2\n4 0:1e-300 1:1e30 2:0.1234567890123456789\n 5 0:+1\n-6\n"


@pytest.fixture(params=["kernel", "Python"])
def parser(request, monkeypatch):
    """Both ways of reading text."""
    if request.param == "Python":
        monkeypatch.setattr(text, "sparse", lambda *_: None)
        monkeypatch.setattr(text, "comma_separated", lambda *_: None)


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_messy_lines(tmp_path, monkeypatch, parser, block):
    monkeypatch.setattr(text, "BLOCK", block)
    (tmp_path / "x.svm").write_bytes(MESSY)
    batch, = mx.io.LibSVMIter(data_libsvm=str(tmp_path / "x.svm"), data_shape=(4,), batch_size=6)
    assert batch.label[0].asnumpy().tolist() == [1, 2, 3, 4, 5, -6] and batch.index.tolist() == list(range(6))
    large, long = np.float32([1e30, 0.12345678901234568]).tolist()
    assert batch.data[0].asnumpy().tolist() == [[1, 0, 0, 2], [0, .5, 0, 0], [0, 0, 1, 0], [0, large, long, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    (tmp_path / "x.csv").write_bytes(b"1,2\n\n 3 ,\t4\r\n1e400,-0\n5.,+6\n7,8")
    batch, = mx.io.CSVIter(data_csv=str(tmp_path / "x.csv"), data_shape=(2,), batch_size=5)
    assert batch.data[0].asnumpy().tolist() == [[1, 2], [3, 4], [np.inf, 0], [5, 6], [7, 8]]


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_errors_name_the_line_whatever_the_block(tmp_path, monkeypatch, parser, block):
    monkeypatch.setattr(text, "BLOCK", block)
    (tmp_path / "x.csv").write_bytes(b"1\n\n2\n" * 300 + b"3\nx\n")
    with pytest.raises(MXNetError, match="x.csv, line 902: expected numbers of type float32"):
        list(mx.io.CSVIter(data_csv=str(tmp_path / "x.csv"), data_shape=(1,), batch_size=10))
    (tmp_path / "x.svm").write_bytes(b"1 0:1\n\n" * 300 + b"1 0:1\n1 9:1\n")
    with pytest.raises(MXNetError, match="x.svm, line 602: columns must be from 0 to 8, found 9 to 9"):
        list(mx.io.LibSVMIter(data_libsvm=str(tmp_path / "x.svm"), data_shape=(9,), batch_size=10))
    with pytest.raises(MXNetError, match="x.svm, the line at offset 2106: columns must be from 0 to 8"):
        list(mx.io.LibSVMIter(data_libsvm=str(tmp_path / "x.svm"), data_shape=(9,), batch_size=10, num_parts=2, part_index=1))


def test_a_file_that_becomes_shorter(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 64)
    path = tmp_path / "x.csv"
    path.write_bytes(b"1\n" * 20000)
    blocks = blocks_of_lines(str(path))
    next(blocks)
    with open(path, "r+b") as f:
        f.truncate(20000)
    with pytest.raises(MXNetError, match="x.csv became shorter while it was read: it had 40000 bytes, and ends at offset 20000"):
        list(blocks)


def test_a_batch_shares_no_memory_with_the_next(svm, csv):
    for it in (mx.io.LibSVMIter(data_libsvm=svm[0], data_shape=(3,), batch_size=2), mx.io.CSVIter(data_csv=csv[0], data_shape=(3,), batch_size=2)):
        first, second = it
        before = second.data[0].asnumpy()
        (first.data[0].data if first.data[0].stype == "csr" else first.data[0])[:] = 77
        first.label[0][:] = 77
        assert (second.data[0].asnumpy() == before).all() and (second.label[0].asnumpy() != 77).all()
        it.reset()
        assert (next(it).data[0].asnumpy() != 77).all()


def test_wide_sparse_batches_are_never_dense(tmp_path, monkeypatch):
    """250,000 features and 200,000 outputs: a dense batch would have 230 MB."""
    with open(tmp_path / "d.svm", "w") as data, open(tmp_path / "l.svm", "w") as labels:
        for i in range(300):
            data.write(f"0 {i}:1 {i + 1000}:2 249999:0.5\n")
            labels.write(f"0 {i * 600}:1\n")

    def refuse(self):
        raise AssertionError("it was made dense")

    monkeypatch.setattr(mx.nd.sparse.CSRNDArray, "_dense", refuse)
    weight = mx.nd.ones((250000, 2))
    count = 0
    for batch in mx.io.LibSVMIter(data_libsvm=str(tmp_path / "d.svm"), label_libsvm=str(tmp_path / "l.svm"), data_shape=(250000,),
                                  label_shape=(200000,), batch_size=128):
        data, label = batch.data[0], batch.label[0]
        data.wait_to_read()
        assert data.shape == (128, 250000) and label.shape == (128, 200000) and data.dtype == np.float32
        assert mx.nd.sparse.dot(data, weight).asnumpy().tolist() == [[3.5, 3.5]] * 128
        count += label.data.asnumpy().sum()
    assert count == 384


def test_label_files_that_are_missing(svm, csv):
    with pytest.raises(MXNetError, match="cannot read nope.svm"):
        mx.io.LibSVMIter(data_libsvm=svm[0], data_shape=(3,), label_libsvm="nope.svm", label_shape=(3,), batch_size=2)
    with pytest.raises(MXNetError, match="cannot read nope.csv"):
        mx.io.CSVIter(data_csv=csv[0], data_shape=(3,), label_csv="nope.csv", batch_size=2)
