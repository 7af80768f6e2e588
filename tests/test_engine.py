import mxnet as mx


def test_bulk_size():
    start = mx.engine.set_bulk_size(5)
    assert mx.engine.set_bulk_size(7) == 5
    with mx.engine.bulk(10):
        assert mx.engine.set_bulk_size(11) == 10
    assert mx.engine.set_bulk_size(start) == 7


def test_bulk_ends_with_an_error():
    start = mx.engine.set_bulk_size(5)
    try:
        with mx.engine.bulk(10):
            raise KeyError
    except KeyError:
        pass
    assert mx.engine.set_bulk_size(start) == 5
