"""Iterators over text files: comma-separated values, and the sparse LibSVM format."""
import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from ..base import MXNetError
from ..context import cpu
from ..files import open_stream
from ..ndarray.sparse import CSRNDArray, csr_matrix
from ..ops import dtypes
from ..ops.schema import Shape
from .native import BatchSource, Dtype, LoaderContext, files_of, native_iterator, part_of, require

__all__ = ["CSVIter", "LibSVMIter"]

# Lines handed to numpy's parser at once.
_LINES = 4096


def numbered_lines(uri: str, part_index: int = 0, num_parts: int = 1) -> Iterator[tuple[str, str, bytes]]:
    """(file, line number or offset, text) of the lines of a part that are not empty.

    The parts are cut by size: a line belongs to the part in which the line before it ends, as dmlc-core cuts text.
    """
    files = files_of(uri)
    begin, end = part_of(sum(size for _, size in files), part_index, num_parts)
    start = 0
    for path, size in files:
        first, last = max(begin - start, 0), min(end - start, size)
        start += size
        if first >= last:
            continue
        with open_stream(path) as stream:
            stream.seek(first)
            offset, number = first, 0
            if first:
                offset += len(stream.readline())
            while offset < last or (offset == last and last < size):
                line = stream.readline()
                if not line:
                    break
                number += 1
                if line.strip():
                    yield path, (f"line {number}" if not first else f"the line at offset {offset}"), line
                offset += len(line)


class _Rows(BatchSource):
    """Batches out of single examples, going on at the beginning of the data to fill the last one."""

    def __init__(self, examples: Callable[[], Iterator[Any]], collate: Callable[[list[Any]], tuple[Any, Any]], batch_size: int, round_batch: bool,
                 prefetch_buffer: int) -> None:
        self.examples, self.collate = examples, collate
        self.batch_size, self.round_batch = batch_size, round_batch
        self.prefetch_buffer = prefetch_buffer

    def epoch(self, state: Any) -> Iterator[tuple[Any, ...]]:
        # What the last batch of an epoch took from the beginning is left out of the next one.
        examples = itertools.islice(enumerate(self.examples()), state or 0, None)
        previous: list[Any] = []
        while True:
            batch = list(itertools.islice(examples, self.batch_size))
            if not batch:
                return
            pad = self.batch_size - len(batch)
            if pad and self.round_batch:
                batch += itertools.islice(enumerate(self.examples()), pad)
                require(len(batch) == self.batch_size, f"there are fewer examples than batch_size={self.batch_size}; pass round_batch=False or "
                                                       "a smaller batch_size")
            elif pad:
                # MXNet documents that the rest of the batch keeps what the batch before had there.
                batch += previous[len(batch):] or batch[:1] * pad
            index = np.array([number for number, _ in batch], np.uint64)
            data, label = self.collate([example for _, example in batch])
            yield data, label, pad, index, pad if self.round_batch else 0
            if pad:
                return
            previous = batch


def _csv_rows(uri: str, width: int, dtype: Any, what: str) -> Iterator[np.ndarray]:
    """The rows of CSV files, as arrays of `width` numbers."""
    lines = numbered_lines(uri)
    while block := list(itertools.islice(lines, _LINES)):
        try:
            rows: Any = np.loadtxt([line for _, _, line in block], delimiter=",", dtype=dtype, ndmin=2, comments=None, encoding="utf-8")
        except (ValueError, OverflowError):
            rows = [_csv_row(*line, dtype, width, what) for line in block]
        if len(rows) != len(block) or rows[0].shape != (width,):
            rows = [_csv_row(*line, dtype, width, what) for line in block]
        yield from rows


def _csv_row(path: str, place: str, line: bytes, dtype: Any, width: int, what: str) -> np.ndarray:
    """One row by itself, to say which is wrong."""
    fields = line.decode("utf-8", "replace").strip().split(",")
    require(len(fields) == width, f"{path}, {place}: {what} asks for {width} numbers, the row has {len(fields)}")
    try:
        return np.array([dtype(field) for field in fields], dtype)
    except (ValueError, OverflowError):
        raise MXNetError(f"{path}, {place}: expected numbers of type {np.dtype(dtype).name} separated by commas, "
                         f"found {line[:80].decode('utf-8', 'replace').strip()!r}") from None


@native_iterator
def CSVIter(*, data_csv: str, data_shape: Shape, label_csv: str = "NULL", label_shape: Shape = (1,), batch_size: int, round_batch: bool = True,
            prefetch_buffer: int = 4, ctx: LoaderContext = "gpu", dtype: Dtype = None) -> BatchSource:
    """Batches out of CSV files, one example a row.

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
        Fill the last batch from the beginning of the data; the next epoch starts behind that. Otherwise the rest of the last
        batch holds what stood there before, and `pad` says how many examples that are.
    prefetch_buffer : int
        How many batches are read ahead.
    ctx : str
        Accepted; it makes no difference.
    dtype : str
        ``'float32'`` (the default), ``'int32'`` or ``'int64'``.

    Raises
    ------
    MXNetError
        If a row does not fit or holds something else than numbers; the text names file and line.
    """
    require(dtype in (None, "float32", "int32", "int64"), f"{dtype} is not supported for CSVIter; use float32, int32 or int64")
    require(batch_size >= 1, f"CSVIter: batch_size must be at least 1, received {batch_size}")
    number = np.dtype(dtype or "float32").type

    def examples():
        rows = _csv_rows(data_csv, int(np.prod(data_shape)), number, f"data_shape={data_shape}")
        if label_csv == "NULL":
            yield from ((row, None) for row in rows)
            return
        labels = _csv_rows(label_csv, int(np.prod(label_shape)), number, f"label_shape={label_shape}")
        for row in rows:
            label = next(labels, None)
            require(label is not None, f"{label_csv} has fewer rows than {data_csv}")
            yield row, label

    def collate(batch):
        data = torch.from_numpy(np.stack([row for row, _ in batch]).reshape(len(batch), *data_shape))
        if label_csv == "NULL":
            return data, torch.zeros(len(batch), dtype=data.dtype)
        return data, torch.from_numpy(np.stack([label for _, label in batch]).reshape(len(batch), *label_shape if label_shape != (1,) else ()))

    files_of(data_csv)
    if label_csv != "NULL":
        files_of(label_csv)
    return _Rows(examples, collate, batch_size, round_batch, max(1, prefetch_buffer))


def _libsvm_row(path: str, place: str, line: bytes, width: int) -> tuple[float, np.ndarray, np.ndarray]:
    """(label, columns, values) of a line ``label column:value column:value ...``."""
    fields = line.split(b"#", 1)[0].split()
    try:
        label = float(fields[0].partition(b":")[0]) if fields else 0.0
        pairs = [field.partition(b":") for field in fields[1:] if not field.startswith(b"qid:")]
        columns = np.array([int(column) for column, _, _ in pairs], np.int64)
        values = np.array([float(value) if colon else 1.0 for _, colon, value in pairs], np.float32)
    except (ValueError, OverflowError):
        raise MXNetError(f"{path}, {place}: expected a label and column:value pairs, "
                         f"found {line[:80].decode('utf-8', 'replace').strip()!r}") from None
    if len(columns):
        require(columns.min() >= 0 and columns.max() < width,
                f"{path}, {place}: columns must be from 0 to {width - 1}, found {columns.min()} to {columns.max()}")
        require((np.diff(columns) > 0).all(), f"{path}, {place}: the columns must be in ascending order")
    return label, columns, values


def _csr(rows: Any, width: int) -> CSRNDArray:
    """A CSR array out of (columns, values) pairs."""
    indptr = np.concatenate([[0], np.cumsum([len(columns) for columns, _ in rows])]).astype(np.int64)
    return csr_matrix((np.concatenate([values for _, values in rows]), np.concatenate([columns for columns, _ in rows]), indptr),
                      shape=(len(rows), width), ctx=cpu(0))


@native_iterator
def LibSVMIter(*, data_libsvm: str, data_shape: Shape, label_libsvm: str = "NULL", label_shape: Shape = (1,), num_parts: int = 1,
               part_index: int = 0, batch_size: int, round_batch: bool = True, prefetch_buffer: int = 4, ctx: LoaderContext = "gpu",
               dtype: Dtype = None) -> BatchSource:
    """Batches of sparse examples (``csr``) out of LibSVM files, in which columns count from 0 and ascend.

    Parameters
    ----------
    data_libsvm : str
        A file, or a folder whose files are all read.
    data_shape : tuple of int
        The number of columns, as a tuple of one.
    label_libsvm : str
        Another such file whose columns are the labels, which are sparse then; without it they are the first numbers of the rows.
    label_shape : tuple of int
        The number of columns of `label_libsvm`, as a tuple of one.
    num_parts, part_index : int
        Cut the data into so many parts, which may be of different size, and take this one.
    batch_size : int
    round_batch : bool
        Must be True: the last batch is filled from the beginning of the data.
    prefetch_buffer : int
        How many batches are read ahead.
    ctx : str
        Accepted; it makes no difference.
    dtype : str
        Must be float32 or None.

    Raises
    ------
    MXNetError
        If a line is no such line; the text names file and line.
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

    def rows(uri: str, width: int) -> Any:
        return (_libsvm_row(*line, width) for line in numbered_lines(uri, part_index, num_parts))

    def examples():
        with contextlib.closing(rows(data_libsvm, data_shape[0])) as data:
            labels = rows(label_libsvm, label_shape[0]) if sparse_labels else iter(())
            label: Any
            for label, *entries in data:
                if sparse_labels:
                    label = next(labels, None)
                    require(label is not None, f"{label_libsvm} has fewer rows than {data_libsvm}")
                    label = label[1:]
                yield entries, label

    def collate(batch):
        data = _csr([entries for entries, _ in batch], data_shape[0])
        if sparse_labels:
            return data, _csr([label for _, label in batch], label_shape[0])
        return data, torch.tensor([label for _, label in batch], dtype=dtypes.to_torch("float32"))

    files_of(data_libsvm)
    return _Rows(examples, collate, batch_size, True, max(1, prefetch_buffer))
