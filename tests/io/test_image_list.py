"""Lists of images: what lines may look like, and which are refused."""
import pytest

from mxnet.base import MXNetError
from mxnet.io.image_list import read_image_list


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "x.lst").write_bytes(text.encode("utf-8", "surrogateescape"))
        return str(tmp_path / "x.lst")
    return write


def test_fields_stand_between_tabs(written):
    path = written("7\t1.5\t-2\ta dir/b c.png\r\n\n3\t0\tü.png")
    assert list(read_image_list(path)) == [(7, [1.5, -2], "a dir/b c.png"), (3, [0], "ü.png")]
    first = next(read_image_list(path))
    assert (first.number, first.labels, first.path) == (7, [1.5, -2], "a dir/b c.png")


def test_or_between_spaces_where_there_are_no_tabs(written):
    assert list(read_image_list(written("7 1.5 -2  a.png\n"))) == [(7, [1.5, -2], "a.png")]


def test_a_name_that_is_no_utf8_stays_what_it_is(written):
    (found,) = read_image_list(written("0\t1\t\udce4.png"))
    assert found.path == "\udce4.png"


def test_so_many_labels(written):
    path = written("0\t1\t2\tx\ta.png\n")
    assert next(read_image_list(path, 2)) == (0, [1, 2], "a.png")  # nobody asked for the third
    assert next(read_image_list(written("0\t1\t2"), 2)).labels == [1, 2]  # with the labels known, a path may be missing
    with pytest.raises(MXNetError, match=r"x.lst, line 1: expected a number, 3 labels and a path, separated by tabs; found '0.t1.ta.png'"):
        next(read_image_list(written("0\t1\ta.png"), 3))


def test_lines_without_labels(written):
    path = written("0\ta.png\n")
    assert list(read_image_list(path, unlabelled=True)) == [(0, [], "a.png")]
    with pytest.raises(MXNetError, match="line 1: expected a number, labels and a path"):
        list(read_image_list(path))
    with pytest.raises(MXNetError, match="line 1: expected a number"):
        list(read_image_list(written("0"), unlabelled=True))


@pytest.mark.parametrize("line", ["one\t1\ta.png", "0\tcat\ta.png", "0.5\t1\ta.png", "0\t\ta.png", "nonsense"])
def test_other_lines(written, line):
    path = written(f"0\t1\tgood.png\n\n{line}\n1\t2\tgood.png\n")
    with pytest.raises(MXNetError, match="x.lst, line 3: expected a number, labels and a path, separated by tabs; found"):
        list(read_image_list(path))
    said = []
    assert [found.number for found in read_image_list(path, report=said.append)] == [0, 1]
    assert len(said) == 1 and f"line 3: expected a number, labels and a path, separated by tabs; found {line!r}" in said[0]


def test_no_file(tmp_path):
    with pytest.raises(MXNetError, match="cannot open .*none.lst: No such file"):
        next(read_image_list(str(tmp_path / "none.lst")))
