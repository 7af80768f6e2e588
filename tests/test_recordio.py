import gc
import os
import pickle
import struct
import subprocess
import threading

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import files
from mxnet.base import MXNetError
from mxnet.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, pack_img, unpack, unpack_img

M = struct.pack("<I", 0xced7230a)
RECORDS = [b"", b"a", b"abcde", M, M + M, b"x" + M, b"abcd" + M + b"efgh", M + b"z", b"abcd" + M + M + b"ij"]
# What MXNet 1.9.1 writes for RECORDS.
WRITTEN = bytes.fromhex(
    "0a23d7ce00000000" "0a23d7ce0100000061000000" "0a23d7ce050000006162636465000000" "0a23d7ce000000200a23d7ce00000060"
    "0a23d7ce000000200a23d7ce000000400a23d7ce00000060" "0a23d7ce05000000780a23d7ce000000"
    "0a23d7ce04000020616263640a23d7ce0400006065666768" "0a23d7ce000000200a23d7ce010000607a000000"
    "0a23d7ce04000020616263640a23d7ce000000400a23d7ce02000060696a0000")
OFFSETS = [0, 8, 20, 36, 52, 76, 92, 116, 136]


@pytest.fixture
def rec(tmp_path):
    path = tmp_path / "some.rec"
    path.write_bytes(WRITTEN)
    return path


@pytest.fixture
def indexed(tmp_path, rec):
    index = tmp_path / "some.idx"
    index.write_text("".join(f"{i}\t{offset}\n" for i, offset in enumerate(OFFSETS)))
    return index, rec


def read_all(path):
    reader = MXRecordIO(path, "r")
    return list(iter(reader.read, None))


def test_writes_the_bytes_that_mxnet_writes(tmp_path):
    with MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as writer:
        tells = []
        for i, record in enumerate(RECORDS):
            tells.append(writer.tell())
            writer.write_idx(i, record)
    assert (tmp_path / "a.rec").read_bytes() == WRITTEN
    assert tells == OFFSETS
    assert (tmp_path / "a.idx").read_text() == "".join(f"{i}\t{offset}\n" for i, offset in enumerate(OFFSETS))


def test_reads_what_mxnet_wrote(rec):
    assert read_all(rec) == RECORDS


def test_read_after_the_end_and_reset(rec):
    reader = MXRecordIO(str(rec), "r")
    list(iter(reader.read, None))
    assert reader.read() is None
    reader.reset()
    assert reader.read() == b""


def test_records_in_any_order(indexed):
    reader = MXIndexedRecordIO(*indexed, "r")
    assert reader.keys == list(range(9))
    assert reader.idx[3] == 36
    assert [reader.read_idx(i) for i in reversed(range(9))] == RECORDS[::-1]
    reader.seek(2)
    assert [reader.read(), reader.read()] == RECORDS[2:4]


def test_key_type(tmp_path):
    with MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w", key_type=str) as writer:
        writer.write_idx(7, b"seven")
    assert MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r", key_type=str).read_idx("7") == b"seven"


def test_read_idx_from_several_threads(indexed):
    reader = MXIndexedRecordIO(*indexed, "r")
    wrong = []

    def work():
        for _ in range(200):
            for i in range(9):
                if reader.read_idx(i) != RECORDS[i]:
                    wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_pickled_reader_opens_its_files_again(indexed):
    reader = MXIndexedRecordIO(*indexed, "r")
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.read_idx(6) == RECORDS[6] and reader.read_idx(1) == b"a"


def test_pickling_a_writer_is_refused(tmp_path):
    writer = MXRecordIO(tmp_path / "a.rec", "w")
    with pytest.raises(MXNetError, match="cannot be pickled"):
        pickle.dumps(writer)


def _in_child(work):
    """What `work` returns in a forked process, as text."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return text


def test_forked_process(indexed):
    reader = MXIndexedRecordIO(*indexed, "r")
    assert _in_child(lambda: reader.read_idx(2)) == str(b"abcde")
    assert _in_child(reader.read).startswith("RuntimeError: Forbidden operation in multiple processes")
    assert reader.read_idx(1) == b"a"


def test_forked_process_does_not_write_the_parents_records_twice(tmp_path):
    writer = MXRecordIO(tmp_path / "a.rec", "w")
    writer.write(b"once")
    assert _in_child(writer.close) == "None"
    writer.close()
    assert read_all(tmp_path / "a.rec") == [b"once"]


def test_invalid_use(tmp_path, rec):
    with pytest.raises(ValueError, match="Invalid flag a"):
        MXRecordIO(rec, "a")
    with pytest.raises(MXNetError, match=r"cannot open .*nope.rec: No such file"):
        MXRecordIO(tmp_path / "nope.rec", "r")
    with pytest.raises(MXNetError, match="open for reading"):
        MXRecordIO(rec, "r").write(b"a")
    with pytest.raises(MXNetError, match="open for writing"):
        MXRecordIO(tmp_path / "b.rec", "w").read()
    with pytest.raises(TypeError, match="received str"):
        MXRecordIO(tmp_path / "b.rec", "w").write("abc")
    closed = MXRecordIO(rec, "r")
    closed.close()
    with pytest.raises(MXNetError, match="is closed"):
        closed.read()


@pytest.mark.parametrize("damaged, message", [
    (WRITTEN[:12], r"truncated RecordIO file: 4 of the 8 bytes of a record's header at offset 8"),
    (WRITTEN[:18], r"the part at offset 8 should have 4 bytes and the file ends after 2"),
    (WRITTEN[:8] + b"\0" * 20, r"expected the magic number 0a23d7ce at offset 8, found 00000000"),
    (M + struct.pack("<I", (1 << 29) - 1) + b"abc", r"offset 0 should have 536870912 bytes and the file ends after 3"),
    (M + struct.pack("<I", 3 << 29), r"a part of kind 3 at offset 0 where a record should start"),
    (M + struct.pack("<I", 1 << 29) + M + struct.pack("<I", 0), r"a part of kind 0 at offset 8 inside the record that starts at offset 0"),
    (M + struct.pack("<I", 1 << 29), r"truncated RecordIO file: 0 of the 8 bytes"),
])
def test_damaged_files(tmp_path, damaged, message):
    (tmp_path / "bad.rec").write_bytes(damaged)
    with pytest.raises(MXNetError, match=message) as caught:
        read_all(tmp_path / "bad.rec")
    assert "bad.rec" in str(caught.value)


@pytest.mark.parametrize("content, message", [
    ("0\t0\nx\t8\n", r"bad.idx, line 2: expected a key, a tab and an offset in bytes, found 'x\\t8'"),
    ("0\n", r"bad.idx, line 1"),
    ("0\t-4\n", r"bad.idx, line 1"),
])
def test_damaged_index(tmp_path, rec, content, message):
    (tmp_path / "bad.idx").write_text(content)
    with pytest.raises(MXNetError, match=message):
        MXIndexedRecordIO(tmp_path / "bad.idx", rec, "r")


def test_index_that_does_not_fit(tmp_path, rec):
    (tmp_path / "a.idx").write_text("0\t10\n1\t5000\n\n")
    reader = MXIndexedRecordIO(tmp_path / "a.idx", rec, "r")
    with pytest.raises(MXNetError, match="at offset 10, found .* its index belongs to another file"):
        reader.read_idx(0)
    with pytest.raises(MXNetError, match="ends before offset 5000"):
        reader.read_idx(1)
    with pytest.raises(KeyError, match="no record with key 99"):
        reader.read_idx(99)
    with pytest.raises(MXNetError, match=r"cannot open .*nope.idx"):
        MXIndexedRecordIO(tmp_path / "nope.idx", rec, "r")


def test_too_long_record(tmp_path, monkeypatch):
    monkeypatch.setattr("mxnet.recordio._LENGTH_MASK", 10)
    with pytest.raises(MXNetError, match=r"less than 2\*\*29 bytes, received one of 11"):
        MXRecordIO(tmp_path / "a.rec", "w").write(b"x" * 11)


def test_pack_one_label():
    packed = pack(IRHeader(3, np.float32(2.5), 7, 1), b"xyz")
    assert packed == bytes.fromhex("00000000" "00002040" "0700000000000000" "0100000000000000") + b"xyz"
    assert unpack(packed) == (IRHeader(0, 2.5, 7, 1), b"xyz")


def test_pack_several_labels():
    packed = pack((0, [1, 2], 1, 0), b"xyz")
    assert packed == bytes.fromhex("02000000" "00000000" "0100000000000000" "0000000000000000" "0000803f00000040") + b"xyz"
    header, content = unpack(packed)
    assert header.flag == 2 and header.label.tolist() == [1, 2] and header.label.dtype == np.float32 and content == b"xyz"
    assert repr(IRHeader(0, 1, 2, 3)) == "HEADER(flag=0, label=1, id=2, id2=3)"
    assert pickle.loads(pickle.dumps(IRHeader(0, 1, 2, 3))) == (0, 1, 2, 3)


def test_unpack_too_short():
    with pytest.raises(MXNetError, match="a header of 24 bytes, received 3"):
        unpack(b"abc")
    with pytest.raises(MXNetError, match="announces 5 labels, which need 44 bytes; it has 28"):
        unpack(struct.pack("<IfQQ", 5, 0, 0, 0) + b"1234")


def test_images():
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    header, decoded = unpack_img(pack_img((0, 3, 1, 0), image, img_fmt=".png"))
    assert header.label == 3 and (decoded == image).all()
    assert unpack_img(pack_img((0, 3, 1, 0), image), iscolor=0)[1].shape == (4, 5)
    assert len(pack_img((0, 3, 1, 0), image, quality=5)) < len(pack_img((0, 3, 1, 0), image, quality=100))
    assert unpack_img(pack((0, 1, 1, 0), b"garbage"))[1] is None
    with pytest.raises(MXNetError, match="cannot encode .* as .foo"):
        pack_img((0, 3, 1, 0), image, img_fmt=".foo")


def test_public_names():
    assert mx.recordio.MXRecordIO is MXRecordIO and mx.recordio.IRHeader is IRHeader


def _records(path):
    with MXRecordIO(path, "r") as reader:
        return list(iter(reader.read, None))


def test_what_is_written_takes_its_place_when_it_is_complete(tmp_path):
    path = tmp_path / "a.rec"
    for content in (b"1", b"2"):
        writer = MXRecordIO(path, "w")
        writer.write(content)
        assert _records(path) == [content]  # this process sees it
        assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["a.rec"] * (content == b"2")
        if content == b"1":
            writer.close()
            writer.close()
        else:
            del writer  # as programs do that count on the end of the object
        assert os.listdir(tmp_path) == ["a.rec"] and _records(path) == [content]
    with pytest.raises(ZeroDivisionError), MXRecordIO(path, "w") as writer:
        writer.write(b"3")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["a.rec"] and _records(path) == [b"2"]
    writer = MXRecordIO(path, "w")
    writer.write(b"4")
    writer.reset()
    assert _records(path) == []
    writer.write(b"5")
    writer.close()
    assert _records(path) == [b"5"]


def test_an_error_before_the_first_record_leaves_what_was_there(tmp_path, monkeypatch):
    base = str(tmp_path / "a")
    with MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "w") as writer:
        writer.write_idx(0, b"old")
    del writer

    def interrupt(*_):
        raise KeyboardInterrupt

    begin = files.begin
    for what, value in (("mxnet.recordio.MXRecordIO.__enter__", interrupt),
                        ("mxnet.recordio.begin", lambda path: interrupt() if path.endswith("idx") else begin(path))):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(what, value)
            with MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "w"):
                pass
        gc.collect()
        assert _records(f"{base}.rec") == [b"old"] and sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec"]


def test_records_and_index_take_their_places_together(tmp_path):
    base = str(tmp_path / "a")
    for count in (3, 5):
        writer = MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "w")
        for i in range(count):
            writer.write_idx(i, b"%d" % (i * count))
        writer.close()
        with MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "r") as reader:
            assert [reader.read_idx(i) for i in reader.keys] == [b"%d" % (i * count) for i in range(count)]
    with pytest.raises(ValueError), MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "w") as writer:
        raise ValueError
    assert sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec"] and len(_records(f"{base}.rec")) == 5
    with pytest.raises(MXNetError, match="cannot write .*folder/a.idx"):
        MXIndexedRecordIO(str(tmp_path / "folder" / "a.idx"), f"{base}.rec", "w")
    assert sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec"]


@pytest.mark.parametrize("end, expected", [("", [b"new"]), ("1 / 0", [b"old"]), ("os._exit(0)", [b"old"])])
def test_the_end_of_a_program_is_the_end_of_its_files(tmp_path, end, expected):
    path = tmp_path / "a.rec"
    with MXRecordIO(path, "w") as writer:
        writer.write(b"old")
    program = f"import os, sys, mxnet as mx\nw = mx.recordio.MXRecordIO({str(path)!r}, 'w')\nw.write(b'new')\n{end}"
    subprocess.run([*python(), "-c", program], stderr=subprocess.DEVNULL, timeout=120)
    assert _records(path) == expected


def test_errors_say_which_record_it_is(tmp_path):
    base = str(tmp_path / "a")
    with mx.recordio.MXIndexedRecordIO(base + ".idx", base + ".rec", "w") as out:
        for i in range(4):
            out.write_idx(10 * i, b"some text")
    with open(base + ".rec", "r+b") as f:
        f.seek(40)
        f.write(b"xxxx")
    with mx.recordio.MXRecordIO(base + ".rec", "r") as records:
        for _ in range(2):
            assert [records.read(), records.read()] == [b"some text"] * 2
            with pytest.raises(mx.MXNetError, match="a.rec: invalid RecordIO file: .* at offset 40, .*; it is record 2 of the file, counted from 0"):
                records.read()
            records.reset()
    with mx.recordio.MXIndexedRecordIO(base + ".idx", base + ".rec", "r") as records:
        with pytest.raises(mx.MXNetError, match="at offset 40, .*another file; .*a.idx places the record with key 20 at offset 40$"):
            records.read_idx(20)
        assert records.read_idx(30) == b"some text"


def test_a_file_that_becomes_shorter(tmp_path):
    path = str(tmp_path / "a.rec")
    with mx.recordio.MXRecordIO(path, "w") as out:
        for _ in range(100):
            out.write(b"x" * 10_000)
    with mx.recordio.MXRecordIO(path, "r") as records:
        records.read()
        with open(path, "r+b") as f:
            f.truncate(510_000)
        with pytest.raises(mx.MXNetError, match="a.rec: truncated RecordIO file: .*; it is record 50 of the file"):
            while True:
                records.read()
