from mxnet import np


def test_unique_elements():
    x = np.array([[3, 1], [3, 2]])
    found = np.unique_all(x)
    assert found.values.tolist() == [1, 2, 3] and found.indices.tolist() == [1, 3, 0] and found.counts.tolist() == [1, 1, 2]
    assert found.inverse_indices.tolist() == [2, 0, 2, 1] == np.unique_inverse(x).inverse_indices.tolist()
    assert np.unique_values(x).tolist() == [1, 2, 3]
