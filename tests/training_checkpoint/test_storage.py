import json
import pickle

import pytest
import torch

from mxnet import MXNetError
from mxnet.training_checkpoint import shard_file, storage
from mxnet.training_checkpoint.entries import Entry


def _pieces(*pieces, shape=(10,)):
    return Entry(shape, torch.float32, [(begin, torch.arange(begin, end, dtype=torch.float32)) for begin, end in pieces])


def _saved(folder, *parts):
    storage.accept_single_process()
    paths = [str(folder / f"{i}") for i in range(len(parts))]
    return paths, [storage.save(path, part, {"rank": str(i)}) for i, (path, part) in enumerate(zip(paths, parts))]


def test_pieces_of_any_division_are_read_into_those_of_another(tmp_path):
    paths, sizes = _saved(tmp_path, {"x": _pieces((0, 3)), "one": _pieces((0, 1), shape=())}, {"x": _pieces((3, 7), (7, 10))})
    checkpoint = storage.Checkpoint(paths, sizes)
    assert checkpoint.shapes == {"x": (10,), "one": ()} and checkpoint.about == [{"rank": "0"}, {"rank": "1"}]
    target = {"x": Entry((10,), torch.float32, [(1, torch.zeros(4)), (5, torch.zeros(5))]), "one": Entry((), torch.float32, [(0, torch.ones(1))])}
    checkpoint.load(target)
    assert [tensor.tolist() for _, tensor in target["x"].pieces] == [[1, 2, 3, 4], [5, 6, 7, 8, 9]] and target["one"].pieces[0][1].tolist() == [0]


@pytest.mark.parametrize("parts, text", [
    ([{"x": _pieces((0, 3), (4, 10))}], "does not have each of the elements 0 to 10 of 'x' once"),
    ([{"x": _pieces((0, 5))}, {"x": _pieces((4, 10))}], "does not have each of the elements 0 to 10 of 'x' once"),
    ([{"x": _pieces((0, 10), shape=(2, 5))}], r"'x': an array of shape \(10,\) and torch.float32 expected, the checkpoint has \(2, 5\) and torch"),
    ([{"y": _pieces((0, 10))}], "the checkpoint lacks 'x'"),
])
def test_what_does_not_fit_changes_nothing(tmp_path, parts, text):
    checkpoint = storage.Checkpoint(*_saved(tmp_path, *parts))
    target = torch.full((10,), 7.0)
    with pytest.raises(MXNetError, match=text):
        checkpoint.load({"x": Entry((10,), torch.float32, [(0, target)])})
    assert target.tolist() == [7] * 10


def test_files_that_contradict_one_another(tmp_path):
    with pytest.raises(MXNetError, match="'x' has several shapes or types"):
        storage.Checkpoint(*_saved(tmp_path, {"x": _pieces((0, 5))}, {"x": _pieces((5, 10), shape=(2, 5))}))


@pytest.mark.parametrize("entries", ["{", '{"a": {}}', '{"x": {"name": "x", "begin": 0, "shape": [2]}}',
                                     '{"x": {"name": "x", "begin": -4, "shape": [4]}}',
                                     '{"x": {"name": 3, "begin": 0, "shape": [4]}}', '{"x": {"name": "x", "begin": 0, "shape": [' + "9" * 30 + "]}}"])
def test_damaged_pieces(tmp_path, entries):
    path = str(tmp_path / "a")
    size = shard_file.write(path, [("x", (4,), torch.zeros(4))], {"entries": entries})
    with pytest.raises(MXNetError, match="a is damaged: "):
        storage.Checkpoint([path], [size])


def test_nothing_is_unpickled(tmp_path, monkeypatch):
    paths, sizes = _saved(tmp_path, {"x": _pieces((0, 10))})

    def refuse(*args, **kwargs):
        raise AssertionError("unpickled")
    for module, name in (pickle, "loads"), (pickle, "load"), (pickle, "Unpickler"), (torch, "load"):
        monkeypatch.setattr(module, name, refuse)
    target = torch.zeros(10)
    storage.Checkpoint(paths, sizes).load({"x": Entry((10,), torch.float32, [(0, target)])})
    assert target.tolist() == list(range(10))


def test_a_file_that_ends_while_it_is_read(tmp_path):
    path = str(tmp_path / "a")
    size = shard_file.write(path, [("x", (4,), torch.zeros(4))], {"entries": json.dumps({"x": {"name": "x", "begin": 0, "shape": [4]}})})
    checkpoint = storage.Checkpoint([path], [size])
    with open(path, "r+b") as file:
        file.truncate(size - 4)
    with pytest.raises(MXNetError, match="a is damaged: it ends early"):
        checkpoint.load({"x": Entry((4,), torch.float32, [(0, torch.ones(4))])})
