import io

import numpy as np
import pytest

import serve_checks
from mxnet.serve.errors import RequestError
from mxnet.serve.images import Preprocessing
from mxnet.serve.payloads import arrays_of, encoded, from_npy, top_classes
from mxnet.serve.settings import Limits
from mxnet.serve.tensors import TensorSpec

FLOAT = np.dtype(np.float32)
DATA, WHOLE = [TensorSpec("data", FLOAT, (-1, 2))], [TensorSpec("data", np.dtype(np.int32), (-1, 2))]
TWO = [TensorSpec("a", FLOAT, (-1, 1)), TensorSpec("b", FLOAT, (-1,))]


def arrays(content_type, body, inputs=DATA, limits=None):
    return [a.tolist() for a in arrays_of(content_type, body, inputs, Preprocessing(), limits or Limits())]


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("content_type, body", [
    ("application/json", b"[[1, 2], [3, 4]]"), ("", b"[[1, 2], [3, 4]]"), ("application/json", b'{"instances": [[1, 2], [3, 4]]}'),
    ("application/json", b'{"data": [[1, 2], [3, 4]]}'), ("text/csv", b"1,2\r\n3, 4\n\n"), ("application/x-npy", npy(np.array([[1, 2], [3, 4]]))),
    ("application/x-npy", npy(np.array([[1., 2], [3, 4]], order="F"))),
])
def test_ways_to_send_two_rows(content_type, body):
    assert arrays(content_type, body) == [[[1, 2], [3, 4]]]
    assert arrays(content_type, body, WHOLE) == [[[1, 2], [3, 4]]]


def test_a_row_without_a_batch_and_several_inputs():
    assert arrays("application/json", b"[1, 2]") == [[[1, 2]]]
    assert arrays("application/json", b'{"b": [2], "a": [[1]]}', TWO) == [[[1]], [2]]
    assert arrays("text/csv", b"1,2,3,4\n", [TensorSpec("data", FLOAT, (-1, 2, 2))]) == [[[[1, 2], [3, 4]]]]


@pytest.mark.parametrize("content_type, body, inputs, status, text", [
    ("application/xml", b"", DATA, 415, "taken are application/json"),
    ("text/csv", b"1", TWO, 415, r"inputs \['a', 'b'\]: send JSON"),
    ("application/json", b'{"a": [1]}', TWO, 400, r"inputs \['a', 'b'\], received \['a'\]"),
    ("text/csv", b"1,x\n", DATA, 400, "CSV of numbers"),
    ("text/csv", b"\n", DATA, 400, "received nothing"),
    ("text/csv", b"1,2\n1\n", DATA, 400, r"must have equally many cells, received \[1, 2\]"),
    ("text/csv", b"1,2.5\n", WHOLE, 400, "takes integers"),
    ("text/csv", b"1,inf\n", WHOLE, 400, "takes integers"),
    ("application/x-npy", npy(np.array([[1, 2.5]])), WHOLE, 400, "does not fit the input 'data' of type INT32"),
    ("application/json", b"[1, 2, 3]", DATA, 400, r"has shape \[-1, 2\], received \[1, 3\]"),
    ("image/jpeg", serve_checks.picture((1, 2, 3)), DATA, 415, "takes no images"),
])
def test_refusals(content_type, body, inputs, status, text):
    with pytest.raises(RequestError, match=text) as caught:
        arrays(content_type, body, inputs)
    assert caught.value.status == status


@pytest.mark.parametrize("body, text", [
    (b"", "an .npy file is expected, received 0 bytes"),
    (b"\x93NUMPY\x01\x00\xff\xff{}", "an .npy file is expected, received 12 bytes that begin with b'"),
    (b"\x93NUMPY\x01\x00\x02\x00{}", "header of the .npy file can't be read"),
    (npy(np.ones(3))[:-1], "holds 23 bytes of values, its header says 24"), (npy(np.array(["a"])), "must hold numbers"),
    (npy(np.zeros(3)).replace(b"(3,)", b"(10**9,)"), "can't be read"), (npy(np.zeros(3)).replace(b"(3,)", b"(99999999999999,)"), "its header says"),
    (npy(np.zeros(3)).replace(b"(3,)", b"(-1,)"), r"must have a shape, received \(-1,\)"),
    (npy(np.zeros(3)).replace(b"'<f8'", b"'|O' "), "must hold numbers"),
    (npy(np.zeros(3)).replace(b"'<f8'", b"'zz'"), "can't be read"),
])
def test_npy_files_that_are_not_believed(body, text):
    with pytest.raises(RequestError, match=text):
        from_npy(body)


def test_answers():
    out = np.array([[1, 2]], np.float32)
    assert encoded("", [out]) == encoded("text/html, */*", [out]) == (b"[[1.0, 2.0]]", "application/json")
    assert encoded("*/*", [out, out]) == (b"[[[1.0, 2.0]], [[1.0, 2.0]]]", "application/json")
    assert encoded("text/csv;q=1, application/json", [out]) == (b"1.0,2.0\n", "text/csv")
    assert from_npy(encoded("application/x-npy", [out])[0]).tolist() == [[1, 2]]
    with pytest.raises(RequestError, match="accepted is 'text/html'") as caught:
        encoded("text/html", [out])
    assert caught.value.status == 406


def test_the_likeliest_classes():
    rows = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]], np.float64)
    assert top_classes(rows, "abc", 2) == [[{"probability": 0.7, "class": "b"}, {"probability": 0.2, "class": "c"}],
                                           [{"probability": 0.5, "class": "a"}, {"probability": 0.3, "class": "c"}]]
