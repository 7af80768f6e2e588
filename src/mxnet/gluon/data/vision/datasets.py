"""Published datasets of images, and datasets made of image files."""
import gzip
import os
import shutil
import struct
import tarfile
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import base, image, ndarray, recordio
from .... import files as local
from ....base import MXNetError
from ....downloads import why
from ....io.image_list import read_image_list
from ....suggestions import shortened
from ....util import is_np_array
from ...utils import _get_repo_file_url, check_sha1, download
from .. import dataset

__all__ = ["MNIST", "FashionMNIST", "CIFAR10", "CIFAR100", "ImageRecordDataset", "ImageFolderDataset", "ImageListDataset"]

_DATASETS = os.path.join(base.data_dir(), "datasets")


def _array(values):
    """Convert a NumPy array to an mx array of the same type."""
    if is_np_array():
        from .... import numpy as mx_np
        return mx_np.array(values, dtype=values.dtype)
    return ndarray.array(values, dtype=values.dtype)


class _Unreadable(MXNetError):
    """Raised for a local file with invalid content, which is then downloaded again."""


def _fetch(dataset: Any, namespace: str, name: str, sha1, root: str, read):
    """Return the result of `read` on a local file, which is downloaded if it is missing or unreadable.

    A file with another content than was published is read all the same: that is how one puts data of one's own there.
    """
    path = os.path.join(root, name)
    trouble = f"{path} is missing"
    if os.path.exists(path):
        try:
            content = read(path)
        except _Unreadable as error:
            trouble = str(error)
        else:
            if not check_sha1(path, sha1):
                warnings.warn(f"{path} is not the file that was published as {dataset} (its SHA-1 differs); it is used as it is. "
                              "Delete it to download the published one.", stacklevel=6)
            return content
    url = _get_repo_file_url(f"gluon/dataset/{namespace}", name)
    try:
        download(url, path=root, overwrite=os.path.exists(path), sha1_hash=sha1)
    except Exception as error:
        raise MXNetError(f"{dataset}: {trouble}, and it cannot be downloaded from {url} ({why(error)}); put the file into {root}") from error
    return read(path)


def _read_idx(path: str, ndim: int):
    """Return a file of MNIST's format, gzipped: a magic number, the sizes, and bytes."""
    magic = 2048 + ndim
    try:
        with gzip.open(path, "rb") as f:
            header = f.read(4 + 4 * ndim)
            if len(header) < 4 + 4 * ndim or header[:4] != struct.pack(">I", magic):
                raise _Unreadable(f"{path} is no MNIST file: it must start with {magic}, received {shortened(header[:4])}")
            shape = struct.unpack(f">{ndim}I", header[4:])
            content = np.frombuffer(bytearray(f.read()), np.uint8)  # a bytearray, because torch insists on writable memory
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise _Unreadable(f"cannot read {path}: {error}") from error
    expected = int(np.prod(shape, dtype=object))
    if content.size != expected:
        raise _Unreadable(f"{path} announces {' x '.join(map(str, shape))} = {expected} bytes but holds {content.size}")
    return content.reshape(shape)


class MNIST(dataset._DownloadedDataset):
    """Handwritten digits: grey images (28, 28, 1), uint8, and labels 0 to 9.

    Files in `root` are used; those that are missing are downloaded.

    Parameters
    ----------
    root : str
        By default ``$MXNET_HOME/datasets/mnist``.
    train : bool
        The 60,000 training images; otherwise the 10,000 test images.
    transform : callable, optional
        ``transform(data, label)`` returns the element.

    Raises
    ------
    MXNetError
        If a file is missing or unreadable and cannot be downloaded.

    Example
    -------
    >>> import gzip, os, struct, tempfile, warnings
    >>> folder = tempfile.mkdtemp()
    >>> with gzip.open(os.path.join(folder, 't10k-images-idx3-ubyte.gz'), 'wb') as file:
    ...     _ = file.write(struct.pack('>4i', 2051, 2, 28, 28) + bytes(2 * 28 * 28))
    >>> with gzip.open(os.path.join(folder, 't10k-labels-idx1-ubyte.gz'), 'wb') as file:
    ...     _ = file.write(struct.pack('>2i', 2049, 2) + bytes([7, 2]))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # these are not the published files
    ...     images = mx.gluon.data.vision.MNIST(folder, train=False)
    >>> len(images), images[0][0].shape, int(images[0][1])
    (2, (28, 28, 1), 7)
    """

    _namespace = "mnist"
    _published = {
        "train-images-idx3-ubyte.gz": "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d",
        "train-labels-idx1-ubyte.gz": "2a80914081dc54586dbdf242f9805a6b8d2a15fc",
        "t10k-images-idx3-ubyte.gz": "c3a25af1f52dad7f726cce8cacb138654b760d48",
        "t10k-labels-idx1-ubyte.gz": "763e7fa3757d93b0cdec073cef058b2004252c17",
    }

    def __init__(self, root: str = os.path.join(_DATASETS, "mnist"), train: bool = True, transform: Callable[..., Any] | None = None) -> None:
        self._train = train
        super().__init__(root, transform)

    def _read(self, part: Any, ndim: int):
        name = f"{'train' if self._train else 't10k'}-{part}-idx{ndim}-ubyte.gz"
        return _fetch(type(self).__name__, self._namespace, name, self._published[name], self._root, lambda path: _read_idx(path, ndim))

    def _get_data(self) -> None:
        label, data = self._read("labels", 1).astype(np.int32), self._read("images", 3)
        if len(label) != len(data):
            raise MXNetError(f"{type(self).__name__}: {self._root} holds {len(data)} images but {len(label)} labels")
        self._label = _array(label) if is_np_array() else label
        self._data = _array(data[..., None])


class FashionMNIST(MNIST):
    """Articles of clothing: grey images (28, 28, 1), uint8, and labels 0 to 9; as large as `MNIST` and with the same parameters.

    Example
    -------
    >>> import gzip, os, struct, tempfile, warnings
    >>> folder = tempfile.mkdtemp()
    >>> with gzip.open(os.path.join(folder, 't10k-images-idx3-ubyte.gz'), 'wb') as file:
    ...     _ = file.write(struct.pack('>4i', 2051, 2, 28, 28) + bytes(2 * 28 * 28))
    >>> with gzip.open(os.path.join(folder, 't10k-labels-idx1-ubyte.gz'), 'wb') as file:
    ...     _ = file.write(struct.pack('>2i', 2049, 2) + bytes([9, 2]))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # these are not the published files
    ...     images = mx.gluon.data.vision.FashionMNIST(folder, train=False)
    >>> len(images), images[0][0].shape, int(images[0][1])
    (2, (28, 28, 1), 9)
    """

    _namespace = "fashion-mnist"
    _published = {
        "train-images-idx3-ubyte.gz": "0cf37b0d40ed5169c6b3aba31069a9770ac9043d",
        "train-labels-idx1-ubyte.gz": "236021d52f1e40852b06a4c3008d8de8aef1e40b",
        "t10k-images-idx3-ubyte.gz": "626ed6a7c06dd17c0eec72fa3be1740f146a2863",
        "t10k-labels-idx1-ubyte.gz": "17f9ab60e7257a1620f4ad76bbbaf857c3920701",
    }

    def __init__(self, root: str = os.path.join(_DATASETS, "fashion-mnist"), train: bool = True,
                 transform: Callable[..., Any] | None = None) -> None:
        super().__init__(root, train, transform)


class CIFAR10(dataset._DownloadedDataset):
    """Small photographs: colour images (32, 32, 3), uint8, and labels 0 to 9.

    Files in `root` are used; if some are missing, the published archive is downloaded and unpacked.

    Parameters
    ----------
    root : str
        By default ``$MXNET_HOME/datasets/cifar10``.
    train : bool
        The 50,000 training images; otherwise the 10,000 test images.
    transform : callable, optional
        ``transform(data, label)`` returns the element.

    Raises
    ------
    MXNetError
        If a file is missing or damaged and cannot be downloaded.

    Example
    -------
    >>> import os, tempfile, warnings
    >>> folder = tempfile.mkdtemp()
    >>> with open(os.path.join(folder, 'test_batch.bin'), 'wb') as file:
    ...     _ = file.write(bytes([3, *bytes(3072)]) * 2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # these are not the published files
    ...     images = mx.gluon.data.vision.CIFAR10(folder, train=False)
    >>> len(images), images[0][0].shape, int(images[0][1])
    (2, (32, 32, 3), 3)
    """

    _namespace = "cifar10"
    _archive = "cifar-10-binary.tar.gz", "fab780a1e191a7eda0f345501ccd62d20f7ed891"
    _train_data = {
        "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
        "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
        "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
        "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
        "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
    }
    _test_data = {"test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c"}
    _labels = 1  # bytes of labels before each image

    def __init__(self, root: str = os.path.join(_DATASETS, "cifar10"), train: bool = True, transform: Callable[..., Any] | None = None) -> None:
        self._train = train
        super().__init__(root, transform)

    def _read_batch(self, filename: str):
        """Return the images (N, 32, 32, 3) and labels of one file."""
        try:
            content = np.fromfile(filename, np.uint8)
        except OSError as error:
            raise _Unreadable(f"cannot read {filename}: {error}") from error
        size = self._labels + 3 * 32 * 32
        if not content.size or content.size % size:
            raise _Unreadable(f"{filename} must hold records of {size} bytes, but has {content.size} bytes: "
                              "it is truncated or no such file")
        content = content.reshape(-1, size)
        images = content[:, self._labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return images, content[:, self._label_byte()].astype(np.int32)

    def _label_byte(self):
        return 0

    def _get_data(self) -> None:
        files = self._train_data if self._train else self._test_data
        read = self._read_parts(files)
        data, label = (np.concatenate(part) for part in zip(*read))
        self._data = _array(data)
        self._label = _array(label) if is_np_array() else label

    def _read_parts(self, files):
        """Images and labels of each file; the archive is fetched and unpacked if one is missing or unreadable."""
        paths = [os.path.join(self._root, name) for name in files]
        trouble = None
        try:
            read = [self._read_batch(path) for path in paths]
        except _Unreadable as error:
            trouble = error
        else:
            odd = [path for path, sha1 in zip(paths, files.values()) if not check_sha1(path, sha1)]
            if odd:
                warnings.warn(f"{', '.join(odd)}: not what was published as {type(self).__name__} (the SHA-1 differs); used as it is. "
                              "Delete it to download the published one.", stacklevel=5)
            return read
        name, sha1 = self._archive
        url = _get_repo_file_url(f"gluon/dataset/{self._namespace}", name)
        try:
            archive = download(url, path=self._root, sha1_hash=sha1)
        except Exception as error:
            raise MXNetError(f"{type(self).__name__}: {trouble}, and it cannot be downloaded from {url} ({why(error)}); "
                             f"put the files into {self._root}") from error
        wanted = {*self._train_data, *self._test_data}
        with tarfile.open(archive) as tar:
            for member in tar:
                name = os.path.basename(member.name)  # wherever in the archive a file is, it goes into our folder
                if name in wanted and member.isfile():
                    source = tar.extractfile(member)
                    if source is not None:
                        with source, local.atomic_write(os.path.join(self._root, name)) as target:
                            shutil.copyfileobj(source, target)
        return [self._read_batch(path) for path in paths]


class CIFAR100(CIFAR10):
    """Small photographs: colour images (32, 32, 3), uint8, and labels of 100 classes or of the 20 groups they form.

    Parameters
    ----------
    root : str
        By default ``$MXNET_HOME/datasets/cifar100``.
    fine_label : bool
        Labels of the 100 classes; otherwise of the 20 groups.
    train : bool
        The 50,000 training images; otherwise the 10,000 test images.
    transform : callable, optional
        ``transform(data, label)`` returns the element.

    Example
    -------
    >>> import os, tempfile, warnings
    >>> folder = tempfile.mkdtemp()
    >>> with open(os.path.join(folder, 'test.bin'), 'wb') as file:
    ...     _ = file.write(bytes([3, 42, *bytes(3072)]) * 2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # this is not the published file
    ...     images = mx.gluon.data.vision.CIFAR100(folder, fine_label=True, train=False)
    >>> len(images), images[0][0].shape, int(images[0][1])
    (2, (32, 32, 3), 42)
    """

    _namespace = "cifar100"
    _archive = "cifar-100-binary.tar.gz", "a0bb982c76b83111308126cc779a992fa506b90b"
    _train_data = {"train.bin": "e207cd2e05b73b1393c74c7f5e7bea451d63e08e"}
    _test_data = {"test.bin": "8fb6623e830365ff53cf14adec797474f5478006"}
    _labels = 2

    def __init__(self, root: str = os.path.join(_DATASETS, "cifar100"), fine_label: bool = False, train: bool = True,
                 transform: Callable[..., Any] | None = None) -> None:
        self._fine_label = fine_label
        super().__init__(root, train, transform)

    def _label_byte(self) -> int:
        return int(self._fine_label)


class ImageRecordDataset(dataset.RecordFileDataset):
    """The images and labels of a RecordIO file. The index is beside it, with the ending ``.idx``.

    Parameters
    ----------
    filename : str
        The ``.rec`` file.
    flag : int
        1 gives colour images (H, W, 3), 0 grey ones (H, W, 1).
    transform : callable, optional
        ``transform(data, label)`` returns the element.

    Example
    -------
    >>> import numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'one.rec')
    >>> with mx.recordio.MXIndexedRecordIO(path[:-4] + '.idx', path, 'w') as file:
    ...     header = mx.recordio.IRHeader(0, 7.0, 0, 0)
    ...     file.write_idx(0, mx.recordio.pack_img(header, np.zeros((4, 6, 3), np.uint8), img_fmt='.png'))
    >>> data = mx.gluon.data.vision.ImageRecordDataset(path)
    >>> data[0][0].shape, data[0][1]
    ((4, 6, 3), 7.0)
    """

    def __init__(self, filename: str, flag: int = 1, transform: Callable[..., Any] | None = None) -> None:
        super().__init__(filename)
        self._flag = flag
        self._transform = transform

    def __getitem__(self, idx: int) -> Any:
        header, content = recordio.unpack(super().__getitem__(idx))
        sample = image.imdecode(content, self._flag), header.label
        return self._transform(*sample) if self._transform is not None else sample


class _ImageFiles(dataset.Dataset):
    """Images and labels, where ``items`` holds the file and the label of each."""

    def __init__(self, flag, transform: Callable[..., Any] | None = None) -> None:
        self._flag = flag
        self._transform = transform
        self.items: list[tuple[str, Any]] = []

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        sample = image.imread(path, self._flag), label
        return self._transform(*sample) if self._transform is not None else sample

    def __len__(self) -> int:
        return len(self.items)


class ImageFolderDataset(_ImageFiles):
    """Image files in folders, one for each class: ``root/car/1.jpg``, ``root/bus/7.png``.

    Parameters
    ----------
    root : str
    flag : int
        1 gives colour images (H, W, 3), 0 grey ones (H, W, 1).
    transform : callable, optional
        ``transform(data, label)`` returns the element.

    Attributes
    ----------
    synsets : list of str
        The folder's name of each label.
    items : list of tuple
        File and label of each image.

    Example
    -------
    >>> import cv2, numpy as np, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for name in ('bus', 'car'):
    ...     os.mkdir(os.path.join(folder, name))
    ...     _ = cv2.imwrite(os.path.join(folder, name, '1.png'), np.zeros((4, 6, 3), np.uint8))
    >>> data = mx.gluon.data.vision.ImageFolderDataset(folder)
    >>> data.synsets, len(data), data[1][0].shape, data[1][1]
    (['bus', 'car'], 2, (4, 6, 3), 1)
    """

    _exts = [".jpg", ".jpeg", ".png"]

    def __init__(self, root: str, flag: int = 1, transform: Callable[..., Any] | None = None) -> None:
        super().__init__(flag, transform)
        self._root = os.path.expanduser(root)
        self.synsets: list[str] = []
        for folder in sorted(os.listdir(self._root)):
            path = os.path.join(self._root, folder)
            if not os.path.isdir(path):
                warnings.warn(f"Ignoring {path}, which is not a directory.", stacklevel=2)
                continue
            self._add_class(folder, path)

    def _add_class(self, name: str, path: str) -> None:
        label = len(self.synsets)
        self.synsets.append(name)
        for entry in sorted(os.listdir(path)):
            ext = os.path.splitext(entry)[1]
            if ext.lower() in self._exts:
                self.items.append((os.path.join(path, entry), label))
            else:
                warnings.warn(f"Ignoring {os.path.join(path, entry)} of type {ext}. Only support {', '.join(self._exts)}", stacklevel=3)


class ImageListDataset(_ImageFiles):
    """Image files that a list names.

    Parameters
    ----------
    root : str
        The folder that their paths start from.
    imglist : str or list
        A ``.lst`` file as `tools/im2rec` writes it: number, labels and path, with tabs between; or lists of labels and, last, the path.
    flag : int
        1 gives colour images (H, W, 3), 0 grey ones (H, W, 1).

    Raises
    ------
    MXNetError
        If a line is not such; the text names it.

    Example
    -------
    >>> import cv2, numpy as np, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = cv2.imwrite(os.path.join(folder, 'a.png'), np.zeros((4, 6, 3), np.uint8))
    >>> data = mx.gluon.data.vision.ImageListDataset(folder, [[7, 'a.png']])
    >>> data[0][0].shape, float(data[0][1])
    ((4, 6, 3), 7.0)
    """

    def __init__(self, root: str = ".", imglist: str | list[Any] | None = None, flag: int = 1) -> None:
        super().__init__(flag)
        root = os.path.expanduser(root)
        if isinstance(imglist, str):
            entries: Any = ((*labels, path) for _, labels, path in read_image_list(os.path.join(root, imglist), unlabelled=True))
        else:
            entries = imglist or []
        for i, line in enumerate(entries):
            try:
                *labels, path = line
                label = np.array(labels, dtype=np.float32).reshape(-1)
                self.items.append((os.path.join(root, path), label[0] if len(label) == 1 else label))
            except (TypeError, ValueError):
                raise MXNetError(f"ImageListDataset: imglist[{i}] must be labels, all of them numbers, and a path; "
                                 f"received {shortened(line)}") from None
