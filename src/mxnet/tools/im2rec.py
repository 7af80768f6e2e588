"""Make image lists, and pack the images of a list into RecordIO files.

``python -m mxnet.tools.im2rec --list PREFIX ROOT`` writes ``PREFIX.lst``: a line ``number<TAB>label<TAB>path`` for each image
under the folder ROOT. ``python -m mxnet.tools.im2rec PREFIX ROOT`` reads every ``PREFIX*.lst`` and writes ``.rec`` and ``.idx``
beside each. Files are written atomically: an interrupted run leaves the previous files.
"""
from __future__ import annotations

import argparse
import collections
import hashlib
import os
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import opencv
from ..base import MXNetError
from ..files import atomic_write
from ..gluon.data.workers import WorkerThreads
from ..image_header import decode
from ..io.decoder import Decoder
from ..io.image_list import read_image_list
from ..ops.image.geometry import shorter_side
from ..recordio import IRHeader, MXIndexedRecordIO, encode_record, pack, pack_img
from . import progress_bar
from .command import INTERRUPTED, command, parser

# The number of encoded images per encoding thread that may wait for being written.
_AHEAD = 16
_DECODERS = {0: Decoder(1), 1: Decoder(3)}  # by --color; they decode JPEGs to OpenCV's pixels in less time


def list_images(root: str, recursive: bool, exts: Sequence[str]) -> Iterator[Any]:
    """Return the images under a folder, as (number, path relative to it, label).

    With `recursive`, each folder with images is a class, numbered in the order of traversal; else all labels are 0.
    """
    if recursive:
        folders = ((path, sorted(files)) for path, files in _walk(root))
    else:
        folders = [(root, sorted(os.listdir(root)))]
    number, labels = 0, {}
    for folder, names in folders:
        for name in names:
            path = os.path.join(folder, name)
            if os.path.splitext(name)[1].lower() in exts and os.path.isfile(path):
                yield number, os.path.relpath(path, root), labels.setdefault(folder, len(labels))
                number += 1
    if recursive:
        for folder, label in labels.items():
            print(os.path.relpath(folder, root), label)


def _walk(root):
    for path, folders, files in os.walk(root, followlinks=True):
        folders.sort()
        yield path, files


def write_list(path: str, images: Iterable[Any]) -> None:
    """Write a list file: number, labels with six decimals and path, separated by tabs."""
    with atomic_write(path) as f:
        for number, name, *labels in images:
            f.write("\t".join([str(number), *(f"{label:f}" for label in labels), name]).encode("utf-8", "surrogateescape") + b"\n")
    print(f"Wrote {path} with {len(images)} images", file=sys.stderr)


def make_lists(args: argparse.Namespace) -> None:
    """Write the list files selected by `args`: one, or one for each chunk and each of train, val and test."""
    images = list(list_images(args.root, args.recursive, args.exts))
    if args.shuffle:
        # MXNet's seed, so that the same folder yields the same list.
        random.Random(100).shuffle(images)
    size = (len(images) + args.chunks - 1) // args.chunks
    train, test = int(size * args.train_ratio), int(size * args.test_ratio)
    for i in range(args.chunks):
        chunk = images[i * size:(i + 1) * size]
        base = f"{args.prefix}_{i}" if args.chunks > 1 else args.prefix
        if args.train_ratio == 1.0:
            write_list(f"{base}.lst", chunk)
            continue
        if args.test_ratio:
            write_list(f"{base}_test.lst", chunk[:test])
        if args.train_ratio + args.test_ratio < 1.0:
            write_list(f"{base}_val.lst", chunk[test + train:])
        write_list(f"{base}_train.lst", chunk[test:test + train])


def transform(image: np.ndarray, center_crop: bool, resize: int) -> np.ndarray:
    """Crop the central square of an image if `center_crop`, and resize its shorter side to `resize` pixels (0: no resizing)."""
    cv2 = opencv.load()
    height, width = image.shape[:2]
    if center_crop:
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        image = image[top:top + side, left:left + side]
        height = width = side
    if resize:
        image = cv2.resize(image, shorter_side(height, width, resize)[::-1])
    return image


def encode_image(args: argparse.Namespace, entry: Any) -> bytes:
    """Return the record of one entry of a list.

    Raises
    ------
    MXNetError
        If the image cannot be read or encoded; the text names the file.
    """
    cv2 = opencv.load()
    number, labels, name = entry
    path = os.path.join(args.root, name)
    header = IRHeader(0, labels if len(labels) > 1 and args.pack_label else labels[0], number, 0)
    try:
        with open(path, "rb") as f:
            content = f.read()
        if args.pass_through:
            return pack(header, content)
        image = transform(_decoded(content, args.color), args.center_crop, args.resize)
        return pack_img(header, image, quality=args.quality, img_fmt=args.encoding)
    except (OSError, MXNetError, cv2.error) as error:
        raise MXNetError(f"cannot pack {path}: {getattr(error, 'strerror', None) or error}") from error


def _decoded(content, color):
    """Decode the content of an image file to the result of ``cv2.imread``; the array is valid until this thread decodes another."""
    if color in _DECODERS:
        return _DECODERS[color](memoryview(content))
    image = decode(np.frombuffer(content, np.uint8), color, f"{len(content)} bytes")
    if image is None:
        raise MXNetError(f"{len(content)} bytes that are no image")
    return image


def _encoded(args, entries):
    """Yield (entry, its record or the error) in the order of the list; several threads encode concurrently."""
    def attempt(entry):
        try:
            return encode_image(args, entry)
        except MXNetError as error:
            return error

    if args.num_thread <= 1:
        yield from ((entry, attempt(entry)) for entry in entries)
        return
    waiting = collections.deque()
    pool = WorkerThreads(args.num_thread, initializer=lambda: None)  # after a Ctrl-C an executor of `concurrent.futures` can keep its lock acquired
    try:
        for entry in entries:
            waiting.append((entry, pool.apply_async(attempt, (entry,))))
            if len(waiting) >= _AHEAD * args.num_thread:
                entry, task = waiting.popleft()
                yield entry, task.get()
        while waiting:
            entry, task = waiting.popleft()
            yield entry, task.get()
    finally:
        pool.terminate()


def make_record(args: argparse.Namespace, list_path: str) -> tuple[int, Any, str]:
    """Pack the images of one list file.

    Returns
    -------
    packed, left_out : int
        The number of images in the file, and of those that could not be read.
    sha1 : str
        The SHA-1 of the file.
    """
    from tqdm import tqdm

    def report(message):
        tqdm.write(message, file=sys.stderr)

    base = os.path.splitext(list_path)[0]
    entries = list(read_image_list(list_path, report=report))
    packed = left_out = 0
    digest = hashlib.sha1(usedforsecurity=False)
    with MXIndexedRecordIO(f"{base}.idx", f"{base}.rec", "w") as record, progress_bar(base, len(entries), logged=True) as progress:
        for (number, _, _), result in _encoded(args, entries):
            if isinstance(result, MXNetError):
                report(str(result))
                left_out += 1
            else:
                record.write_idx(number, result)
                digest.update(encode_record(result))
                packed += 1
            progress.update()
    return packed, left_out, digest.hexdigest()


def make_records(args: argparse.Namespace) -> int:
    """Pack every list file whose path starts with the prefix; return the number of lists."""
    folder = args.prefix if os.path.isdir(args.prefix) else os.path.dirname(args.prefix)
    lists = [path for path in (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
             if path.startswith(args.prefix) and path.endswith(".lst") and os.path.isfile(path)]
    for path in lists:
        print("Creating .rec file from", path, "in", folder)
        packed, left_out, sha1 = make_record(args, path)
        print(f"Packed {packed} images" + (f", left out {left_out} that could not be read" if left_out else "") + f"; SHA-1 {sha1}")
    return len(lists)


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, received {text}")
    return value


def _ratio(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, received {text}")
    return value


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("im2rec")
    p.add_argument("prefix", help="what the paths of the .lst, .rec and .idx files start with")
    p.add_argument("root", help="folder of the images")
    lists = p.add_argument_group("making lists")
    lists.add_argument("--list", action="store_true", help="write <prefix>.lst; without it, read the lists and write .rec and .idx")
    lists.add_argument("--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], help="endings of file names that count as images")
    lists.add_argument("--chunks", type=_positive, default=1, help="how many lists to spread the images over")
    lists.add_argument("--train-ratio", type=_ratio, default=1.0, help="fraction of the images for training")
    lists.add_argument("--test-ratio", type=_ratio, default=0, help="fraction of the images for testing; what is left validates")
    lists.add_argument("--recursive", action="store_true",
                       help="walk through the folders below root, each a class with a number; else all images of root get label 0")
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="keep the images in the order of their names")
    records = p.add_argument_group("packing images")
    records.add_argument("--pass-through", action="store_true", help="pack the files as they are")
    records.add_argument("--resize", type=int, default=0, help="bring the shorter side to so many pixels; 0 keeps the size")
    records.add_argument("--center-crop", action="store_true", help="cut out the square in the middle")
    records.add_argument("--quality", type=int, default=95, help="of JPEG, 1-100, or compression of PNG, 1-9")
    records.add_argument("--num-thread", type=_positive, default=1,
                         help="threads that read and encode, each on a processor of its own; the order stays that of the list")
    records.add_argument("--color", type=int, default=1, choices=[-1, 0, 1], help="1 loads in colour, 0 in gray, -1 as stored, with alpha")
    records.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"], help="format of the packed images")
    records.add_argument("--pack-label", action="store_true", help="pack all labels of an image, not only the first")
    return p


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    p = build_parser()
    args = p.parse_args(argv)
    args.prefix = os.path.abspath(args.prefix)
    args.root = os.path.abspath(args.root)
    if not os.path.isdir(args.root):
        p.error(f"root: {args.root} is no folder")
    if not os.path.isdir(os.path.dirname(args.prefix)):
        p.error(f"prefix: there is no folder {os.path.dirname(args.prefix)}")
    if args.train_ratio + args.test_ratio > 1:
        p.error("--train-ratio and --test-ratio add up to more than 1")
    try:
        if args.list:
            make_lists(args)
        elif not make_records(args):
            print(f"Did not find any list file with prefix {args.prefix}; make one with --list", file=sys.stderr)
            return 1
    except MXNetError as error:
        print(f"im2rec: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("im2rec: interrupted; the files of the list in work are as they were", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
