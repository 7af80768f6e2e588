"""Arrays without axes and without elements: what MXNet 1.9.1 does with those of `no_axes.py` is done here, too."""
import json
import math
import pathlib
import pickle
import sys
import warnings

import numpy as np
import pytest

import mxnet as mx

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from no_axes import cases, outcome, saved  # noqa: E402

RECORD = json.loads((pathlib.Path(__file__).parent / "no_axes.json").read_text())


def same(found, expected):
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float) and isinstance(found, float):
        return found == expected or math.isnan(found) and math.isnan(expected) or abs(found - expected) <= 2e-4
    return found == expected


def test_as_recorded():
    wrong, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, settings, run in cases():
            if name not in RECORD["cases"]:
                continue
            expected = RECORD["results"][RECORD["cases"][name]]
            try:
                found = outcome(settings, run)
            except Exception as error:
                found = repr(error)
            count += 1
            if not same(found, expected):
                wrong.append((name, found, expected))
    assert not wrong and count == len(RECORD["cases"]) > 1500


@pytest.mark.parametrize("create", [mx.nd.array, mx.np.array])
@pytest.mark.parametrize("value, dtype", [(5.0, "float32"), (7, "int32"), (1.5, "float64")])
def test_scalars_are_stored_outside_of_numpys_shapes_too(create, value, dtype):
    x = create(value, dtype=dtype)
    for loaded in (pickle.loads(pickle.dumps(x)), *saved([x, x]), saved({"a": x})["a"]):
        assert loaded.shape == () and np.dtype(loaded.dtype).name == dtype and float(loaded) == value
    with mx.np_shape(True):
        assert float(saved(x)[0]) == value


def test_scalars_cross_from_one_mode_into_the_other(tmp_path):
    with mx.np_shape(True):
        mx.nd.save(str(tmp_path / "a"), {"scalar": mx.nd.array(5.0)})
        mx.nd.save(str(tmp_path / "b"), [mx.nd.array(np.zeros((0, 3)))])
    assert mx.nd.load(str(tmp_path / "a"))["scalar"].asscalar() == 5
    with pytest.raises(mx.base.MXNetError, match=r"shape \(0, 3\) was saved with NumPy's shape semantics; load it inside mx.np_shape\(True\)"):
        mx.nd.load(str(tmp_path / "b"))  # where a size of 0 is an unknown one


def test_a_pickle_without_values_is_refused():
    with pytest.raises(mx.base.MXNetError, match="the pickle holds an NDArray of unknown shape"):
        mx.nd.NDArray(None).__setstate__({"handle": bytearray(b"\xc9\xfa\x93\xf9" + bytes(8))})


def test_scalars_as_numbers():
    x = mx.nd.array(2.5)
    assert float(x) == 2.5 and int(x) == 2 and np.array([x, x]).tolist() == [2.5, 2.5] and f"{float(mx.nd.ones(1)):.1f}" == "1.0"
    with pytest.raises(TypeError, match=r"a number needs an array of one element, received shape \(2,\)"):
        float(mx.nd.ones(2))
    assert x[:] is x
    with pytest.raises(ValueError, match=r"reshape: 2 entries expected, shape \(\) has 1"):
        mx.nd.ones(2).reshape(())


def test_a_batch_without_rows_is_flattened():
    with mx.np_shape(True):
        x = mx.nd.zeros((0, 3, 4))
        assert x.reshape((0, -1)).shape == (0, 12) and x.reshape((0, -1, 2)).shape == (0, 6, 2) and x.reshape((-1, 4)).shape == (0, 4)
        assert mx.nd.SequenceMask(x, mx.nd.zeros(3), use_sequence_length=True).shape == (0, 3, 4)


def test_in1d_has_one_axis():
    assert mx.np.in1d(mx.np.array([[1, 2], [3, 1]]), mx.np.array([1])).tolist() == [True, False, False, True]
    assert mx.np.in1d(mx.np.array(1), mx.np.array([1, 2]), invert=True).tolist() == [False]
