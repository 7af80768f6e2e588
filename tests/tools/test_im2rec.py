import hashlib
import itertools
import os
import signal

import cv2
import numpy as np
import pytest

from mxnet.recordio import MXIndexedRecordIO, MXRecordIO, unpack, unpack_img
from mxnet.tools import im2rec, rec


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "images"
    for kind, size in (("cats", (20, 30)), ("dogs/deep", (40, 24))):
        (folder / kind).mkdir(parents=True)
        for i in range(3):
            y, x = np.mgrid[:size[0], :size[1]]
            cv2.imwrite(str(folder / kind / f"{i}.png"), np.stack([x * 5, y * 4, x + y + i], -1).astype(np.uint8))
    (folder / "cats" / "notes.txt").write_text("no image")
    return folder


def run(*args):
    return im2rec.main([str(arg) for arg in args])


def read(path):
    reader = MXRecordIO(path, "r")
    return [unpack_img(record) for record in iter(reader.read, None)]


def test_list_of_one_folder(tmp_path, root):
    assert run(tmp_path / "x", root / "cats", "--list", "--no-shuffle") == 0
    assert (tmp_path / "x.lst").read_text() == "0\t0.000000\t0.png\n1\t0.000000\t1.png\n2\t0.000000\t2.png\n"


def test_recursive_list_is_shuffled_as_mxnet_shuffles(tmp_path, root, capsys):
    run(tmp_path / "x", root, "--list", "--recursive")
    assert (tmp_path / "x.lst").read_text() == (
        "2\t0.000000\tcats/2.png\n5\t1.000000\tdogs/deep/2.png\n0\t0.000000\tcats/0.png\n"
        "4\t1.000000\tdogs/deep/1.png\n3\t1.000000\tdogs/deep/0.png\n1\t0.000000\tcats/1.png\n")
    assert capsys.readouterr().out == "cats 0\ndogs/deep 1\n"


def test_chunks_and_ratios(tmp_path, root):
    run(tmp_path / "x", root, "--list", "--recursive", "--no-shuffle", "--chunks", 2, "--train-ratio", 0.34, "--test-ratio", 0.34)
    names = sorted(p.name for p in tmp_path.glob("*.lst"))
    assert names == [f"x_{i}_{part}.lst" for i in (0, 1) for part in ("test", "train", "val")]
    assert [(tmp_path / f"x_1_{part}.lst").read_text().split("\t")[0] for part in ("test", "train", "val")] == ["3", "4", "5"]


def test_extensions(tmp_path, root):
    run(tmp_path / "x", root / "cats", "--list", "--exts", ".jpg", ".txt")
    assert (tmp_path / "x.lst").read_text() == "0\t0.000000\tnotes.txt\n"


@pytest.mark.parametrize("threads", [1, 3])
def test_pack(tmp_path, root, threads):
    run(tmp_path / "x", root, "--list", "--recursive")
    assert run(tmp_path / "x", root, "--encoding", ".png", "--quality", 3, "--num-thread", threads) == 0
    images = read(tmp_path / "x.rec")
    assert [(header.id, header.label) for header, _ in images] == [(2, 0), (5, 1), (0, 0), (4, 1), (3, 1), (1, 0)]
    assert (images[0][1] == cv2.imread(str(root / "cats/2.png"))).all()
    reader = MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "r")
    assert reader.keys == [2, 5, 0, 4, 3, 1]
    assert unpack(reader.read_idx(3))[0].id == 3
    assert not [p for p in os.listdir(tmp_path) if p.startswith(".")]


def test_resize_and_crop(tmp_path, root):
    (tmp_path / "x.lst").write_text("0\t1\tcats/0.png\n1\t1\tdogs/deep/0.png\n")
    run(tmp_path / "x", root, "--resize", 12)
    assert [image.shape for _, image in read(tmp_path / "x.rec")] == [(12, 18, 3), (20, 12, 3)]
    run(tmp_path / "x", root, "--center-crop", "--encoding", ".png")
    first, second = (image for _, image in read(tmp_path / "x.rec"))
    assert (first == cv2.imread(str(root / "cats/0.png"))[:, 5:25]).all()
    assert (second == cv2.imread(str(root / "dogs/deep/0.png"))[8:32]).all()


def test_gray_pass_through_and_labels(tmp_path, root):
    (tmp_path / "x.lst").write_text("0\t1\t2.5\tcats/0.png\n")
    run(tmp_path / "x", root, "--color", 0)
    header, image = unpack_img(MXRecordIO(tmp_path / "x.rec", "r").read())
    assert header.label == 1 and image.ndim == 2
    run(tmp_path / "x", root, "--pass-through", "--pack-label")
    header, content = unpack(MXRecordIO(tmp_path / "x.rec", "r").read())
    assert header.label.tolist() == [1, 2.5]
    assert content == (root / "cats/0.png").read_bytes()


@pytest.mark.parametrize("color", [-1, 0, 1])
def test_pixels_are_those_of_opencv(tmp_path, color):
    y, x = np.mgrid[:61, :83]
    picture = np.stack([x * 3, y * 4, x + y], -1).astype(np.uint8)
    for name, image in (("colour", picture), ("gray", picture[:, :, 0])):
        cv2.imwrite(str(tmp_path / f"{name}.jpg"), image)
    with open(tmp_path / "gray.jpg", "rb") as f:
        content = f.read()
    turned = b"\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
    (tmp_path / "turned.jpg").write_bytes(content[:2] + turned + content[2:])
    (tmp_path / "x.lst").write_text("0\t1\tcolour.jpg\n1\t1\tgray.jpg\n2\t1\tturned.jpg\n")
    assert run(tmp_path / "x", tmp_path, "--color", color, "--encoding", ".png") == 0
    reader = MXRecordIO(tmp_path / "x.rec", "r")
    for name in ("colour", "gray", "turned"):
        expected = cv2.imread(str(tmp_path / f"{name}.jpg"), color)
        assert np.array_equal(unpack_img(reader.read(), -1)[1], expected)
        assert expected.shape[:2] == ((83, 61) if name == "turned" and color >= 0 else (61, 83))


def test_quality(tmp_path, root):
    (tmp_path / "x.lst").write_text("0\t1\tcats/0.png\n")
    sizes = []
    for quality in (10, 95):
        run(tmp_path / "x", root, "--quality", quality)
        sizes.append((tmp_path / "x.rec").stat().st_size)
    assert sizes[0] < sizes[1]


def test_unreadable_images_and_bad_lines_are_reported_and_left_out(tmp_path, root, capsys):
    (tmp_path / "x.lst").write_text("0\t1\tcats/0.png\n1\t1\tcats/notes.txt\nnonsense\n2\tb\tcats/1.png\n3\t1\tnone.png\n4\t1\tcats/2.png\n")
    assert run(tmp_path / "x", root) == 0
    assert [header.id for header, _ in read(tmp_path / "x.rec")] == [0, 4]
    captured = capsys.readouterr()
    assert "notes.txt: 8 bytes that are no image" in captured.err
    assert "none.png: No such file or directory" in captured.err
    assert "x.lst, line 3: expected a number, labels and a path, separated by tabs; found 'nonsense'" in captured.err
    assert "x.lst, line 4: expected a number, labels and a path" in captured.err
    assert "Packed 2 images, left out 2 that could not be read" in captured.out
    assert "100%" in captured.err


def test_an_interrupted_run_leaves_the_old_files(tmp_path, root, monkeypatch):
    (tmp_path / "x.lst").write_text("0\t1\tcats/0.png\n1\t1\tcats/1.png\n")
    run(tmp_path / "x", root)
    before = {name: (tmp_path / name).read_bytes() for name in ("x.rec", "x.idx")}

    def interrupted(args, entry):
        if entry[0] == 1:
            raise KeyboardInterrupt
        return b"new"

    monkeypatch.setattr(im2rec, "encode_image", interrupted)
    assert run(tmp_path / "x", root) == 130
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert sorted(os.listdir(tmp_path)) == ["images", "x.idx", "x.lst", "x.rec"]


def test_an_interrupt_while_threads_encode_ends_the_run(tmp_path, root, monkeypatch):
    # Whichever image is being encoded: the locks of `concurrent.futures` stayed taken now and then, and the program waited for ever.
    (tmp_path / "x.lst").write_text("".join(f"{i}\t1\tcats/0.png\n" for i in range(80)))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for last in range(60):
            numbers = itertools.count()

            def interrupted(args, entry, numbers=numbers, last=last):
                if next(numbers) == last:
                    os.kill(os.getpid(), signal.SIGINT)
                return b"new"

            monkeypatch.setattr(im2rec, "encode_image", interrupted)
            assert run(tmp_path / "x", root, "--num-thread", 2) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(os.listdir(tmp_path)) == ["images", "x.lst"]


def test_the_checksum_is_that_of_the_file(tmp_path, root, capsys):
    run(tmp_path / "x", root, "--list", "--recursive")
    run(tmp_path / "x", root, "--num-thread", 2)
    digest = hashlib.sha1((tmp_path / "x.rec").read_bytes()).hexdigest()
    assert capsys.readouterr().out.endswith(f"Packed 6 images; SHA-1 {digest}\n")
    assert rec.verify(str(tmp_path / "x.rec"), str(tmp_path / "x.idx"), images=True) == (6, [], digest)


def test_command_line_errors(tmp_path, root, capsys):
    assert run(tmp_path / "x", root) == 1
    assert "Did not find any list file with prefix" in capsys.readouterr().err
    for arguments, message in ((["--train-ratio", "0.8", "--test-ratio", "0.5", "--list"], "add up to more than 1"),
                               (["--chunks", "0"], "must be at least 1"), (["--encoding", ".gif"], "invalid choice")):
        with pytest.raises(SystemExit) as caught:
            run(tmp_path / "x", root, *arguments)
        assert caught.value.code == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(tmp_path / "x", root / "none")
    assert "is no folder" in capsys.readouterr().err
