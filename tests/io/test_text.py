import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.io.text import numbered_lines


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
    lines = [line.strip().decode() for i in range(parts) for _, _, line in numbered_lines(uri, i, parts)]
    assert lines == ["aa", "b", "ccccc", "dd", "e", "ffffffff"]
