"""Look into a RecordIO file, find what is damaged in it, and save the rest.

``python -m mxnet.tools.rec inspect FILE`` says what is in it; ``verify FILE [--index INDEX] [--images]`` lists all damage, with record and offset,
and ends with status 1 if there is any; ``repair FILE NEW`` writes what is whole to another file, with an index.
"""
import argparse
import collections
import hashlib
import os
import sys
from typing import NamedTuple, Optional

from ..base import MXNetError
from ..files import is_remote, reported
from ..image_header import decode, size_of
from ..recordio import MAGIC, MXIndexedRecordIO, RecordReader, part_head, read_index, unpack
from . import progress_bar

_HEAD = 8
_BLOCK = 1 << 20
_ENDS = {b"\xff\xd8": b"\xff\xd9", b"\x89P": b"IEND\xaeB`\x82"}  # what JPEGs and PNGs begin and end with


class Item(NamedTuple):
    """What stands from `offset` to `end` of a file.

    Attributes
    ----------
    number : int
        Of the record, from 0 on; what is damaged counts as one.
    offset, end : int
    payload : bytes or None
        The record; None if it cannot be trusted.
    parts : int
        How many parts it is stored in.
    damage : tuple of str
        What is wrong.
    """

    number: int
    offset: int
    end: int
    payload: Optional[bytes]
    parts: int
    damage: tuple[str, ...] = ()

    def messages(self, path):
        """A line for each thing that is wrong."""
        return [f"{path}: record {self.number} at offset {self.offset}: {text}" for text in self.damage]


def scan(path):
    """All that stands in a RecordIO file, in its order, as `Item`; behind damage it goes on with the next record that can be found.

    Raises
    ------
    MXNetError
        If the file cannot be read.
    """
    reader = RecordReader(path)
    try:
        offset = number = 0
        while True:
            item = _next(reader.read_at, number, offset)
            if item is None:
                return
            yield item
            offset, number = item.end, number + 1
    finally:
        reader.close()


def _next(read, number, start):
    """The item at an offset, None at the end of the file."""
    offset, pieces, notes = start, [], []

    def lost(text, search):
        return Item(number, start, _resume(read, search), None, _parts(pieces), (*notes, text))

    while True:
        head = read(offset, _HEAD)
        if not head and not pieces:
            return None
        inside = f" inside the record, behind part {_parts(pieces)}" if pieces else ""
        if len(head) < _HEAD:
            return lost(f"the file ends after {len(head)} of the 8 bytes of a head at offset {offset}{inside}", offset + len(head))
        kind, length = part_head(head)
        if head[:4] != MAGIC:
            if not _fits(read, offset, head):
                return lost(f"expected the magic number {MAGIC.hex()} at offset {offset}{inside}, found {head[:4].hex()}", offset + 1)
            notes.append(f"expected the magic number {MAGIC.hex()} at offset {offset}{inside}, found {head[:4].hex()}; the rest of the head is right")
        if pieces and kind in (0, 1):
            return Item(number, start, offset, None, _parts(pieces), (*notes, f"it has no end: another record begins at offset {offset}, after "
                                                                      f"{_parts(pieces)} of its parts"))
        if kind > 3 or not pieces and kind in (2, 3):
            return lost(f"a part of kind {kind} at offset {offset} where a record should begin" if kind <= 3 else
                        f"a part of unknown kind {kind} at offset {offset}{inside}", offset + 1)
        aligned = length + -length % 4
        stored = read(offset + _HEAD, aligned)
        if len(stored) < aligned:
            return lost(f"its part at offset {offset} should have {aligned} bytes{inside}, and the file ends after {len(stored)} of them", offset + 1)
        payload, end = stored[:length], offset + _HEAD + aligned
        inner = _aligned_magic(payload)
        if inner >= 0:
            return lost(f"its part at offset {offset} has {length} bytes, among which the head of another stands at offset {offset + _HEAD + inner}",
                        offset + _HEAD + inner)
        if any(stored[length:]):
            notes.append(f"its part at offset {offset} is not filled up with zeros")
        pieces += [MAGIC, payload] if pieces else [payload]
        if kind in (0, 3):
            after = read(end, _HEAD)
            if len(after) == _HEAD and after[:4] != MAGIC and not _fits(read, end, after):
                resumed = _resume(read, end)
                notes.append(f"{resumed - end} bytes that are no record stand from offset {end} on; this one's length may be wrong, too")
                whole = _complete(pieces) or not any(read(end, min(resumed - end, _BLOCK)))
                return Item(number, start, resumed, b"".join(pieces) if whole else None, _parts(pieces), tuple(notes))
            return Item(number, start, end, b"".join(pieces), _parts(pieces), tuple(notes))
        offset = end


def _parts(pieces):
    return (len(pieces) + 1) // 2  # magic numbers stand between them


def _fits(read, offset, head):
    """Whether a part whose head is given ends where another begins, or the file ends."""
    kind, length = part_head(head)
    end = offset + _HEAD + length + -length % 4
    if kind > 3 or len(read(end - 1, 1)) < 1:
        return False
    after = read(end, 4)
    return not after or after == MAGIC


def _aligned_magic(payload):
    at = payload.find(MAGIC)
    while at >= 0 and at % 4:
        at = payload.find(MAGIC, at + 1)
    return at


def _complete(pieces):
    """Whether the pieces of a record are an image with its end."""
    try:
        _, image = unpack(b"".join(pieces))
    except MXNetError:
        return False
    end = _ENDS.get(image[:2])
    return end is not None and image.rstrip(b"\0").endswith(end)


def _resume(read, offset):
    """Where the next record begins, or the end of the file.

    Heads stand at multiples of 4, where no record has the magic number; elsewhere, behind bytes that were lost or came in, one has to end where
    another begins.
    """
    while True:
        block = read(offset, _BLOCK + _HEAD)
        at = block.find(MAGIC)
        while 0 <= at < _BLOCK and at + _HEAD <= len(block):
            head = block[at:at + _HEAD]
            if part_head(head)[0] in (0, 1) and ((offset + at) % 4 == 0 or _fits(read, offset + at, head)):
                return offset + at
            at = block.find(MAGIC, at + 1)
        if len(block) < _BLOCK + _HEAD:
            return offset + len(block)
        offset += _BLOCK


def _image_damage(item):
    """What is wrong with the image of a record, as a list of texts."""
    import numpy as np
    import simplejpeg
    try:
        _, content = unpack(item.payload)
        if content[:2] == b"\xff\xd8":
            simplejpeg.decode_jpeg(content, strict=True)
        elif decode(np.frombuffer(content, np.uint8), -1, "its image") is None:
            return ["what follows its header is no image that OpenCV can read"]
    except (MXNetError, ValueError) as error:
        return [f"its image cannot be decoded: {error}"]
    return []


def verify(path, index=None, images=False):
    """All damage of a file.

    Parameters
    ----------
    path : str
    index : str, optional
        Its index, of which each line must lead to the beginning of a record, and each record must have one.
    images : bool
        Decode the images too; their bytes have no checksum, so that other bytes may stand there and still be an image.

    Returns
    -------
    count : int
        How many records can be read.
    messages : list of str
        What is wrong: a line with file, record and offset each.
    sha1 : str
        The SHA-1 of the file.

    Raises
    ------
    MXNetError
        If a file cannot be read.

    Example
    -------
    >>> import os, tempfile
    >>> from mxnet import recordio
    >>> from mxnet.tools import rec
    >>> path = os.path.join(tempfile.mkdtemp(), 'some.rec')
    >>> with recordio.MXRecordIO(path, 'w') as records:
    ...     records.write(b'first'), records.write(b'second')
    (None, None)
    >>> rec.verify(path)[:2]
    (2, [])
    >>> with open(path, 'r+b') as file:
    ...     size = file.truncate(30)
    >>> count, messages, _ = rec.verify(path)
    >>> print(count, messages[0].partition(': ')[2])
    1 record 1 at offset 16: its part at offset 16 should have 8 bytes, and the file ends after 6 of them
    """
    before = _status(path)
    count, messages, starts = 0, [], {}
    with progress_bar(path, unit="record") as progress:
        for item in scan(path):
            if images and item.payload is not None:
                item = item._replace(damage=(*item.damage, *_image_damage(item)))
            messages += item.messages(path)
            if item.payload is not None:
                starts[item.offset] = item.number
                count += 1
            progress.update()
    digest = _digest(path)
    if index is not None:
        messages += _index_damage(path, index, starts)
    if _status(path) != before:
        messages.append(f"{path}: it changed while it was read; verify it again when it is complete")
    return count, messages, digest


def _status(path):
    if is_remote(path):
        return None
    with reported(path):
        status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def _digest(path):
    digest = hashlib.sha1(usedforsecurity=False)
    reader = RecordReader(path)
    try:
        offset = 0
        while block := reader.read_at(offset, _BLOCK):
            digest.update(block)
            offset += len(block)
    finally:
        reader.close()
    return digest.hexdigest()


def _index_damage(path, index, starts):
    messages, missing, keys = [], dict(starts), {}
    for line, (key, offset) in enumerate(read_index(index, str), 1):
        missing.pop(offset, None)
        if offset not in starts:
            messages.append(f"{index}, line {line}: no record that can be read begins at offset {offset} of {path}, where it places key {key}")
        if key in keys:
            messages.append(f"{index}, line {line}: key {key} stands in line {keys[key]}, too")
        keys.setdefault(key, line)
    return messages + [f"{index}: record {number} at offset {offset} of {path} has no line" for offset, number in missing.items()]


def repair(path, target, index=None, images=False):
    """Write the records of a file that can be read to another one, with an index.

    Parameters
    ----------
    path, target : str
        The index of `target` has its name, with the ending ``.idx``.
    index : str, optional
        The index of `path`, whose keys are kept. A record without a line in it gets a number that is free; without an index records are counted from
        0 on.
    images : bool
        Leave out records whose image cannot be decoded.

    Returns
    -------
    kept : int
    messages : list of str
        What is wrong with `path`.

    Raises
    ------
    MXNetError
        If a file cannot be read or written, or both are one.
    """
    new_index = os.path.splitext(target)[0] + ".idx"
    if not is_remote(target) and any(os.path.realpath(a) == os.path.realpath(b) for a in (path, index) if a for b in (target, new_index)):
        raise MXNetError(f"{target}: give the repaired file another name than {path} and its index; move it there when it is right")
    keys, messages = {}, []
    if index is not None:
        for key, offset in read_index(index, str):
            keys.setdefault(offset, key)
    used, free = set(keys.values()), len(keys)
    with MXIndexedRecordIO(new_index, target, "w", key_type=str) as out, progress_bar(path, unit="record") as progress:
        for item in scan(path):
            bad = _image_damage(item) if images and item.payload is not None else []
            messages += item._replace(damage=(*item.damage, *bad)).messages(path)
            progress.update()
            if item.payload is None or bad:
                continue
            key = keys.get(item.offset)
            while key is None:
                key, free = (str(free), free + 1) if str(free) not in used else (None, free + 1)
            out.write_idx(key, item.payload)
        return len(out.keys), messages


def inspect(path, limit=0, out=print):
    """Tell what is in a file: a line for each of the first `limit` records, then numbers of all.

    Returns
    -------
    int
        How much is damaged.
    """
    sizes, formats, labels, parts, damaged, offset = [], collections.Counter(), collections.Counter(), 0, 0, 0
    for item in scan(path):
        damaged += len(item.damage)
        parts += item.parts > 1
        offset = item.end
        if item.payload is None:
            continue
        sizes.append(len(item.payload))
        kind, text = _described(item.payload)
        formats[kind] += 1
        labels[text.partition("; ")[0] if kind != "bytes" else "none"] += 1
        if len(sizes) <= limit:
            out(f"record {item.number} at offset {item.offset}: {len(item.payload)} bytes{', ' + kind if kind != 'bytes' else ''}"
                f"{', ' + text if text else ''}")
    out(f"{path}: {len(sizes)} records in {offset} bytes" + (f", {parts} of them in several parts" if parts else "")
        + (f"; {damaged} damaged places, which `verify` lists" if damaged else ""))
    if sizes:
        out(f"bytes in a record: {min(sizes)} to {max(sizes)}, {sum(sizes) / len(sizes):.0f} in the mean")
        out("contents: " + ", ".join(f"{count} {kind}" for kind, count in formats.most_common()))
        common = labels.most_common(10)
        out(f"labels: {len(labels)} different, most often " + ", ".join(f"{text} ({count})" for text, count in common))
    return damaged


def _described(payload):
    """What a record holds: a format, and a text with label, number and size of an image."""
    try:
        header, content = unpack(payload)
    except MXNetError:
        return "bytes", ""
    kinds = {b"\xff\xd8": "JPEG", b"\x89P": "PNG", b"BM": "BMP", b"RI": "WebP", b"GI": "GIF", b"II": "TIFF", b"MM": "TIFF"}
    kind = kinds.get(bytes(content[:2]))
    if kind is None:
        return "bytes", ""
    label = f"label {header.label:g}" if not header.flag else f"labels {' '.join(f'{x:g}' for x in header.label[:8])}" + " ..." * (header.flag > 8)
    size = size_of(content)
    return kind, f"{label}; number {header.id}" + (f"; {max(size)} x {min(size)} pixels" if size else "")


def build_parser():
    """The command line."""
    parser = argparse.ArgumentParser("rec", description="Look into a RecordIO file, find what is damaged in it, and save the rest.")
    commands = parser.add_subparsers(dest="command", required=True)
    looks = commands.add_parser("inspect", help="say what is in a file")
    looks.add_argument("--limit", type=int, default=10, help="how many records to list one by one")
    checks = commands.add_parser("verify", help="list all damage, with record and offset; status 1 if there is any")
    saves = commands.add_parser("repair", help="write the records that can be read to another file, with an index")
    for command in (looks, checks, saves):
        command.add_argument("file", help="path of the .rec file")
    saves.add_argument("new", help="path of the new .rec file; its index has the ending .idx")
    for command in (checks, saves):
        command.add_argument("--index", help="path of the .idx file")
        command.add_argument("--images", action="store_true", help="decode the images, too")
    return parser


def main(argv=None):
    """Run the program; the exit status."""
    args = build_parser().parse_args(argv)
    try:
        if args.command == "inspect":
            inspect(args.file, args.limit)
            return 0
        if args.command == "verify":
            count, messages, digest = verify(args.file, args.index, args.images)
            text = f"{args.file}: {count} records, SHA-1 {digest}"
        else:
            count, messages = repair(args.file, args.new, args.index, args.images)
            text = f"Wrote {args.new} with {count} records"
    except (MXNetError, OSError) as error:
        print(f"rec: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rec: interrupted", file=sys.stderr)
        return 130
    for message in messages:
        print(message)
    print(f"{text}; {len(messages) or 'no'} damaged place{'s' if len(messages) != 1 else ''}")
    return 1 if messages and args.command == "verify" else 0


if __name__ == "__main__":
    sys.exit(main())
