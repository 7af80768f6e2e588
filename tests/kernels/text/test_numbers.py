import random

import numpy as np
import pytest

from mxnet.kernels.text import numbers as kernel

pytestmark = pytest.mark.skipif(not kernel._libsvm.available(), reason="no C++ compiler")
FLOAT = np.dtype("float32")


def numbers(content, width=1, dtype="float32"):
    rows, size, lines = kernel.comma_separated(bytearray(content), width, np.dtype(dtype))
    return rows.tolist(), size, lines


@pytest.mark.parametrize("digits", [
    "0", "-0", "1", "+1", "1.", ".5", "-.5", "1e3", "1E-3", "1e+3", "0.1", "16777217",
    "9007199254740993", "123456789012345678901234567890", "3.4028234e38",
    "1.17549435e-38", "1e-45", "1.40129846432481707e-45", "1e-400", "0.00000000000000000000000000000123", "2.2250738585072014e-308", "1e22", "1e23",
    "0.1e-22", "3.141592653589793238462643383279", "5e-324"])
def test_every_form_is_what_python_reads(digits):
    rows, size, lines = numbers(f"{digits}\n".encode())
    if rows or "e-400" not in digits:  # what lies outside of double precision is not plain
        assert rows == [[float(np.float32(float(digits)))]] and (size, lines) == (len(digits) + 1, 1)
        assert np.signbit(np.float32(rows[0][0])) == digits.startswith("-")


def test_random_numbers_are_what_python_reads():
    rng = random.Random(3)
    for _ in range(2000):
        value = rng.choice((rng.random(), rng.uniform(-1e6, 1e6), rng.uniform(-1, 1) * 10 ** rng.randint(-30, 30)))
        digits = rng.choice((repr(value), f"{value:.18e}", f"{value:.6f}", f"{value:g}"))
        assert numbers(f"{digits}\n".encode())[0] == [[float(np.float32(float(digits)))]], digits


@pytest.mark.parametrize("content", [
    b"x\n", b"1_0\n", b"1,2\n", b"\0\n", b"nan\n", b"inf\n", b"1e999\n", b"1e39\n", b"-1e39\n", b"1e\n", b"1e+\n", b"-\n", b".\n", b"1 2\n", b"0x1\n",
    b"1\x0c\n", b"", b"1", b","])
def test_what_is_not_plain_is_left(content):
    assert numbers(b"5\n" + content) == ([[5]] if content[-1:] in (b"\n", b"") else [], 2 if content[-1:] in (b"\n", b"") else 0,
                                         1 if content[-1:] in (b"\n", b"") else 0)


def test_rows_and_empty_lines():
    assert numbers(b"\n 1 ,\t2\r\n\n\n3,4\n\n", 2) == ([[1, 2], [3, 4]], 16, 6)
    assert numbers(b"1,2\n3\n4,5\n", 2) == ([[1, 2]], 4, 1)
    assert numbers(b"1,2\n", 3) == ([], 0, 0)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers(dtype):
    largest = np.iinfo(dtype).max if dtype == "int32" else 10**18 - 1  # 19 digits are left to Python
    assert numbers(f"{largest},-{largest},+7,007\n".encode(), 4, dtype)[0] == [[largest, -largest, 7, 7]]
    for content in (b"1.0\n", b"9223372036854775808\n", b"2147483648\n" if dtype == "int32" else b"1e3\n"):
        assert numbers(content, 1, dtype) == ([], 0, 0)


def test_sparse_rows():
    rows, size, lines = kernel.sparse(bytearray(b"1.5 0:10 2:3.5\n\n-2\n0 qid:7 1 5:-1e-3 # x:y\n1 9:1\n"), 9)
    assert (rows.labels.tolist(), rows.starts.tolist(), rows.columns.tolist()) == ([1.5, -2, 0], [0, 2, 2, 4], [0, 2, 1, 5])
    assert rows.values.tolist() == [10, 3.5, 1, float(np.float32(-1e-3))]
    assert (size, lines) == (43, 4)  # column 9 of 9 is not there


@pytest.mark.parametrize("line", [b"a", b"# x", b"1:2 0:1", b"1 2:1 2:1", b"1 2:1 1:1", b"1 -1:1", b"1 +1:1",
                                  b"1 1:", b"1 1:x", b"1 1:2x", b"1 1:1:1", b"1 8:1", b"1 qi", b"1 10000000000000000000:1"])
def test_what_is_not_a_plain_example_is_left(line):
    rows, size, lines = kernel.sparse(bytearray(b"1 1:1\n" + line + b"\n"), 8)
    assert (rows.labels.tolist(), rows.columns.tolist(), size, lines) == ([1], [1], 6, 1)


def test_without_a_kernel(without_kernels):
    with without_kernels():
        assert kernel.comma_separated(bytearray(b"1\n"), 1, FLOAT) is None and kernel.sparse(bytearray(b"1\n"), 1) is None
