import pytest

from mxnet.base import MXNetError
from mxnet.io.record_source import IndexedRecords, SequentialRecords
from mxnet.recordio import MAGIC, MXIndexedRecordIO, RecordReader


@pytest.fixture
def rec(tmp_path):
    """20 records, some of which contain the magic number; the index is beside the file."""
    writer = MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w")
    for i in range(20):
        writer.write_idx(i, b"%03d" % i + b"x" * i + b"\0" * (1 + -i % 4) + MAGIC * (i % 3) + b"end")
    writer.close()
    return str(tmp_path / "a.rec")


def sequential(uri, part=0, parts=1, shuffle=False, seed=0, chunk=0, chunk_seed=0):
    return SequentialRecords(uri, part, parts, shuffle, seed, chunk, chunk_seed)


def indexed(path, part=0, parts=1, shuffle=False, seed=0):
    return IndexedRecords(path, path[:-3] + "idx", part, parts, shuffle, seed)


def numbers(source, number=0):
    return [int(payload[:3]) for _, payload in source.records(number)]


@pytest.mark.parametrize("make", [sequential, indexed])
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 30])
def test_every_record_is_in_one_part(rec, make, parts):
    assert [i for part in range(parts) for i in numbers(make(rec, part, parts))] == list(range(20))


def test_parts_of_an_index_are_even(rec):
    assert [len(numbers(indexed(rec, part, 3))) for part in range(3)] == [7, 7, 6]


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_several_files(rec, tmp_path, parts):
    (tmp_path / "b.rec").write_bytes((tmp_path / "a.rec").read_bytes())
    uri = f"{rec};{tmp_path}/b.rec"
    assert [i for part in range(parts) for i in numbers(sequential(uri, part, parts))] == list(range(20)) * 2


@pytest.mark.parametrize("make", [sequential, indexed])
def test_shuffling(rec, make):
    source = make(rec, shuffle=True, seed=3)
    first, second = numbers(source), numbers(source, 1)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second != list(range(20)) != first
    assert first == numbers(make(rec, shuffle=True, seed=3)) != numbers(make(rec, shuffle=True, seed=4))


def test_shuffling_in_chunks(rec, monkeypatch):
    source = sequential(rec, shuffle=True, chunk=1)
    assert (source.pieces, source.buffer) == (1, 1 << 20)
    source.pieces, source.buffer = 4, 100
    order = numbers(source)
    assert sorted(order) == list(range(20)) and order != numbers(source, 1)


def test_chunks_need_shuffle(rec):
    assert numbers(sequential(rec, chunk=1)) == list(range(20))


def test_places_name_file_and_offset(rec):
    places = [place for place, _ in sequential(rec).records(0)]
    assert places[0] == f"{rec}, the record at offset 0"
    assert places == [place for place, _ in indexed(rec).records(0)]


def test_truncated(rec, tmp_path):
    content = (tmp_path / "a.rec").read_bytes()
    (tmp_path / "a.rec").write_bytes(content[:-30])
    with pytest.raises(MXNetError, match=r"a.rec: truncated RecordIO file"):
        numbers(sequential(rec))
    (tmp_path / "a.rec").write_bytes(content[:200])
    with pytest.raises(MXNetError, match=r"a.idx places a record at offset \d+, and .*a.rec has 200 bytes; the file is truncated"):
        indexed(rec)


def test_index_of_several_files(rec, tmp_path):
    with pytest.raises(MXNetError, match="an index belongs to one RecordIO file"):
        IndexedRecords(f"{rec};{rec}", str(tmp_path / "a.idx"), 0, 1, False, 0)


@pytest.mark.parametrize("make", [sequential, indexed])
def test_a_part_does_not_read_the_others(tmp_path, monkeypatch, make):
    path = tmp_path / "wide.rec"
    writer = MXIndexedRecordIO(tmp_path / "wide.idx", path, "w")
    for i in range(32):
        writer.write_idx(i, bytes([i]) * 99_992)  # 100,000 bytes in the file
    writer.close()
    places, read_at = [], RecordReader.read_at

    def watched(self, offset, length):
        places.append(offset)
        return read_at(self, offset, length)

    monkeypatch.setattr(RecordReader, "read_at", watched)
    assert [payload[0] for _, payload in make(str(path), 2, 4).records(0)] == list(range(16, 24))
    assert 1_600_000 <= min(places) and max(places) < 2_400_000
