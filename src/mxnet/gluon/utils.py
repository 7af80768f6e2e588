"""Helpers of gluon: splitting batches over devices, clipping gradients, downloading files."""
from __future__ import annotations

import collections
import contextlib
import hashlib
import math
import os
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import downloads, environment, ndarray
from ..base import MXNetError
from ..ndarray import dispatch
from ..util import is_np_shape

if TYPE_CHECKING:
    from ..context import Context
    from ..ndarray import NDArray

__all__ = ["split_data", "split_and_load", "clip_global_norm", "check_sha1", "download", "replace_file"]


class UsageError(MXNetError, AssertionError):
    """An argument or a state that the caller must correct.

    It is an AssertionError too, because MXNet checks the same with `assert` and programs catch that.
    """


class ExtraParameterError(MXNetError, ValueError):
    """A file has an entry that is no parameter of the network; MXNet raises a ValueError."""


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[Any]:
    """Cut an array into `num_slice` slices along `batch_axis`, usually one for each device.

    Parameters
    ----------
    data : NDArray
    num_slice : int
    batch_axis : int
    even_split : bool
        Insist on slices of one size. Otherwise the first slices are larger by one where the sizes don't divide.

    Returns
    -------
    list of NDArray

    Raises
    ------
    ValueError
        If `even_split` is set and the size is no multiple of `num_slice`.

    Example
    -------
    >>> import mxnet as mx
    >>> [s.shape for s in mx.gluon.utils.split_data(mx.nd.zeros((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ValueError(f"data with shape {data.shape} cannot be evenly split into {num_slice} slices along axis {batch_axis}; "
                         f"use a batch size that is a multiple of {num_slice}, or set even_split=False")
    base, larger = divmod(size, num_slice)
    ends = [(i + 1) * base + min(i + 1, larger) for i in range(num_slice)]
    begins = [0, *ends[:-1]]
    if batch_axis == 0:
        return [data[begin:end] for begin, end in zip(begins, ends)]
    return [ndarray.slice_axis(data, axis=batch_axis, begin=begin, end=end) for begin, end in zip(begins, ends)]


def split_and_load(data: NDArray | Any, ctx_list: list[Context], batch_axis: int = 0, even_split: bool = True) -> list[Any]:
    """Split `data` into one slice for each context and move each there; see `split_data`.

    Parameters
    ----------
    data : NDArray or array-like
    ctx_list : list of Context

    Returns
    -------
    list of NDArray

    Example
    -------
    >>> parts = mx.gluon.utils.split_and_load(mx.nd.arange(4), [mx.cpu(0), mx.cpu(1)])
    >>> [(part.context, part.asnumpy().tolist()) for part in parts]
    [(cpu(0), [0.0, 1.0]), (cpu(1), [2.0, 3.0])]
    """
    if not isinstance(data, ndarray.NDArray):
        data = ndarray.array(data, ctx=ctx_list[0])
    if len(ctx_list) == 1:
        return [data._on(ctx_list[0])]
    slices = split_data(data, len(ctx_list), batch_axis, even_split)
    return [s._on(ctx) for s, ctx in zip(slices, ctx_list)]


def clip_global_norm(arrays: list[Any], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale arrays in place so that the 2-norm of all of them together is at most `max_norm`.

    Parameters
    ----------
    arrays : list of NDArray
        Of any shapes, on any contexts.
    max_norm : float
        At least 0.
    check_isfinite : bool
        Warn if the norm is not finite. This waits for the value; without it nothing does.

    Returns
    -------
    float or NDArray
        The norm before clipping; an NDArray of shape (1,) if `check_isfinite` is False.

    Raises
    ------
    UsageError
        If there are no arrays.

    Example
    -------
    >>> import mxnet as mx
    >>> x = mx.nd.array([3., 4.])
    >>> mx.gluon.utils.clip_global_norm([x], 1.0)
    5.0
    >>> x.asnumpy()
    array([0.6, 0.8], dtype=float32)
    """
    if not arrays:
        raise UsageError("clip_global_norm: at least one array is needed, received none")
    ctx = arrays[0].ctx
    flat = [(array if array.stype == "default" else array.data).reshape((-1,)).as_nd_ndarray() for array in arrays]
    squares = [ndarray.dot(x, x).reshape((1,))._on(ctx) for x in flat]
    total = ndarray.sqrt(ndarray.add_n(*squares))
    value = float(total.asscalar()) if check_isfinite else None
    if value is not None and not math.isfinite(value):
        warnings.warn(f"clip_global_norm: the norm is {value} (nan or inf), and so are the arrays after clipping", UserWarning, stacklevel=2)
    scale = ndarray.minimum(max_norm / (total + 1e-8), 1.0)
    for array in arrays:
        if type(array) is dispatch.numpy_array:
            array *= scale._on(array.ctx).as_np_ndarray().reshape(())
        elif array.stype == "default":
            array *= scale._on(array.ctx)
        else:  # times a number it stays sparse
            (array * float(scale.asscalar())).copyto(array)
    if check_isfinite:
        return value
    return total.as_np_ndarray() if type(arrays[0]) is dispatch.numpy_array else total


def check_sha1(filename: str, sha1_hash: str) -> bool:
    """True if the content of the file has that SHA-1, given as hexadecimal digits.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'empty')
    >>> open(path, 'w').close()
    >>> mx.gluon.utils.check_sha1(path, 'da39a3ee5e6b4b0d3255bfef95601890afd80709')
    True
    """
    digest = hashlib.sha1(usedforsecurity=False)
    with open(filename, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == sha1_hash


def replace_file(src: str, dst: str) -> None:
    """Move `src` to `dst` in one step, replacing an existing file; `src` is removed if that fails.

    Raises
    ------
    OSError
        If the file cannot be moved.

    Example
    -------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / 'new').write_text('new content')
    >>> mx.gluon.utils.replace_file(folder / 'new', folder / 'name')
    >>> (folder / 'name').read_text()
    'new content'
    """
    try:
        os.replace(src, dst)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(src)
        raise OSError(f"cannot move the downloaded file {src} to {dst} ({error}); retry the download") from error


def download(url: str, path: str | None = None, overwrite: bool = False, sha1_hash: str | None = None, retries: int = 5,
             verify_ssl: bool = True) -> str:
    """Download a file. It appears under its name only when it is complete.

    Parameters
    ----------
    url : str
    path : str, optional
        The file to write, or the folder to put it into; by default the current folder.
    overwrite : bool
        Download even if the file exists.
    sha1_hash : str, optional
        The SHA-1 that the content must have; an existing file with another content is replaced.
    retries : int
        The number of attempts. An interrupted one is continued if the server supports that.
    verify_ssl : bool
        Check the server's certificate.

    Returns
    -------
    str
        The path of the file.

    Raises
    ------
    UsageError
        If no file name can be made of the arguments, or `retries` is negative.
    MXNetError
        If the file cannot be downloaded (then the message names the place to put it by hand), or cannot be written; it is an OSError, too.
        Where the server's file has another SHA-1, it is also a UserWarning.

    Example
    -------
    >>> import os, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / 'there.txt').write_text('content')
    >>> path = mx.gluon.utils.download('https://host.example/there.txt', path=str(folder))   # it is there already
    >>> os.path.basename(path)
    'there.txt'
    """
    name = url.split("/")[-1]
    if path is None:
        path = name
        if not path:
            raise UsageError(f"download: no file name can be made of {url!r}; set `path`")
    else:
        path = os.path.expanduser(path)
        if os.path.isdir(path):
            path = os.path.join(path, name)
    if retries < 0:
        raise UsageError(f"download: `retries` must be at least 0, received {retries}")
    if not verify_ssl:
        warnings.warn(f"Unverified HTTPS request to {url} (verify_ssl=False): whoever stands in between may replace the file",
                      stacklevel=2)

    def missing():
        return not os.path.exists(path) or bool(sha1_hash and not check_sha1(path, sha1_hash))

    if not overwrite and not missing():
        return path
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    print(f"Downloading {path} from {url}...")
    if not downloads.fetch(url, path, sha1=sha1_hash, attempts=retries, verify=verify_ssl, wanted=lambda: overwrite or missing()):
        warnings.warn(f"File {path} was written by another process meanwhile; this download is dropped", stacklevel=2)
    return path


def _get_repo_url():
    """Return the root of the repository of datasets and models: ``$MXNET_GLUON_REPO`` or MXNet's own."""
    url = environment.get_str("MXNET_GLUON_REPO")
    return url if url.endswith("/") else url + "/"


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """Return the address of a file in that repository."""
    return f"{_get_repo_url()}{namespace}/{filename}"


def _indent(text: str, spaces: int):
    """`text` with all lines but the first moved right."""
    return text.replace("\n", "\n" + " " * spaces)


def _brief_print_list(items, limit: int = 7):
    """Return the items, quoted; the middle of long lists is omitted."""
    items = [f"'{item}'" for item in items]
    if len(items) > limit:
        items = [*items[:limit // 2], "...", *items[-(limit // 2 + limit % 2):]]
    return ", ".join(items)


class HookHandle:
    """Keeps a hook attached: `detach` takes it off, and so does leaving a ``with`` block."""

    def __init__(self) -> None:
        self._hooks_dict_ref: Callable[[], dict[int, Any] | None] | None = None
        self._id = 0

    def attach(self, hooks_dict: dict[int, Any], hook: Callable[..., Any]) -> None:
        """Add `hook` to the hooks of a block.

        Raises
        ------
        UsageError
            If this handle is attached already.
        """
        if self._hooks_dict_ref:
            raise UsageError("this handle holds a hook already: make another HookHandle")
        self._id = id(hook)
        hooks_dict[self._id] = hook
        self._hooks_dict_ref = weakref.ref(hooks_dict)

    def detach(self) -> None:
        """Take the hook off; nothing happens if it is off already."""
        hooks = self._hooks_dict_ref() if self._hooks_dict_ref is not None else None
        if hooks is not None:
            hooks.pop(self._id, None)

    def __getstate__(self) -> tuple[dict[int, Any] | None, int]:
        return self._hooks_dict_ref() if self._hooks_dict_ref is not None else None, self._id

    def __setstate__(self, state: Any) -> None:
        hooks, self._id = state
        self._hooks_dict_ref = weakref.ref(collections.OrderedDict() if hooks is None else hooks)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.detach()


def shape_is_known(shape: Any) -> bool:
    """True if no size of the shape is unknown: 0, or -1 where NumPy shapes are on.

    Raises
    ------
    UsageError
        If a size is less than that.
    """
    if shape is None:
        return False
    unknown = -1 if is_np_shape() else 0
    if not shape:
        return unknown == -1
    for size in shape:
        if size == unknown:
            return False
        if size < unknown:
            raise UsageError(f"the sizes of a shape cannot be less than {unknown}, received {tuple(shape)}")
    return True
