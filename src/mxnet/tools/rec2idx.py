"""Write the index of a RecordIO file.

``python -m mxnet.tools.rec2idx FILE.rec FILE.idx`` writes a line for each record, with its number, counted from 0, and its offset. The index is
written atomically.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base import MXNetError
from ..files import atomic_write
from ..recordio import RecordReader
from . import progress_bar
from .command import INTERRUPTED, command, parser

if TYPE_CHECKING:
    import argparse


def make_index(record: str, index: str) -> int:
    r"""Write the index of a file, and return the number of its records.

    Parameters
    ----------
    record, index : str
        The paths; an existing index is replaced.

    Raises
    ------
    MXNetError
        If a file cannot be read or written, or the records are damaged; the text names the offset.

    Example
    -------
    >>> import os, tempfile
    >>> from mxnet import recordio
    >>> from mxnet.tools import rec2idx
    >>> path = os.path.join(tempfile.mkdtemp(), 'some')
    >>> with recordio.MXRecordIO(path + '.rec', 'w') as records:
    ...     records.write(b'first'), records.write(b'second')
    (None, None)
    >>> rec2idx.make_index(path + '.rec', path + '.idx')
    2
    >>> with open(path + '.idx') as file:
    ...     file.read()
    '0\t0\n1\t16\n'
    """
    reader = RecordReader(record)
    count = 0
    try:
        with atomic_write(index) as out, progress_bar(record, unit="record") as progress:
            while True:
                offset = reader.offset
                if reader.next() is None:
                    return count
                out.write(f"{count}\t{offset}\n".encode())
                count += 1
                progress.update()
    finally:
        reader.close()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = parser("rec2idx")
    p.add_argument("record", help="path of the .rec file")
    p.add_argument("index", help="path of the .idx file, which is replaced")
    return p


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    args = build_parser().parse_args(argv)
    try:
        count = make_index(args.record, args.index)
    except MXNetError as error:
        print(f"rec2idx: {error}; mxnet.tools.rec finds and repairs what is damaged", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"rec2idx: interrupted; {args.index} is as it was", file=sys.stderr)
        return INTERRUPTED
    print(f"Wrote {args.index} with {count} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
