import gzip
import hashlib
import io
import struct
import tarfile

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import DataLoader
from mxnet.gluon.data.vision import (
    CIFAR10,
    CIFAR100,
    MNIST,
    FashionMNIST,
    ImageFolderDataset,
    ImageListDataset,
    ImageRecordDataset,
    datasets,
    transforms,
)

digits = np.random.RandomState(0).randint(0, 256, (5, 28, 28)).astype("uint8")
labels = np.array([3, 1, 4, 1, 5], "uint8")


def idx(array):
    header = struct.pack(f">{array.ndim + 1}I", 2048 + array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes())


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(url, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(datasets, "download", refuse)


@pytest.fixture
def mnist(tmp_path):
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(idx(digits if part == "train" else digits[:2]))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx(labels if part == "train" else labels[:2]))
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*is not the file that was published")
@pytest.mark.parametrize("cls", [MNIST, FashionMNIST])
def test_mnist(mnist, cls):
    dataset = cls(str(mnist))
    data, label = dataset[2]
    assert (len(dataset), data.shape, data.dtype, label, type(label)) == (5, (28, 28, 1), np.uint8, 4, np.int32)
    assert (data.asnumpy()[..., 0] == digits[2]).all()
    assert len(cls(str(mnist), train=False)) == 2
    assert cls(str(mnist), transform=lambda data, label: (data.shape[0], label + 1))[0] == (28, 4)


@pytest.mark.filterwarnings("ignore:.*is not the file that was published")
def test_mnist_as_mxnets_profiler_tutorial_reads_it(mnist):
    dataset = MNIST(root=str(mnist), train=True).transform_first(transforms.ToTensor())
    data, label = next(iter(DataLoader(dataset, batch_size=4)))
    assert (data.shape, label.asnumpy().tolist()) == ((4, 1, 28, 28), [3, 1, 4, 1])
    assert data.asnumpy()[1, 0] == pytest.approx(digits[1] / 255.0)


def test_files_of_ones_own_are_used_with_a_warning(mnist):
    with pytest.warns(UserWarning) as caught:
        MNIST(str(mnist))
    assert [str(w.message).replace(f"{mnist}/", "").partition(" (")[0] for w in caught] == [
        "train-labels-idx1-ubyte.gz is not the file that was published as MNIST",
        "train-images-idx3-ubyte.gz is not the file that was published as MNIST"]
    assert {w.filename for w in caught} == {__file__}


def test_published_files_are_recognized(mnist, monkeypatch):
    published = {path.name: hashlib.sha1(path.read_bytes()).hexdigest() for path in mnist.iterdir()}
    monkeypatch.setattr(MNIST, "_published", published)
    assert len(MNIST(str(mnist))) == 5


def test_missing_files_are_downloaded(mnist, monkeypatch):
    images = mnist / "train-images-idx3-ubyte.gz"
    content = images.read_bytes()
    images.unlink()
    asked = []

    def download(url, path, overwrite, sha1_hash):
        asked.append((url.rpartition("gluon/")[2], overwrite, sha1_hash))
        images.write_bytes(content)

    monkeypatch.setattr(datasets, "download", download)
    with pytest.warns(UserWarning, match="train-labels-idx1-ubyte.gz is not the file"):
        assert len(MNIST(str(mnist))) == 5
    assert asked == [("dataset/mnist/train-images-idx3-ubyte.gz", False, "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d")]


@pytest.mark.filterwarnings("ignore:.*is not the file that was published")
@pytest.mark.parametrize(("content", "text"), [
    (None, "train-images-idx3-ubyte.gz is missing, and it cannot be downloaded from .*no network.*put the file into"),
    (b"", "is no MNIST file"),
    (b"not gzipped", "cannot read .*train-images-idx3-ubyte.gz"),
    (idx(digits)[:-20], "cannot read .*train-images-idx3-ubyte.gz"),
    (idx(labels), "it must start with 2051"),
    (gzip.compress(struct.pack(">4I", 2051, 0xffffffff, 0xffffffff, 0xffffffff) + b"x"), "announces 4294967295 x .* but holds 1"),
    (gzip.compress(struct.pack(">4I", 2051, 5, 28, 28) + digits.tobytes()[1:]), "announces 5 x 28 x 28 = 3920 bytes but holds 3919"),
], ids=["missing", "empty", "not gzipped", "truncated", "labels", "huge", "one byte short"])
def test_damaged_files_are_named(mnist, content, text):
    path = mnist / "train-images-idx3-ubyte.gz"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(mx.MXNetError, match=text):
        MNIST(str(mnist))


@pytest.mark.filterwarnings("ignore:.*is not the file that was published")
def test_images_and_labels_must_agree(mnist):
    (mnist / "train-labels-idx1-ubyte.gz").write_bytes(idx(labels[:4]))
    with pytest.raises(mx.MXNetError, match="holds 5 images but 4 labels"):
        MNIST(str(mnist))


photos = np.random.RandomState(1).randint(0, 256, (3, 3, 32, 32)).astype("uint8")


def cifar(first_bytes):
    return b"".join(bytes(first) + photo.tobytes() for first, photo in zip(first_bytes, photos))


@pytest.mark.filterwarnings("ignore:.*not what was published")
def test_cifar10(tmp_path):
    for i in range(1, 6):
        (tmp_path / f"data_batch_{i}.bin").write_bytes(cifar([[i], [7], [8]]))
    (tmp_path / "test_batch.bin").write_bytes(cifar([[9], [0], [1]]))
    dataset = CIFAR10(str(tmp_path))
    data, label = dataset[4]
    assert (len(dataset), data.shape, data.dtype, label) == (15, (32, 32, 3), np.uint8, 7)
    assert (data.asnumpy() == photos[1].transpose(1, 2, 0)).all()
    assert [int(label) for _, label in [CIFAR10(str(tmp_path), train=False)[i] for i in range(3)]] == [9, 0, 1]


@pytest.mark.filterwarnings("ignore:.*not what was published")
@pytest.mark.parametrize(("fine", "expected"), [(False, [1, 3, 5]), (True, [2, 4, 6])])
def test_cifar100(tmp_path, fine, expected):
    (tmp_path / "train.bin").write_bytes(cifar([[1, 2], [3, 4], [5, 6]]))
    dataset = CIFAR100(str(tmp_path), fine_label=fine)
    assert [int(dataset[i][1]) for i in range(3)] == expected
    assert (dataset[2][0].asnumpy() == photos[2].transpose(1, 2, 0)).all()


def test_cifar_unpacks_its_archive_into_its_folder_only(tmp_path, monkeypatch):
    root = tmp_path / "root"

    def download(url, path, sha1_hash):
        assert url.endswith("gluon/dataset/cifar100/cifar-100-binary.tar.gz")
        target = root / "cifar-100-binary.tar.gz"
        with tarfile.open(target, "w:gz") as tar:
            for name, content in (("../escaped.bin", b"x"), ("cifar-100-binary/train.bin", cifar([[1, 2]] * 3))):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return str(target)

    monkeypatch.setattr(datasets, "download", download)
    assert len(CIFAR100(str(root))) == 3
    assert sorted(path.name for path in tmp_path.rglob("*.bin")) == ["train.bin"]


@pytest.mark.parametrize(("content", "text"), [
    (None, "CIFAR100: cannot read .*train.bin.*no network.*put the files into"), (b"", "records of 3074 bytes"), (b"x" * 3075, "has 3075 bytes")])
def test_damaged_cifar_is_named(tmp_path, content, text):
    if content is not None:
        (tmp_path / "train.bin").write_bytes(content)
    with pytest.raises(mx.MXNetError, match=text):
        CIFAR100(str(tmp_path))


@pytest.fixture
def pictures(tmp_path):
    cv2 = pytest.importorskip("cv2")
    for folder, name, value in (("bus", "b.png", 10), ("bus", "a.PNG", 20), ("car", "c.png", 30)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes(cv2.imencode(".png", np.full((4, 6, 3), value, "uint8"))[1].tobytes())
    return tmp_path


def test_image_folder(pictures):
    (pictures / "car" / "notes.txt").write_text("no image")
    (pictures / "stray.png").write_text("no folder")
    with pytest.warns(UserWarning) as caught:
        dataset = ImageFolderDataset(str(pictures))
    assert [str(w.message).replace(str(pictures), "") for w in caught] == [
        "Ignoring /car/notes.txt of type .txt. Only support .jpg, .jpeg, .png", "Ignoring /stray.png, which is not a directory."]
    assert dataset.synsets == ["bus", "car"]
    assert [(path.replace(str(pictures), ""), label) for path, label in dataset.items] == [("/bus/a.PNG", 0), ("/bus/b.png", 0), ("/car/c.png", 1)]
    data, label = dataset[2]
    assert (data.shape, data.asnumpy().max(), label) == ((4, 6, 3), 30, 1)
    (pictures / "car" / "notes.txt").unlink()
    (pictures / "stray.png").unlink()
    assert ImageFolderDataset(str(pictures), flag=0)[0][0].shape == (4, 6, 1)
    assert ImageFolderDataset(str(pictures), transform=lambda data, label: label)[2] == 1


def test_image_list(pictures):
    (pictures / "all.lst").write_text("0\t1.0\tbus/b.png\n7\t2.0\t3.5\tcar/c.png\n")
    dataset = ImageListDataset(str(pictures), "all.lst")
    assert (len(dataset), dataset[0][1], dataset[1][1].tolist()) == (2, 1.0, [2.0, 3.5])
    assert dataset[1][0].asnumpy().max() == 30
    assert ImageListDataset(str(pictures), [[4, "bus/a.PNG"]], flag=0)[0][1] == 4
    (pictures / "bad.lst").write_text("0\t1.0\tbus/b.png\n1\tx\tcar/c.png\n")
    with pytest.raises(mx.MXNetError, match="bad.lst, line 2: expected a number, labels and a path, separated by tabs; found"):
        ImageListDataset(str(pictures), "bad.lst")


def test_image_records(pictures, tmp_path):
    path = str(tmp_path / "a.rec")
    writer = mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), path, "w")
    for i, name in enumerate(["bus/b.png", "car/c.png"]):
        writer.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, i + 0.5, i, 0), (pictures / name).read_bytes()))
    writer.close()
    dataset = ImageRecordDataset(path)
    data, label = dataset[1]
    assert (len(dataset), data.shape, data.asnumpy().max(), label) == (2, (4, 6, 3), 30, 1.5)
    assert ImageRecordDataset(path, flag=0, transform=lambda data, label: (data.shape, label))[0] == ((4, 6, 1), 0.5)
    loader = DataLoader(dataset, 2, num_workers=2)  # each worker reads the file for itself
    for _ in range(2):
        assert [label.asnumpy().tolist() for _, label in loader] == [[0.5, 1.5]]
