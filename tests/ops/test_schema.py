"""Attributes with bounds."""
from typing import Annotated, Optional

import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops.registry import get
from mxnet.ops.schema import COUNTS, MAX_COUNT, AtLeast1, Attribute, Axes, Between, Finite, Fraction, Shape


@pytest.mark.parametrize("annotation, expected, good, bad", [
    (AtLeast1, "an integer of at least 1", {"1": 1, 7: 7}, ["0", -3]),
    (Fraction, "a number from 0 to 1", {0: 0.0, "0.5": 0.5, 1.0: 1.0}, ["-0.1", 1.5, "nan"]),
    (Optional[Finite], "a number from -3.4028235e+38 to 3.4028235e+38", {"-3e38": -3e38, None: None}, ["nan", "inf", float("-inf"), 4e38]),
    (Optional[Annotated[int, Between(high=3)]], "an integer up to 3", {None: None, "None": None, -5: -5}, [4]),
])
def test_bounds(annotation, expected, good, bad):
    attribute = Attribute("operator", "name", annotation, None, True)
    assert attribute.expected == expected
    assert {v: attribute.parse(v) for v in good} == good
    for value in bad:
        with pytest.raises(ValueError):
            attribute.parse(value)


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts_have_an_end(name):
    for annotation in (int, AtLeast1, Optional[int]):
        attribute = Attribute("operator", name, annotation, None, True)
        assert attribute.parse("16384") == MAX_COUNT and attribute.expected.endswith("16384")
        with pytest.raises(ValueError):
            attribute.parse(10**12)


@pytest.mark.parametrize("operator, attributes", [("SliceChannel", {"num_outputs": "1000000000000"}),
                                                  ("_split_v2", {"sections": 10**12, "indices": ()}),
                                                  ("amp_multicast", {"num_outputs": 10**12}), ("multi_sgd_update", {"num_weights": "70000"}),
                                                  ("_contrib_quantized_concat", {"num_args": "1000000000000"})])
def test_operators_refuse_endless_lists(operator, attributes):
    name, = (n for n in attributes if n in COUNTS)
    with pytest.raises(MXNetError, match=f"{operator}: `{name}` must be an integer up to 16384.*, received"):
        get(operator).parse(attributes, partial=True)


def test_calls_and_files_refuse_them():
    with pytest.raises(MXNetError, match="`num_outputs` must be an integer up to 16384"):
        mx.nd.split(mx.nd.ones((2, 2)), num_outputs=10**12)
    with pytest.raises(MXNetError, match="`num_outputs` must be an integer up to 16384"):
        mx.sym.split(mx.sym.var("x"), num_outputs=10**12)
    text = mx.sym.split(mx.sym.var("x"), num_outputs=2, name="cut").tojson()
    with pytest.raises(MXNetError, match="node 'cut': SliceChannel: `num_outputs` must be an integer up to 16384"):
        mx.sym.load_json(text.replace('"num_outputs": "2"', '"num_outputs": "1000000000000"'))


def test_an_operator_has_no_endless_outputs():
    with pytest.raises(MXNetError, match=r"amp_multicast: 65537 outputs asked for, at most 65536 are possible"):
        get("amp_multicast").outputs({"num_outputs": (1 << 16) + 1})


def test_arrays_without_axes_are_numbers():
    for kind in (np.array, mx.np.array):
        assert Attribute("operator", "name", Axes, None, True).parse(kind(1)) == 1
        assert Attribute("operator", "name", Shape, None, True).parse(kind(2)) == (2,)
        assert Attribute("operator", "name", float, None, True).parse(kind(0.5)) == 0.5
    with pytest.raises(MXNetError, match="clip: `a_min` must be a number, received"):
        mx.nd.clip(mx.nd.ones((2,)), mx.nd.array([0, 1]), 1)


def test_a_type_may_be_that_of_an_array():
    one = mx.nd.array([1], dtype="int32")
    assert mx.nd.one_hot(one, 3, dtype=one).dtype is np.int32 and mx.nd.cast(mx.nd.ones(2), dtype=one).dtype is np.int32


def test_none_is_an_end_and_no_size():
    x = mx.nd.ones((2, 3))
    assert mx.nd.slice(x, begin=(None, 1), end=(1, None)).shape == (1, 2)
    assert mx.nd.slice(x, begin="(None, 1)", end="(1, None)").shape == (1, 2)
    with pytest.raises(mx.MXNetError, match=r"broadcast_to: `shape` must be a tuple of integers, received \(2, None\)"):
        mx.nd.broadcast_to(mx.nd.ones((1, 3)), shape=(2, None))


@pytest.mark.parametrize("value", [(1, 2 ** 63), "(1, 18446744073709551615)", [-2 ** 63 - 1], 2 ** 64])
def test_sizes_have_64_bits(value):
    with pytest.raises(MXNetError, match="`stride` must be a tuple of integers"):
        mx.nd.im2col(mx.nd.ones((1, 1, 4, 4)), kernel=(2, 2), stride=value)
    with pytest.raises(MXNetError, match="`end` must be a tuple of integers or None"):
        mx.nd.slice(mx.nd.ones((4, 4)), begin=(0, None), end=value)
