"""Inspect, verify and repair RecordIO files.

``python -m mxnet.tools.rec inspect FILE`` lists its content; ``verify FILE [--index INDEX] [--images]`` lists all damage, with record and offset,
and ends with status 1 if there is any; ``repair FILE NEW`` writes the undamaged records to another file, with an index.
"""
from __future__ import annotations

import collections
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ..base import MXNetError
from ..files import is_remote, reported
from ..image_header import decode, size_of
from ..recordio import MAGIC, MXIndexedRecordIO, RecordReader, part_head, read_index, unpack
from . import progress_bar
from .command import INTERRUPTED, command, parser

if TYPE_CHECKING:
    import argparse

_HEAD = 8
_BLOCK = 1 << 20
_ENDS = {b"\xff\xd8": b"\xff\xd9", b"\x89P": b"IEND\xaeB`\x82"}  # the first and last bytes of JPEGs and PNGs


class Item(NamedTuple):
    """A record, or a damaged section, from `offset` to `end` of a file.

    Attributes
    ----------
    number : int
        The number of the record, counted from 0; a damaged section counts as one.
    offset, end : int
    payload : bytes or None
        The record; None if it cannot be trusted.
    parts : int
        The number of parts of the record in the file.
    damage : tuple of str
        Descriptions of the damage.
    """

    number: int
    offset: int
    end: int
    payload: Optional[bytes]
    parts: int
    damage: tuple[str, ...] = ()

    def messages(self, path: str) -> list[str]:
        """Return a line for each description of damage."""
        return [f"{path}: record {self.number} at offset {self.offset}: {text}" for text in self.damage]


def scan(path: str) -> Iterator[Item]:
    """Yield the content of a RecordIO file in its order as `Item`; after damage it continues with the next record that is found.

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
    """Return the item at an offset, None at the end of the file."""
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
                is_complete = _complete(pieces) or not any(read(end, min(resumed - end, _BLOCK)))
                return Item(number, start, resumed, b"".join(pieces) if is_complete else None, _parts(pieces), tuple(notes))
            return Item(number, start, end, b"".join(pieces), _parts(pieces), tuple(notes))
        offset = end


def _parts(pieces):
    return (len(pieces) + 1) // 2  # magic numbers are between them


def _fits(read, offset, head):
    """Return True if the part with the given head ends at the beginning of another part, or at the end of the file."""
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
    """Return True if the pieces of a record are a complete image, up to its end marker."""
    try:
        _, image = unpack(b"".join(pieces))
    except MXNetError:
        return False
    end = _ENDS.get(image[:2])
    return end is not None and image.rstrip(b"\0").endswith(end)


def _resume(read, offset):
    """Return the offset of the next record, or the end of the file.

    Heads are at multiples of 4, where no record contains the magic number. At other offsets (after lost or inserted bytes) a part must end where
    another one begins.
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
    """Return the damage of a record's image, as a list of texts."""
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


def verify(path: str, index: str | None = None, images: bool = False) -> tuple[int, list[str], Any]:
    """Check a file and return all damage.

    Parameters
    ----------
    path : str
    index : str, optional
        Its index. Each line must have the offset of a record, and each record must have a line.
    images : bool
        Decode the images too. They have no checksum, so that changed bytes are not detected if they are still an image.

    Returns
    -------
    count : int
        The number of readable records.
    messages : list of str
        The damage: a line with file, record and offset for each.
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


def repair(path: str, target: str, index: str | None = None, images: bool = False) -> tuple[int, list[str]]:
    """Write the readable records of a file to another one, with an index.

    Parameters
    ----------
    path, target : str
        The paths of the two files. The index of `target` has its name with the extension ``.idx``.
    index : str, optional
        The index of `path`, whose keys are kept. A record without a line in it gets an unused number; without an index records are numbered
        from 0.
    images : bool
        Leave out records whose image cannot be decoded.

    Returns
    -------
    kept : int
    messages : list of str
        The damage of `path`.

    Raises
    ------
    MXNetError
        If a file cannot be read or written, or both paths are the same file.
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


def inspect(path: str, limit: int = 0, out: Callable[[str], Any] = print) -> int:
    """Print the content of a file: a line for each of the first `limit` records, then statistics of all.

    Returns
    -------
    int
        The number of damaged sections.
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
    """Return the format of a record's content, and a text with label, number and size of an image."""
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


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("rec", statuses="Exit status: 0 on success, 1 if `verify` finds damage, 2 on failure or for wrong arguments, 130 after Ctrl-C,\n"
               "141 if the reader of its output has gone.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    looks, checks, saves = (commands.add_parser(name, help=text, description=text, formatter_class=p.formatter_class) for name, text in (
        ("inspect", "Print the content of a file."),
        ("verify", "List all damage, with record and offset; the exit status is 1 if there is any."),
        ("repair", "Write the records that can be read to another file, with an index.")))
    looks.add_argument("--limit", type=int, default=10, help="the number of records to list one by one")
    for action in (looks, checks, saves):
        action.add_argument("file", help="path of the .rec file")
    saves.add_argument("new", help="path of the new .rec file; its index has the ending .idx")
    for action in (checks, saves):
        action.add_argument("--index", help="path of the .idx file")
        action.add_argument("--images", action="store_true", help="decode the images too")
    return p


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
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
        return INTERRUPTED
    for message in messages:
        print(message)
    print(f"{text}; {len(messages) or 'no'} damaged place{'s' if len(messages) != 1 else ''}")
    return 1 if messages and args.command == "verify" else 0


if __name__ == "__main__":
    sys.exit(main())
