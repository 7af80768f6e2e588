"""Values that nobody would write on purpose: shapes, numbers, types and attributes for calls."""
import numpy as np

from mxnet.ops import schema

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"]
INTEGERS = [0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 100, 127, 128, 255, 256, 1000, 32767, 65535, 65536, 65537, 10**6, 2**24 + 1, 2**31 - 1, 2**31,
            2**32 - 1, 2**32, 2**32 + 1, 10**12, 2**40, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30]
FLOATS = [0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 1e-8, 1e-45, 1e-310, 2.5, 1e4, 1e9, 2.0**31, 1e16, 2.0**63, 1e30, 3.5e38, 1e300, float("inf"),
          float("nan")]
TEXTS = ["", "0", "-1", "1", "2", "nan", "inf", "-inf", "None", "True", "(1, 2)", "()", "(1,", "[", "(2, -1)", "float32", "int64", "bfloat16",
         "float8", "max", "sum", "relu", "valid", "full", "null", "add", "write", "C", "NCHW", "x" * 300, "\0", "\ud800", "é", "1e400", "9" * 40,
         "__import__('os')", "a.b", "9" * 5000, "(" * 500, "default", "csr", "cpu(0)", "gpu(7)", "reflect", "avg", "lstm", "l2", "i,ij->j"]


def integer(rng):
    """A small number as often as not."""
    if rng.random() < 0.5:
        return rng.randrange(-4, 6)
    return rng.choice(INTEGERS) * rng.choice((1, 1, -1)) + rng.choice((0, 0, 0, -1))


def number(rng):
    return rng.choice(FLOATS) * rng.choice((1, 1, -1)) if rng.random() < 0.7 else rng.uniform(-3, 3)


def anything(rng):
    """A value of any kind that JSON can hold."""
    kind = rng.randrange(8)
    if kind == 0:
        return None
    if kind == 1:
        return rng.choice(TEXTS)
    if kind == 2:
        return rng.random() < 0.5
    if kind == 3:
        return [anything(rng) for _ in range(rng.randrange(4))]
    return integer(rng) if kind % 2 else number(rng)


def _integers(rng):
    count = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 9, 33))
    if rng.random() < 0.2:
        return [integer(rng)] * count
    return [rng.randrange(-2, 6) if rng.random() < 0.7 else integer(rng) if rng.random() < 0.9 else None for _ in range(count)]


def attribute(rng, declared):
    """A value for an attribute: mostly of its kind, and near what it should be."""
    if rng.random() < 0.12:
        return anything(rng)
    if declared.optional and rng.random() < 0.1:
        return None
    kind = declared.kind
    if declared.choices:
        return rng.choice(declared.choices)
    if kind is int:
        return integer(rng)
    if kind is float:
        return number(rng)
    if kind is bool:
        return rng.random() < 0.5
    if kind is str:
        return rng.choice(TEXTS)
    if kind == schema.Shape:
        return _integers(rng)
    if kind == schema.Floats:
        return [number(rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 9)))]
    if kind == schema.Axes:
        return rng.choice((None, integer(rng), rng.randrange(-3, 4), _integers(rng), [rng.randrange(-3, 4) for _ in range(rng.randrange(4))]))
    return rng.choice(DTYPES)


def shape(rng, near=()):
    """A shape: a neighbour of `near`, or any small one."""
    sizes = list(near)
    for _ in range(rng.choice((1, 1, 1, 2))):
        way = rng.randrange(9)
        if way == 0:
            sizes = [rng.randrange(5) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6)))]
        elif way == 1:
            sizes.insert(rng.randrange(len(sizes) + 1), rng.choice((0, 1, 1, 2, 3)))
        elif way == 2 and sizes:
            del sizes[rng.randrange(len(sizes))]
        elif way == 3:
            rng.shuffle(sizes)
        elif way == 4:
            sizes = []
        elif sizes:
            at = rng.randrange(len(sizes))
            sizes[at] = max(0, rng.choice((0, 0, 1, 1, 2, 3, 5, 17, sizes[at] + 1, sizes[at] - 1, sizes[at] * 2)))
    while np.prod(sizes, dtype=float) > 5000:
        sizes[sizes.index(max(sizes))] = 1
    return sizes


def element(rng):
    """A value of an array: numbers that are no number, no index, or the last of their type."""
    return rng.choice((float("nan"), float("inf"), float("-inf"), 0, 0, -1, 1, 2, -2, 3, 5, 100, -100, 127, -128, 255, 1e30, -1e30, 1e-40, 65504,
                       65536, 2**31 - 1, 2**31, -2**31, 2**53, 2**63 - 1, -2**63, 0.5, -0.5, 1e308, integer(rng)))
