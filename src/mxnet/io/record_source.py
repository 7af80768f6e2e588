"""Reading the records of RecordIO files in the order of an epoch: parts for several workers, and shuffling."""
import itertools
import math
import random
from collections.abc import Iterator

from ..base import MXNetError
from ..files import recover
from ..recordio import MAGIC, RecordReader, read_index
from .native import files_of, part_of, require

# Bytes of records that are shuffled at a time without an index, as in MXNet.
_CHUNK = 64 << 20
_SCAN = 1 << 16


def _next_head(reader: RecordReader, offset: int) -> int:
    """Return the offset of the first record that starts at or after `offset`, a multiple of 4; the end of the file if there is none."""
    while True:
        block = reader.read_at(offset, _SCAN + 4)
        at = block.find(MAGIC)
        while 0 <= at < _SCAN:
            # A part that continues an earlier record has 2 or 3 in the upper 3 bits of its second word.
            if at % 4 == 0 and at + 8 <= len(block) and block[at + 7] >> 5 in (0, 1):
                return offset + at
            at = block.find(MAGIC, at + 1)
        if len(block) < _SCAN + 4:
            return offset + len(block)
        offset += _SCAN


class SequentialRecords:
    """The records of files without an index, in the order of the files.

    Parameters
    ----------
    uri : str
        A file, a folder, or several separated by semicolons.
    part_index, num_parts : int
        Divide the bytes into `num_parts` parts and use the records that start in part `part_index`.
    shuffle : bool
        Shuffle records within a range of neighbours.
    seed : int
        The seed of the shuffling.
    chunk_size : int
        With `shuffle`: the size of chunks in megabytes, which are read in random order and shuffled within each.
    chunk_seed : int
        The seed of the order of the chunks.
    """

    def __init__(self, uri: str, part_index: int, num_parts: int, shuffle: bool, seed: int, chunk_size: int, chunk_seed: int) -> None:
        self.files = files_of(uri)
        self.part_index, self.num_parts = part_index, num_parts
        self.shuffle, self.seed, self.chunk_seed = shuffle, seed, chunk_seed
        self.total = sum(size for _, size in self.files)
        part_of(self.total, part_index, num_parts)
        self.pieces = 1
        self.buffer = _CHUNK
        if shuffle and chunk_size > 0:
            # The additional tenth is MXNet's, so that chunks are not larger than requested.
            self.pieces = max(1, math.ceil(self.total * 1.1 / (num_parts * (chunk_size << 20))))
            self.buffer = chunk_size << 20

    def records(self, number: int, start: int = 0) -> Iterator[tuple[str, bytes]]:
        """Yield (place, payload) of each record in pass `number`, beginning with record `start`; the place has file and offset."""
        return itertools.islice(self._records(number), start, None)

    def _records(self, number: int) -> Iterator[tuple[str, bytes]]:
        pieces = list(range(self.part_index * self.pieces, (self.part_index + 1) * self.pieces))
        if self.shuffle:
            random.Random(f"{self.chunk_seed} {number}").shuffle(pieces)
        for piece in pieces:
            records = self._piece(piece)
            yield from self._shuffled(records, number) if self.shuffle else records

    def _shuffled(self, records: Iterator[tuple[str, bytes]], number: int) -> Iterator[tuple[str, bytes]]:
        rng = random.Random(f"{self.seed} {number}")
        waiting, size = [], 0
        for record in records:
            waiting.append(record)
            size += len(record[1])
            if size >= self.buffer:
                rng.shuffle(waiting)
                yield from waiting
                waiting, size = [], 0
        rng.shuffle(waiting)
        yield from waiting

    def _piece(self, piece: int) -> Iterator[tuple[str, bytes]]:
        begin, end = part_of(self.total, piece, self.num_parts * self.pieces, alignment=4)
        start = 0
        for path, size in self.files:
            first, last = max(begin - start, 0), min(end - start, size)
            # Parts begin at multiples of 4 in the concatenation of all files; a file of another length shifts them.
            first += -first % 4
            start += size
            if first >= last:
                continue
            reader = RecordReader(path)
            try:
                reader.offset = _next_head(reader, first) if first else 0
                while reader.offset < last:
                    place = reader.offset
                    payload = reader.next()
                    if payload is None:
                        break
                    yield f"{path}, the record at offset {place}", payload
            finally:
                reader.close()


class IndexedRecords:
    """The records of one file with an index, which can be divided evenly and shuffled as a whole.

    Parameters
    ----------
    path, index_path : str
    part_index, num_parts : int
        Divide the records into `num_parts` parts and use part `part_index`.
    shuffle : bool
    seed : int
    """

    def __init__(self, path: str, index_path: str, part_index: int, num_parts: int, shuffle: bool, seed: int) -> None:
        files = files_of(path)
        require(len(files) == 1, f"an index belongs to one RecordIO file, {path!r} names {len(files)}")
        self.path, size = files[0]
        recover(path, index_path)
        offsets = sorted(offset for _, offset in read_index(index_path))
        begin, end = part_of(len(offsets), part_index, num_parts)
        self.offsets = offsets[begin:end]
        if self.offsets and self.offsets[-1] >= size:
            raise MXNetError(f"{index_path} places a record at offset {self.offsets[-1]}, and {self.path} has {size} bytes; "
                             "the file is truncated, or the index belongs to another")
        self.shuffle, self.seed = shuffle, seed

    def records(self, number: int, start: int = 0) -> Iterator[tuple[str, bytes]]:
        """Yield (place, payload) of each record in pass `number`, beginning with record `start`; the place has file and offset."""
        offsets = self.offsets
        if self.shuffle:
            offsets = offsets.copy()
            random.Random(f"{self.seed} {number}").shuffle(offsets)
        reader = RecordReader(self.path)
        try:
            for offset in offsets[start:]:
                reader.offset = offset
                payload = reader.next()
                if payload is None:
                    raise MXNetError(f"{self.path} ends at offset {offset}, where its index places a record")
                yield f"{self.path}, the record at offset {offset}", payload
        finally:
            reader.close()
