import hashlib
import os
import struct
import subprocess

import cv2
import numpy as np
import pytest

from forked import python
from mxnet.base import MXNetError
from mxnet.recordio import MAGIC, IRHeader, MXIndexedRecordIO, MXRecordIO, pack, pack_img
from mxnet.tools import rec

# The third is stored in three parts, at 36, 48 and 60.
RECORDS = [b"first..", b"second.....", b"abcd" + MAGIC + b"efgh" + MAGIC + b"ij", b"", b"the last one"]
OFFSETS = [0, 16, 36, 72, 80]


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "a.rec")
    with MXIndexedRecordIO(str(tmp_path / "a.idx"), name, "w") as out:
        for i, record in enumerate(RECORDS):
            out.write_idx(10 * i, record)
    return name


def damaged(path, change):
    with open(path, "rb") as f:
        content = f.read()
    with open(path, "wb") as f:
        f.write(change(bytearray(content)))
    return path


def put(at, content):
    def change(data):
        data[at:at + len(content)] = content
        return data
    return change


def head(kind, length):
    return struct.pack("<I", kind << 29 | length)


def records(path):
    with MXRecordIO(path, "r") as reader:
        return list(iter(reader.read, None))


def test_a_good_file(path):
    items = list(rec.scan(path))
    assert [(item.payload, item.offset) for item in items] == list(zip(RECORDS, OFFSETS))
    assert [item.parts for item in items] == [1, 1, 3, 1, 1] and not any(item.damage for item in items)
    with open(path, "rb") as f:
        assert rec.verify(path, path[:-3] + "idx") == (5, [], hashlib.sha1(f.read()).hexdigest())


@pytest.mark.parametrize(("change", "message", "kept"), [
    (put(16, b"xxxx"), "record 1 at offset 16: expected the magic number 0a23d7ce at offset 16, found 78787878; the rest of the head is right",
     [0, 1, 2, 3, 4]),
    (put(16, b"x" * 8), "record 0 at offset 0: 20 bytes that are no record stand from offset 16 on; this one's length may be wrong, too", [2, 3, 4]),
    (put(0, b"x" * 8), "record 0 at offset 0: expected the magic number 0a23d7ce at offset 0, found 78787878", [1, 2, 3, 4]),
    (put(20, head(0, 3)), "record 1 at offset 16: 8 bytes that are no record stand from offset 28 on", [0, 2, 3, 4]),
    (put(20, head(0, 20)), "record 1 at offset 16: its part at offset 16 has 20 bytes, among which the head of another stands at offset 36",
     [0, 2, 3, 4]),
    (put(20, head(0, 5000)), "record 1 at offset 16: its part at offset 16 should have 5000 bytes, and the file ends after 76 of them", [0, 2, 3, 4]),
    (put(20, head(2, 11)), "record 1 at offset 16: a part of kind 2 at offset 16 where a record should begin", [0, 2, 3, 4]),
    (put(20, head(7, 11)), "record 1 at offset 16: a part of unknown kind 7 at offset 16", [0, 2, 3, 4]),
    (put(20, head(1, 11)), "record 1 at offset 16: it has no end: another record begins at offset 36, after 1 of its parts", [0, 2, 3, 4]),
    (put(64, head(1, 2)), "record 2 at offset 36: it has no end: another record begins at offset 60, after 2 of its parts", [0, 1, 3, 4]),
    (put(44, b"!!"), None, [0, 1, 2, 3, 4]),
    (put(15, b"!"), "record 0 at offset 0: its part at offset 0 is not filled up with zeros", [0, 1, 2, 3, 4]),
    (lambda data: data[:-1], "record 4 at offset 80: its part at offset 80 should have 12 bytes, and the file ends after 11 of them", [0, 1, 2, 3]),
    (lambda data: data[:83], "record 4 at offset 80: the file ends after 3 of the 8 bytes of a head at offset 80", [0, 1, 2, 3]),
    (lambda data: data[:60], "record 2 at offset 36: the file ends after 0 of the 8 bytes of a head at offset 60", [0, 1]),
    (lambda data: data[:16] + data[19:], "record 0 at offset 0: 17 bytes that are no record stand from offset 16 on", [2, 3, 4]),
    (lambda data: data + b"\0" * 40, "record 4 at offset 80: 40 bytes that are no record stand from offset 100 on", [0, 1, 2, 3, 4]),
    (lambda data: data + b"\0" * 3, "record 5 at offset 100: the file ends after 3 of the 8 bytes of a head at offset 100", [0, 1, 2, 3, 4]),
])
def test_damage(path, tmp_path, change, message, kept):
    damaged(path, change)
    count, messages, _ = rec.verify(path)
    assert [m for m in messages if message and m.startswith(f"{path}: {message}")] or not messages and not message, messages
    target = str(tmp_path / "b.rec")
    assert rec.repair(path, target) == (count, messages)
    found = records(target)
    assert found[:len(kept)] == [RECORDS[i] if message or i != 2 else RECORDS[i].replace(b"ab", b"!!") for i in kept]
    assert len(found) == count and rec.verify(target, str(tmp_path / "b.idx"))[:2] == (count, [])


def test_an_index_that_leads_elsewhere(path):
    index = path[:-3] + "idx"
    with open(index, "w") as f:
        f.write("0\t0\n10\t16\n10\t36\n30\t81\n")
    assert [line.replace(path, "F").replace(index, "I") for line in rec.verify(path, index)[1]] == [
        "I, line 3: key 10 stands in line 2, too", "I, line 4: no record that can be read begins at offset 81 of F, where it places key 30",
        "I: record 3 at offset 72 of F has no line", "I: record 4 at offset 80 of F has no line"]


def test_repair_keeps_the_keys(path, tmp_path):
    damaged(path, put(20, head(7, 11)))
    index, target = path[:-3] + "idx", str(tmp_path / "b.rec")
    with open(index) as f:
        lines = f.read().splitlines()
    with open(index, "w") as f:
        f.write("\n".join(lines[:-1]))
    assert rec.repair(path, target, index)[0] == 4
    with MXIndexedRecordIO(str(tmp_path / "b.idx"), target, "r") as found:
        assert found.keys == [0, 20, 30, 4] and found.read_idx(20) == RECORDS[2] and found.read_idx(4) == RECORDS[4]


def test_repair_into_the_same_file(path, tmp_path):
    for target in (path, str(tmp_path / "a.bin")):
        with pytest.raises(MXNetError, match="give the repaired file another name than"):
            rec.repair(path, target, path[:-3] + "idx")
    assert records(path) == RECORDS


@pytest.fixture
def pictures(tmp_path):
    name = str(tmp_path / "p.rec")
    image = np.arange(40 * 30 * 3, dtype=np.uint8).reshape(30, 40, 3)
    with MXRecordIO(name, "w") as out:
        for i, kind in enumerate((".jpg", ".png", ".jpg")):
            out.write(pack_img(IRHeader(0, i % 2, i, 0), image, 90, kind))
        out.write(pack(IRHeader(0, [1, 2.5], 3, 0), cv2.imencode(".bmp", image)[1].tobytes()))
    return name


def test_images(pictures, tmp_path):
    assert rec.verify(pictures, images=True)[:2] == (4, [])
    starts = [item.offset for item in rec.scan(pictures)]
    damaged(pictures, put(starts[0] + 8 + 24 + 200, b"\xff\xd9" * 30))
    damaged(pictures, put(starts[1] + 8 + 24 + 60, b"!" * 20))
    count, messages, _ = rec.verify(pictures, images=True)
    assert count == 4 and [m.partition(": ")[2][:50] for m in messages] == [
        "record 0 at offset 0: its image cannot be decoded:", f"record 1 at offset {starts[1]}: what follows its header is"[:50]]
    assert rec.verify(pictures)[1] == []  # the records are whole
    assert rec.repair(pictures, str(tmp_path / "q.rec"), images=True)[0] == 2


def test_a_whole_image_before_garbage_is_kept(pictures, tmp_path):
    starts = [item.offset for item in rec.scan(pictures)]
    damaged(pictures, put(starts[1], b"x" * 8))
    count, messages, _ = rec.verify(pictures)
    assert count == 3 and len(messages) == 1 and f"stand from offset {starts[1]} on" in messages[0]


def test_a_file_that_changes_meanwhile(path, monkeypatch):
    scan = rec.scan

    def changing(name):
        yield from scan(name)
        os.utime(name, ns=(1, 1))

    monkeypatch.setattr(rec, "scan", changing)
    assert rec.verify(path)[1] == [f"{path}: it changed while it was read; verify it again when it is complete"]


def run(*args):
    return rec.main([str(arg) for arg in args])


def test_inspect(pictures, path, capsys):
    assert run("inspect", pictures, "--limit", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("record 0 at offset 0: ") and lines[0].endswith("JPEG, label 0; number 0; 40 x 30 pixels")
    assert lines[2].startswith(f"{pictures}: 4 records in ") and lines[4] == "contents: 2 JPEG, 1 PNG, 1 BMP"
    assert lines[5] == "labels: 3 different, most often label 0 (2), label 1 (1), labels 1 2.5 (1)"
    damaged(path, put(20, head(7, 11)))
    run("inspect", path, "--limit", 0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}: 4 records in 100 bytes, 1 of them in several parts; 1 damaged places, which `verify` lists"


def test_command_line(path, tmp_path, capsys):
    assert run("verify", path, "--index", path[:-3] + "idx") == 0
    assert capsys.readouterr().out.endswith("; no damaged places\n")
    damaged(path, put(20, head(7, 11)))
    assert run("verify", path) == 1
    assert "record 1 at offset 16: a part of unknown kind 7" in capsys.readouterr().out
    assert run("repair", path, tmp_path / "b.rec") == 0
    assert capsys.readouterr().out.endswith(f"Wrote {tmp_path}/b.rec with 4 records; 1 damaged place\n")
    assert run("verify", tmp_path / "none.rec") == 2
    assert "cannot read" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("mend", path)


def test_as_a_module(path):
    done = subprocess.run([*python(), "-m", "mxnet.tools.rec", "verify", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "5 records" in done.stdout


def test_all_damage_that_records_can_show_is_found(path):
    """They have no checksum: a length that grows within what fills a part up is a record like any other."""
    index = path[:-3] + "idx"
    with open(path, "rb") as f:
        good = f.read()

    def unnoticed(contents):
        found = []
        for case, content in contents:
            with open(path, "wb") as f:
                f.write(content)
            found += [] if rec.verify(path, index)[1] else [case]
        return found

    heads = [at for at in range(0, len(good), 4) if good[at:at + 4] == MAGIC]
    flips = ((at, bit) for head in heads for at in range(head, head + 8) for bit in range(8))
    for at, bit in unnoticed(((at, bit), good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1:]) for at, bit in flips):
        assert at - 4 in heads and -good[at] % 4 >= (good[at] ^ 1 << bit) - good[at] > 0
    assert unnoticed((cut, good[:cut]) for cut in range(1, len(good))) == []
    assert unnoticed((at, good[:at] + b"Z" + good[at:]) for at in range(len(good) + 1)) == []
    assert unnoticed((at, good[:at] + good[at + 4:]) for at in range(0, len(good), 4)) == []
