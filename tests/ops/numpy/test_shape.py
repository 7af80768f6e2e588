"""NumPy operators that change shapes and pad; values from MXNet 1.9.1 where nothing else is said."""
import pytest

from mxnet import np
from numpy_checks import call

pytestmark = pytest.mark.usefixtures("numpy_mode")


def test_pad_of_a_vector_reads_the_first_of_two_pairs():
    a = np.array([1.0, 2])
    assert call("_npi_pad", a, pad_width="((1,), (2,))") == [0, 1, 2, 0, 0]
    assert call("_npi_pad", a, pad_width="((1, 5), (2, 5))", mode="edge") == [1, 1, 2, 2, 2]
    assert call("_npi_pad", a, pad_width="((1, 2),)") == [0, 1, 2, 0, 0]  # as NumPy has it; MXNet fails


def test_ediff1d_wraps_numbers_around():
    assert np.ediff1d(np.array([1, 5, 9], dtype="uint8"), to_begin=-1.5, to_end=300).asnumpy().tolist() == [255, 4, 4, 44]
