"""The numbers hang together as their names say."""
import numpy as np

from mxnet.ops.image.constants import EIGENVECTORS, FROM_YIQ, LUMA, TO_YIQ


def test_the_weights_of_brightness_sum_to_one():
    assert abs(sum(LUMA) - 1) < 1e-12 and TO_YIQ[0] == LUMA


def test_principal_components_are_orthonormal():
    np.testing.assert_allclose(np.array(EIGENVECTORS).T @ EIGENVECTORS, np.eye(3), atol=2e-4)


def test_there_and_back_is_the_same_colour():
    np.testing.assert_allclose(np.array(FROM_YIQ) @ TO_YIQ, np.eye(3), atol=5e-3)
