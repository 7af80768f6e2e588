"""Downloads, and data sets of examples."""
from __future__ import annotations

import bz2
import gzip
import os
import pathlib
import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import MXNetError, data_dir
from ..downloads import DAMAGED, unpacked, why
from ..files import atomic_write, reported, scratch_folder
from ..io import DataIter

if TYPE_CHECKING:
    from ..io import DataBatch


def download(url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False, retries: int = 5) -> str:
    """Download a file unless it exists; return its path.

    Parameters
    ----------
    url : str
    fname : str, optional
        The path of the file; by default the last part of `url`.
    dirname : str, optional
        The folder of the file.
    overwrite : bool
        Download even if the file exists.
    retries : int
        The number of further attempts.

    Example
    -------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / 'there.txt').write_text('content')
    >>> path = mx.test_utils.download('https://host.example/there.txt', dirname=str(folder))   # it is there already
    >>> pathlib.Path(path).read_text()
    'content'
    """
    from ..gluon import utils
    if retries < 0:
        raise ValueError(f"download: number of retries should be at least 0, received {retries}")
    fname = url.split("/")[-1] if fname is None else fname
    path = fname if dirname is None else os.path.join(dirname, fname)
    utils.download(url, path=path, overwrite=overwrite, retries=retries)
    return path


_SERVER = "http://data.mxnet.io"
_MODEL_FILES = {
    "imagenet1k-inception-bn": ("imagenet/inception-bn/Inception-BN", 126),
    **{f"imagenet1k-resnet-{n}": (f"imagenet/resnet/{n}-layers/resnet-{n}", 0) for n in (18, 34, 50, 101, 152)},
    "imagenet1k-resnext-50": ("imagenet/resnext/50-layers/resnext-50", 0),
    "imagenet1k-resnext-101": ("imagenet/resnext/101-layers/resnext-101", 0),
    "imagenet1k-resnext-101-64x4d": ("imagenet/resnext/101-layers/resnext-101-64x4d", 0),
    "imagenet11k-resnet-152": ("imagenet-11k/resnet-152/resnet-152", 0),
    "imagenet11k-place365ch-resnet-152": ("imagenet-11k-place365-ch/resnet-152", 0),
    "imagenet11k-place365ch-resnet-50": ("imagenet-11k-place365-ch/resnet-50", 0),
}


def download_model(model_name: str, dst_dir: str = "./", meta_info: Mapping[str, Any] | None = None) -> tuple[str | None, int]:
    """Download a trained network of MXNet's old model gallery.

    Parameters
    ----------
    model_name : str
    dst_dir : str
    meta_info : dict, optional
        From the name of a model to a dict with the addresses ``symbol`` and ``params``.

    Returns
    -------
    tuple of (str or None, int)
        The prefix and epoch for `mx.model.load_checkpoint`; (None, 0) for an unknown name.

    Example
    -------
    >>> mx.test_utils.download_model('no-such-model', meta_info={})
    (None, 0)
    """
    if meta_info is None:
        meta_info = {name: {"symbol": f"{_SERVER}/models/{path}-symbol.json", "params": f"{_SERVER}/models/{path}-{epoch:04d}.params"}
                     for name, (path, epoch) in _MODEL_FILES.items()}
    if model_name not in meta_info:
        return None, 0
    meta = meta_info[model_name]
    for part in ("symbol", "params"):
        if part not in meta:
            raise MXNetError(f"download_model: the address `{part}` of {model_name} is missing")
    os.makedirs(dst_dir, exist_ok=True)
    prefix = os.path.join(dst_dir, model_name)
    download(meta["symbol"], prefix + "-symbol.json")
    download(meta["params"], prefix + "-0000.params")
    return prefix, 0


_MNIST_FILES = {"train_label": "train-labels-idx1-ubyte", "train_data": "train-images-idx3-ubyte",
                "test_label": "t10k-labels-idx1-ubyte", "test_data": "t10k-images-idx3-ubyte"}


def _find_mnist(name):
    """Return the path of an MNIST file, compressed or not, in the usual folders; download it if it is in none."""
    folders = [pathlib.Path(), pathlib.Path("data"), pathlib.Path(data_dir()) / "datasets" / "mnist"]
    for folder in folders:
        for file in (folder / f"{name}.gz", folder / name):
            if file.is_file():
                return file
    from ..gluon.utils import _get_repo_file_url
    url = _get_repo_file_url("gluon/dataset/mnist", f"{name}.gz")
    try:
        return pathlib.Path(download(url, dirname=str(folders[-1]), retries=0))
    except Exception as error:
        raise MXNetError(f"MNIST: {name}.gz is in none of the folders {', '.join(str(f.absolute()) for f in folders)}, and "
                         f"downloading {url} failed: {why(error)}; put the file into one of them") from error


def _read_idx(path):
    """Read the array of an IDX file, MNIST's format."""
    with (gzip.open(path) if path.suffix == ".gz" else open(path, "rb")) as f:
        try:
            content = f.read()
        except (OSError, EOFError, zlib.error) as error:
            raise MXNetError(f"{path} is damaged: {error}") from None
    ndim = content[3] if len(content) >= 4 and content[:3] == b"\0\0\x08" else 0
    head = 4 + 4 * ndim
    shape = struct.unpack(f">{ndim}I", content[4:head]) if ndim and len(content) >= head else ()
    if not shape or len(content) != head + int(np.prod(shape, dtype=object)):
        raise MXNetError(f"{path} is not an IDX file of bytes, or is truncated: it has {len(content)} bytes, its head says {shape or 'nothing'}")
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape)


def get_mnist() -> dict[str, np.ndarray]:
    """Return the MNIST digits as NumPy arrays.

    The four files are searched in the current folder, in ``data/`` and in ``$MXNET_HOME/datasets/mnist`` before they are downloaded.

    Returns
    -------
    dict
        ``train_data``, ``test_data``: float32 (n, 1, 28, 28) from 0 to 1; ``train_label``, ``test_label``: int8 (n,).

    Raises
    ------
    MXNetError
        If a file is neither found nor downloaded, or damaged.

    Example
    -------
    >>> import os, struct, tempfile
    >>> before = os.getcwd()
    >>> os.chdir(tempfile.mkdtemp())
    >>> for name in ('train', 't10k'):
    ...     with open(f'{name}-images-idx3-ubyte', 'wb') as file:
    ...         _ = file.write(struct.pack('>4i', 2051, 2, 28, 28) + bytes(2 * 28 * 28))
    ...     with open(f'{name}-labels-idx1-ubyte', 'wb') as file:
    ...         _ = file.write(struct.pack('>2i', 2049, 2) + bytes([7, 2]))
    >>> mnist = mx.test_utils.get_mnist()
    >>> os.chdir(before)
    >>> mnist['train_data'].shape, mnist['train_label'].tolist()
    ((2, 1, 28, 28), [7, 2])
    """
    arrays = {key: _read_idx(_find_mnist(name)) for key, name in _MNIST_FILES.items()}
    return {key: a.astype(np.int8) if a.ndim == 1 else a[:, None].astype(np.float32) / 255 for key, a in arrays.items()}


def get_mnist_ubyte() -> None:
    """Write the MNIST files, uncompressed, to ``data/``.

    Example
    -------
    >>> import os, struct, tempfile
    >>> before = os.getcwd()
    >>> os.chdir(tempfile.mkdtemp())
    >>> for name in ('train', 't10k'):
    ...     with open(f'{name}-images-idx3-ubyte', 'wb') as file:
    ...         _ = file.write(struct.pack('>4i', 2051, 2, 28, 28) + bytes(2 * 28 * 28))
    ...     with open(f'{name}-labels-idx1-ubyte', 'wb') as file:
    ...         _ = file.write(struct.pack('>2i', 2049, 2) + bytes([7, 2]))
    >>> mx.test_utils.get_mnist_ubyte()
    >>> files = sorted(os.listdir('data'))
    >>> os.chdir(before)
    >>> files[0], len(files)
    ('t10k-images-idx3-ubyte', 4)
    """
    os.makedirs("data", exist_ok=True)
    for name in _MNIST_FILES.values():
        target = pathlib.Path("data") / name
        source = _find_mnist(name)
        if not target.exists():
            with (gzip.open(source) if source.suffix == ".gz" else open(source, "rb")) as f:
                _write(target, f)


def get_mnist_iterator(batch_size: int, input_shape: Sequence[int], num_parts: int = 1, part_index: int = 0) -> tuple[DataIter, DataIter]:
    """Return iterators over MNIST's training and test digits; images are flat unless `input_shape` has 3 axes.

    Example
    -------
    >>> import os, struct, tempfile
    >>> before = os.getcwd()
    >>> os.chdir(tempfile.mkdtemp())
    >>> for name in ('train', 't10k'):
    ...     with open(f'{name}-images-idx3-ubyte', 'wb') as file:
    ...         _ = file.write(struct.pack('>4i', 2051, 2, 28, 28) + bytes(2 * 28 * 28))
    ...     with open(f'{name}-labels-idx1-ubyte', 'wb') as file:
    ...         _ = file.write(struct.pack('>2i', 2049, 2) + bytes([7, 2]))
    >>> training, test = mx.test_utils.get_mnist_iterator(batch_size=2, input_shape=(784,))
    >>> os.chdir(before)
    >>> next(test).data[0].shape
    (2, 784)
    """
    from ..io import MNISTIter
    get_mnist_ubyte()
    shared: dict[str, Any] = {"batch_size": batch_size, "flat": len(input_shape) != 3, "num_parts": num_parts,
              "part_index": part_index}
    return (MNISTIter(image="data/train-images-idx3-ubyte", label="data/train-labels-idx1-ubyte", shuffle=True, **shared),
            MNISTIter(image="data/t10k-images-idx3-ubyte", label="data/t10k-labels-idx1-ubyte", **shared))


def get_mnist_pkl() -> None:
    """Download the pickled MNIST of deeplearning.net into ``data/``.

    Example
    -------
    >>> import os, tempfile
    >>> before = os.getcwd()
    >>> os.chdir(tempfile.mkdtemp())
    >>> os.mkdir('data')
    >>> open('data/mnist.pkl.gz', 'w').close()
    >>> mx.test_utils.get_mnist_pkl()   # it is there already
    >>> os.chdir(before)
    """
    download("http://deeplearning.net/data/mnist/mnist.pkl.gz", dirname="data")


def get_cifar10() -> None:
    """Download CIFAR-10 as RecordIO files into ``data/cifar``, unless they exist.

    Example
    -------
    >>> import os, tempfile
    >>> before = os.getcwd()
    >>> os.chdir(tempfile.mkdtemp())
    >>> os.makedirs('data/cifar')
    >>> for name in ('train.rec', 'train.lst', 'test.rec', 'test.lst'):
    ...     open(f'data/cifar/{name}', 'w').close()
    >>> mx.test_utils.get_cifar10()   # they are there already
    >>> os.chdir(before)
    """
    if not all(os.path.exists(f"data/cifar/{part}.{kind}") for part in ("train", "test") for kind in ("rec", "lst")):
        get_zip_data("data", f"{_SERVER}/mxnet/data/cifar10.zip", "cifar10.zip")


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Download a zip file into a folder and unpack it there, unless the file exists.

    Parameters
    ----------
    data_dir : str
        The folder.
    url : str
    data_origin_name : str
        The name of the zip file.

    Example
    -------
    >>> import pathlib, tempfile, zipfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with zipfile.ZipFile(folder / 'data.zip', 'w') as archive:
    ...     archive.writestr('data.txt', '1 2')
    >>> mx.test_utils.get_zip_data(str(folder), 'https://host.example/data.zip', 'data.zip')   # it is there already
    >>> sorted(path.name for path in folder.iterdir())
    ['data.zip']
    """
    path = os.path.join(data_dir, data_origin_name)
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with scratch_folder(path) as made, reported(path, "unpack"):
        archive, content = os.path.join(made, "archive"), os.path.join(made, "content")
        download(url, fname=archive)
        try:
            with zipfile.ZipFile(archive) as opened:
                for member in opened.infolist():
                    unpacked(opened, member).close()
                    opened.extract(member, content)
        except DAMAGED as error:
            raise MXNetError(f"what {url} gave as {data_origin_name} is no zip file ({error}), and is removed") from error
        for folder, _, names in os.walk(content):
            target = os.path.join(data_dir, os.path.relpath(folder, content))
            os.makedirs(target, exist_ok=True)
            for name in names:
                os.replace(os.path.join(folder, name), os.path.join(target, name))
        os.replace(archive, path)  # last: the file marks a complete extraction


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Download a bz2 file into a folder and unpack it as `data_name`, unless that exists.

    Example
    -------
    >>> import bz2, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / 'data').write_text('1 2')
    >>> mx.test_utils.get_bz2_data(str(folder), 'data', 'https://host.example/data.bz2', 'data.bz2')   # it is there already
    """
    target, packed = os.path.join(data_dir, data_name), os.path.join(data_dir, data_origin_name)
    if not os.path.exists(target):
        download(url, fname=data_origin_name, dirname=data_dir)
        try:
            with bz2.open(packed) as f:
                _write(target, f)
        except (*DAMAGED, OSError) as error:
            raise MXNetError(f"what {url} gave as {data_origin_name} cannot be unpacked ({error}), and is removed") from error
        finally:
            os.remove(packed)


def _write(target, stream):
    with atomic_write(target) as out:
        shutil.copyfileobj(stream, out)


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """Return the path of the program im2rec: in the folder of the variable `home_env`, or of this installation.

    Raises
    ------
    OSError
        If there is none.

    Example
    -------
    >>> import os
    >>> os.path.basename(mx.test_utils.get_im2rec_path())
    'im2rec.py'
    """
    package = pathlib.Path(__file__).resolve().parent.parent
    home = os.environ.get(home_env)
    for folder in ([pathlib.Path(home), pathlib.Path(home).parent.parent] if home else []) + [package]:
        path = folder / "tools" / "im2rec.py"
        if path.is_file():
            return str(path)
    raise OSError(f"no tools/im2rec.py, neither in this package nor under ${home_env}: set it to a checkout of MXNet")


class DummyIter(DataIter):
    """Repeats the first batch of an iterator endlessly, to measure everything except the reading of data.

    Example
    -------
    >>> batches = mx.test_utils.DummyIter(mx.io.NDArrayIter(mx.nd.arange(4), batch_size=2))
    >>> next(batches).data[0].asnumpy(), next(batches).data[0].asnumpy()
    (array([0., 1.], dtype=float32), array([0., 1.], dtype=float32))
    """

    def __init__(self, real_iter: Any):
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.provide_data, self.provide_label = real_iter.provide_data, real_iter.provide_label
        self.the_batch = next(iter(real_iter))

    def __iter__(self) -> DummyIter:
        return self

    def next(self) -> DataBatch:
        """Return the first batch."""
        return self.the_batch
