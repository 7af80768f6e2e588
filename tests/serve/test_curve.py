from mxnet.serve.curve import Curve, measured
from mxnet.serve.settings import Batching


def test_padding_only_where_it_was_measured_to_be_faster():
    flat, steep = Curve({1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0}), Curve({1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0})
    assert [flat.size(rows) for rows in (1, 2, 3, 5, 8, 100)] == [1, 2, 4, 8, 8, 8]
    assert [steep.size(rows) for rows in (1, 2, 3, 5, 8, 100)] == [1, 2, 2, 4, 8, 8]


def test_batches_grow_until_two_do_not_fit_into_the_bound():
    asked = []

    def linear(size):
        asked.append(size)
        return 0.010 + 0.001 * size

    assert measured(linear, Batching(0.05, 64)).largest == 8
    assert asked == [1, 2, 4, 8, 16]
    assert measured(linear, Batching(0.001, 64)).largest == 1  # one row runs in any case
    assert measured(linear, Batching(10, 24)).largest == 24


def test_batches_end_where_throughput_does():
    assert measured(lambda size: 0.001 * size, Batching(1, 64)).largest == 1
    assert measured(lambda size: 0.001 * max(size, 4), Batching(1, 64)).largest == 4
