"""Iterators over text files: comma-separated values, and the sparse LibSVM format."""
import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from ..base import MXNetError
from ..context import cpu
from ..files import open_stream, reported
from ..kernels.text.numbers import Plain, SparseRows, comma_separated, sparse
from ..ndarray.sparse import CSRNDArray
from ..ops.schema import Shape
from .native import BatchSource, Dtype, LoaderContext, files_of, native_iterator, part_of, require

__all__ = ["CSVIter", "LibSVMIter"]

BLOCK = 1 << 20  # bytes that are parsed at once
_LINES = 256  # lines that Python parses at a line that the kernel can't parse


class Lines(NamedTuple):
    """Complete lines of a text file: the first `size` bytes of `text`, from `offset` of the file on; the rest of `text` is empty lines.

    The memory of `text` is reused for the next lines. Lines are counted from `start` on.
    """

    path: str
    text: bytearray
    size: int
    offset: int
    start: int


def blocks_of_lines(uri: str, part_index: int = 0, num_parts: int = 1) -> Iterator[Lines]:
    """Yield the text of a part, in blocks of complete lines.

    The parts are divided by size: a line belongs to the part in which the previous line ends, as in dmlc-core.

    Raises
    ------
    MXNetError
        If a file cannot be read, or becomes shorter meanwhile.
    """
    files = files_of(uri)
    begin, end = part_of(sum(size for _, size in files), part_index, num_parts)
    start = 0
    for path, size in files:
        first, last = max(begin - start, 0), min(end - start, size)
        start += size
        if first < last:
            yield from _blocks(path, first, last, size)


def _blocks(path: str, first: int, last: int, size: int) -> Iterator[Lines]:
    """Yield the lines of a file from the one that begins after `first` to the one that contains `last`."""
    with open_stream(path) as stream:
        stream.seek(first)
        start = offset = first + len(stream.readline()) if first else 0
        text, filled = bytearray(min(BLOCK, max(size - offset, 0)) + 1), 0
        while offset < last or (offset == last and last < size):
            if filled == len(text) - 1:  # full of a part of one line
                text += bytes(len(text))
            with memoryview(text) as view, reported(path):
                got = stream.readinto(view[filled:min(len(text) - 1, size - offset)])  # type: ignore[attr-defined]  # of all binary files
            end = text.rfind(b"\n", filled, filled + got) + 1
            filled += got
            if not got:
                require(offset + filled >= size,
                        f"{path} became shorter while it was read: it had {size} bytes, and ends at offset {offset + filled}")
                end = filled
            if offset + end > last and last < size:
                end = text.find(b"\n", max(last - offset, 0), filled) + 1 or end
            if end:
                rest = text[end:filled]
                text[end:] = b"\n" * (len(text) - end)
                yield Lines(path, text, end, offset, start)
                text[:len(rest)] = rest
                offset, filled = offset + end, len(rest)


class _Table:
    """Rows of numbers: `cut` returns some of them, `join` concatenates tables in new memory."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def cut(self, begin: int, end: int) -> "_Table":
        return _Table(self.rows[begin:end])

    @classmethod
    def join(cls, parts: "list[_Table]") -> "_Table":
        return cls(np.concatenate([part.rows for part in parts]))


class _Sparse:
    """A table like `_Table` for sparse rows."""

    def __init__(self, rows: SparseRows) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows.labels)

    def cut(self, begin: int, end: int) -> "_Sparse":
        labels, starts, columns, values = self.rows
        return _Sparse(SparseRows(labels[begin:end], starts[begin:end + 1], columns[starts[begin]:starts[end]], values[starts[begin]:starts[end]]))

    @classmethod
    def join(cls, parts: "list[_Sparse]") -> "_Sparse":
        labels, columns, values = (np.concatenate([getattr(part.rows, name) for part in parts]) for name in ("labels", "columns", "values"))
        starts, count = [np.zeros(1, np.int64)], 0
        for _, own, _, _ in (part.rows for part in parts):
            starts.append(own[1:] + (count - own[0]))
            count += own[-1] - own[0]
        return cls(SparseRows(labels, np.concatenate(starts), columns, values))

    def matrix(self, width: int) -> CSRNDArray:
        """Return the rows as a CSR array, which shares their memory."""
        _, *parts = map(torch.from_numpy, self.rows)
        return CSRNDArray._make(parts[2], parts[:2], (len(self), width), cpu(0))


class _Reader:
    """A reader of rows from chunks, which are tables of any length."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self.chunks, self.chunk, self.at = chunks, None, 0

    def take(self, count: int) -> list[Any]:
        """Return the next `count` rows, fewer at the end, as a list of tables."""
        parts = []
        while count:
            if self.chunk is None or self.at == len(self.chunk):
                self.chunk, self.at = next(self.chunks, None), 0
                if self.chunk is None:
                    break
            part = self.chunk.cut(self.at, self.at + min(count, len(self.chunk) - self.at))
            self.at += len(part)
            count -= len(part)
            parts.append(part)
        return parts

    def skip(self, count: int) -> None:
        """Skip rows."""
        while count and (part := self.take(min(count, _LINES))):
            count -= sum(map(len, part))

    def close(self) -> None:
        self.chunks.close()  # type: ignore[attr-defined]  # a generator, which has a file open


def _chunks(blocks: Iterator[Lines], plain: Callable[[bytearray], Plain | None], other: Callable[[list[tuple[str, bytes]]], Any]) -> Iterator[Any]:
    """Parse text to tables, and yield them.

    ``plain(text)`` parses lines of plain numbers, up to the first other line; it returns None if there is no kernel. ``other`` parses (place, line)
    pairs to a table.
    """
    path, number = "", 0
    for block in blocks:
        if block.path != path:
            path, number = block.path, 0
        at = 0
        while at < block.size:
            chunk = plain(block.text[at:] if at else block.text)
            if chunk is not None:
                if len(chunk.rows):
                    yield chunk.rows
                number += chunk.lines - max(at + chunk.size - block.size, 0)
                at += chunk.size
            lines: list[tuple[str, bytes]] = []
            while at < block.size and len(lines) < _LINES:  # several lines, since others of the same kind may follow
                end = block.text.find(b"\n", at) + 1
                line = bytes(block.text[at:end])
                number += 1
                if line.strip():
                    lines.append((f"{path}, " + (f"the line at offset {block.offset + at}" if block.start else f"line {number}"), line))
                at = end
            if lines:
                yield other(lines)


class _Rows(BatchSource):
    """Batches from tables; the last one is filled from the beginning of the data.

    ``data()`` and ``labels()`` return the chunks of a pass over the data; `labels` is None if labels are part of the data. ``before()`` returns the
    number of labels of earlier rows.
    """

    def __init__(self, data: Callable[[], Iterator[Any]], labels: Callable[[], Iterator[Any]] | None, files: tuple[str, str],
                 collate: Callable[[Any, Any], tuple[Any, Any]], batch_size: int, round_batch: bool, prefetch_buffer: int,
                 before: Callable[[], int] = lambda: 0) -> None:
        self.data, self.labels, self.files, self.collate, self.before = data, labels, files, collate, before
        self.batch_size, self.round_batch = batch_size, round_batch
        self.prefetch_buffer = max(1, prefetch_buffer)

    def epoch(self, state: Any) -> Iterator[tuple[Any, ...]]:
        # The rows that filled the last batch of an epoch are skipped in the next one.
        number = state or 0
        with self._pass() as take:
            take(number)
            previous: tuple[list[Any], list[Any], np.ndarray] | None = None
            while True:
                data, labels, count = take(self.batch_size)
                if not count:
                    return
                index = np.arange(number, number + count, dtype=np.uint64)
                pad = self.batch_size - count
                if pad and self.round_batch:
                    with self._pass() as again:
                        more_data, more_labels, more = again(pad)
                    require(more == pad, f"there are fewer examples than batch_size={self.batch_size}; pass round_batch=False or "
                                         "a smaller batch_size")
                    data, labels, index = data + more_data, labels + more_labels, np.concatenate([index, np.arange(pad, dtype=np.uint64)])
                elif pad:
                    # As MXNet documents, the rest of the batch keeps the values of the previous batch.
                    before = previous or (data, labels, index)
                    rest = slice(count, None) if previous else np.zeros(pad, np.int64)
                    data = [*data, _rest(before[0], rest)]
                    labels = [*labels, _rest(before[1], rest)] if labels else []
                    index = np.concatenate([index, before[2][rest]])
                yield *self.collate(_joined(data), _joined(labels)), pad, index, pad if self.round_batch else 0
                if pad:
                    return
                previous = data, labels, index
                number += count

    @contextlib.contextmanager
    def _pass(self) -> Iterator[Callable[[int], tuple[list[Any], list[Any], int]]]:
        """Yield a function that takes a number of rows and returns tables of data and of labels, and their number of rows."""
        data = _Reader(self.data())
        labels = None if self.labels is None else _Reader(self.labels())
        if labels is not None:
            labels.skip(self.before())

        def take(count: int) -> tuple[list[Any], list[Any], int]:
            taken = data.take(count)
            total = sum(map(len, taken))
            given = labels.take(total) if labels is not None else []
            require(labels is None or sum(map(len, given)) == total, f"{self.files[1]} has fewer rows than {self.files[0]}")
            return taken, given, total

        try:
            yield take
        finally:
            data.close()
            if labels is not None:
                labels.close()


def _joined(parts: list[Any]) -> Any:
    return type(parts[0]).join(parts) if parts else None


def _rest(parts: list[_Table], which: Any) -> _Table:
    return _Table(_Table.join(parts).rows[which])


def _csv_chunks(uri: str, width: int, dtype: np.dtype, what: str) -> Iterator[_Table]:
    """Yield the rows of CSV files, each of `width` numbers."""
    def plain(text: bytearray) -> Plain | None:
        chunk = comma_separated(text, width, dtype)
        return chunk and chunk._replace(rows=_Table(chunk.rows))

    def other(lines: list[tuple[str, bytes]]) -> _Table:
        try:
            rows: Any = np.loadtxt([line for _, line in lines], delimiter=",", dtype=dtype, ndmin=2, comments=None, encoding="utf-8")
        except (ValueError, OverflowError):
            rows = None
        if rows is None or rows.shape != (len(lines), width):
            rows = np.stack([_csv_row(place, line, dtype.type, width, what) for place, line in lines])
        return _Table(rows)

    return _chunks(blocks_of_lines(uri), plain, other)


def _csv_row(place: str, line: bytes, dtype: Any, width: int, what: str) -> np.ndarray:
    """Parse a single row, so that an error names its line."""
    fields = line.decode("utf-8", "replace").strip().split(",")
    require(len(fields) == width, f"{place}: {what} asks for {width} numbers, the row has {len(fields)}")
    try:
        return np.array([dtype(field) for field in fields], dtype)
    except (ValueError, OverflowError):
        raise MXNetError(f"{place}: expected numbers of type {np.dtype(dtype).name} separated by commas, "
                         f"found {line[:80].decode('utf-8', 'replace').strip()!r}") from None


@native_iterator
def CSVIter(*, data_csv: str, data_shape: Shape, label_csv: str = "NULL", label_shape: Shape = (1,), batch_size: int, round_batch: bool = True,
            prefetch_buffer: int = 4, ctx: LoaderContext = "gpu", dtype: Dtype = None) -> BatchSource:
    """Iterate over batches from CSV files, one example a row.

    Parameters
    ----------
    data_csv : str
        A file, or a folder whose files are all read.
    data_shape : tuple of int
        Shape of one example; a row has as many numbers.
    label_csv : str
        The same for labels; without it all labels are 0.
    label_shape : tuple of int
    batch_size : int
    round_batch : bool
        Fill the last batch from the beginning of the data; the next epoch starts after these rows. Otherwise the rest of the last
        batch keeps the values of the previous batch, and `pad` is the number of these examples.
    prefetch_buffer : int
        The number of prefetched batches.
    ctx : str
        Accepted, without effect.
    dtype : str
        ``'float32'`` (the default), ``'int32'`` or ``'int64'``.

    Raises
    ------
    MXNetError
        If a row has another length or contains anything but numbers; the text names file and line.
    """
    require(dtype in (None, "float32", "int32", "int64"), f"{dtype} is not supported for CSVIter; use float32, int32 or int64")
    require(batch_size >= 1, f"CSVIter: batch_size must be at least 1, received {batch_size}")
    number = np.dtype(dtype or "float32")
    labelled = label_csv != "NULL"

    def collate(data: Any, labels: Any) -> tuple[Any, Any]:
        values = torch.from_numpy(data.rows.reshape(len(data), *data_shape))
        if labels is None:
            return values, torch.zeros(len(data), dtype=values.dtype)
        return values, torch.from_numpy(labels.rows.reshape(len(data), *label_shape if label_shape != (1,) else ()))

    files_of(data_csv)
    if labelled:
        files_of(label_csv)
    return _Rows(lambda: _csv_chunks(data_csv, math.prod(data_shape), number, f"data_shape={data_shape}"),
                 (lambda: _csv_chunks(label_csv, math.prod(label_shape), number, f"label_shape={label_shape}")) if labelled else None,
                 (data_csv, label_csv), collate, batch_size, round_batch, prefetch_buffer)


def _libsvm_row(place: str, line: bytes, width: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Return (label, columns, values) of a line ``label column:value column:value ...``."""
    fields = line.split(b"#", 1)[0].split()
    try:
        label = float(fields[0].partition(b":")[0]) if fields else 0.0
        pairs = [field.partition(b":") for field in fields[1:] if not field.startswith(b"qid:")]
        columns = np.array([int(column) for column, _, _ in pairs], np.int64)
        values = np.array([float(value) if colon else 1.0 for _, colon, value in pairs], np.float32)
    except (ValueError, OverflowError):
        raise MXNetError(f"{place}: expected a label and column:value pairs, "
                         f"found {line[:80].decode('utf-8', 'replace').strip()!r}") from None
    if len(columns):
        require(columns.min() >= 0 and columns.max() < width,
                f"{place}: columns must be from 0 to {width - 1}, found {columns.min()} to {columns.max()}")
        require((np.diff(columns) > 0).all(), f"{place}: the columns must be in ascending order")
    return label, columns, values


def _libsvm_chunks(uri: str, width: int, part_index: int, num_parts: int) -> Iterator[_Sparse]:
    """Yield the rows of LibSVM files, whose columns must be below `width`."""
    def plain(text: bytearray) -> Plain | None:
        chunk = sparse(text, width)
        return chunk and chunk._replace(rows=_Sparse(chunk.rows))

    def other(lines: list[tuple[str, bytes]]) -> _Sparse:
        rows = [_libsvm_row(place, line, width) for place, line in lines]
        starts = np.concatenate([[0], np.cumsum([len(columns) for _, columns, _ in rows])])
        return _Sparse(SparseRows(np.array([label for label, _, _ in rows], np.float32), starts, np.concatenate([columns for _, columns, _ in rows]),
                                  np.concatenate([values for _, _, values in rows])))

    return _chunks(blocks_of_lines(uri, part_index, num_parts), plain, other)


def _rows_before(uri: str, part_index: int, num_parts: int) -> int:
    return sum(bool(line.strip()) for part in range(part_index) for block in blocks_of_lines(uri, part, num_parts)
               for line in bytes(block.text[:block.size]).split(b"\n"))


@native_iterator
def LibSVMIter(*, data_libsvm: str, data_shape: Shape, label_libsvm: str = "NULL", label_shape: Shape = (1,), num_parts: int = 1,
               part_index: int = 0, batch_size: int, round_batch: bool = True, prefetch_buffer: int = 4, ctx: LoaderContext = "gpu",
               dtype: Dtype = None) -> BatchSource:
    """Iterate over batches of sparse examples (``csr``) from LibSVM files with zero-based, ascending columns.

    Parameters
    ----------
    data_libsvm : str
        A file, or a folder whose files are all read.
    data_shape : tuple of int
        The number of columns, as a tuple of one.
    label_libsvm : str
        Another such file whose columns are the labels, which are sparse then; without it labels are the first numbers of the rows.
    label_shape : tuple of int
        The number of columns of `label_libsvm`, as a tuple of one.
    num_parts, part_index : int
        Divide the data into `num_parts` parts, which may have different sizes, and use part `part_index` with its labels.
    batch_size : int
    round_batch : bool
        Must be True: the last batch is filled from the beginning of the data.
    prefetch_buffer : int
        The number of prefetched batches.
    ctx : str
        Accepted, without effect.
    dtype : str
        Must be float32 or None.

    Raises
    ------
    MXNetError
        If a line is invalid; the text names file and line.
    """
    require(len(data_shape) == 1, f"LibSVMIter: dimension of data_shape is expected to be 1, received {data_shape}")
    require(round_batch, "LibSVMIter: round_batch=False received, but csr batches can't be filled up; pass round_batch=True")
    require(dtype in (None, "float32"), f"LibSVMIter gives float32 arrays, received dtype={dtype}; convert the batches with astype")
    require(batch_size >= 1, f"LibSVMIter: batch_size must be at least 1, received {batch_size}")
    part_of(0, part_index, num_parts)
    sparse_labels = label_libsvm != "NULL"
    if sparse_labels:
        require(label_shape not in ((), (1,)), "LibSVMIter: label_shape is not expected to be (1,) when label_libsvm is set")
    else:
        require(label_shape == (1,), f"LibSVMIter: label_shape is expected to be (1,) when label_libsvm is NULL, received {label_shape}")

    def collate(data: Any, labels: Any) -> tuple[Any, Any]:
        return data.matrix(data_shape[0]), torch.from_numpy(data.rows.labels) if labels is None else labels.matrix(label_shape[0])

    files_of(data_libsvm)
    if sparse_labels:
        files_of(label_libsvm)
    # Dividing the label file by size would give other rows than those of the data, as happens in MXNet.
    return _Rows(lambda: _libsvm_chunks(data_libsvm, data_shape[0], part_index, num_parts),
                 (lambda: _libsvm_chunks(label_libsvm, label_shape[0], 0, 1)) if sparse_labels else None,
                 (data_libsvm, label_libsvm), collate, batch_size, True, prefetch_buffer,
                 functools.cache(lambda: _rows_before(data_libsvm, part_index, num_parts)))
