import os

import pytest

from mxnet.base import MXNetError
from mxnet.recordio import MXIndexedRecordIO, MXRecordIO
from mxnet.tools import rec2idx


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "a.rec")
    with MXRecordIO(name, "w") as out:
        for i in range(3):
            out.write(b"x" * (3 + 5 * i))
    return name


def test_what_mxnet_writes(path, tmp_path, capsys):
    """MXNet 1.9.1's rec2idx.py gives these lines for such a file."""
    index = str(tmp_path / "a.idx")
    assert rec2idx.main([path, index]) == 0
    with open(index) as f:
        assert f.read() == "0\t0\n1\t12\n2\t28\n"
    assert capsys.readouterr().out == f"Wrote {index} with 3 records\n"
    assert MXIndexedRecordIO(index, path, "r").read_idx(2) == b"x" * 13


def test_damage_leaves_the_old_index(path, tmp_path, capsys):
    index = tmp_path / "a.idx"
    index.write_text("old")
    with open(path, "r+b") as f:
        f.truncate(40)
    with pytest.raises(MXNetError, match="a.rec: truncated RecordIO file: the part at offset 28"):
        rec2idx.make_index(path, str(index))
    assert rec2idx.main([path, str(index)]) == 1 and "mxnet.tools.rec finds and repairs" in capsys.readouterr().err
    assert rec2idx.main([str(tmp_path / "none.rec"), str(index)]) == 1
    assert index.read_text() == "old" and sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec"]


def test_ctrl_c_leaves_the_old_index(path, tmp_path, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(rec2idx.RecordReader, "next", interrupted)
    assert rec2idx.main([path, str(tmp_path / "a.idx")]) == 130
    assert os.listdir(tmp_path) == ["a.rec"]
