import torch

import mxnet as mx
from mxnet import nd
from mxnet.ndarray import memory_format as order

LAST = torch.channels_last


def weight():
    return nd.arange(24).reshape((2, 3, 2, 2)).copy()


def test_values_and_shapes_stay():
    x = weight()
    before = x.asnumpy()
    order.channels_last(x)
    assert x._data.is_contiguous(memory_format=LAST) and not x._data.is_contiguous()
    assert x.shape == (2, 3, 2, 2) and (x.asnumpy() == before).all()
    order.standard(x)
    assert x._data.is_contiguous() and (x.asnumpy() == before).all()


def test_what_others_look_at_stays_where_it_is():
    for other in (lambda x: x.as_torch().numpy(), lambda x: x.as_torch().detach(), lambda x: x[1], lambda x: x.reshape((-1,))):
        x = weight()
        held = other(x)
        order.channels_last(x)
        assert x._data.is_contiguous()
        held[:] = 7
        assert (x.asnumpy() == 7).any()
    row = weight()[0:1]
    order.channels_last(row)
    assert row._data.is_contiguous()


def test_only_arrays_of_four_axes():
    x = nd.ones((2, 3, 4))
    order.channels_last(x)
    assert x._data.is_contiguous()


def test_as_another_array_has_them():
    x, y = weight(), weight().astype("float64")
    order.channels_last(x)
    order.like(y, x)
    assert y._data.is_contiguous(memory_format=LAST) and y.dtype.__name__ == "float64" and (y.asnumpy() == x.asnumpy()).all()
    address = y._data.data_ptr()
    order.like(y, x)
    assert y._data.data_ptr() == address


def test_in_order_and_same():
    t = torch.arange(24).reshape(2, 3, 2, 2)
    last = t.contiguous(memory_format=LAST)
    assert order.in_order(t) is t
    view = order.in_order(last)
    assert view.is_contiguous() and view.data_ptr() == last.data_ptr() and view.shape == (2, 2, 2, 3)
    assert order.same(t, t.clone()) and order.same(last, last.clone()) and not order.same(t, last)
    # Along an axis of size 1 strides say nothing.
    one = torch.ones(2, 1, 2, 2)
    assert order.same(one, one.contiguous(memory_format=LAST))


def test_handing_memory_out_puts_it_back_in_order():
    x = weight()
    order.channels_last(x)
    assert x.as_torch().is_contiguous() and mx.nd.from_dlpack(x.to_dlpack_for_read()).shape == (2, 3, 2, 2)


def test_rows_of_arrays_in_another_order_share_memory():
    for select in (lambda x: x[1], lambda x: x[1:2], lambda x: x[1][0:1], lambda x: x.detach()[1], lambda x: x.as_np_ndarray()[1]):
        x = weight()
        order.channels_last(x)
        select(x)[:] = 70
        assert (x.asnumpy() == 70).sum() == select(x).size
    x = weight().as_np_ndarray()
    order.channels_last(x)
    x[0:1][:] = 70
    assert (x.asnumpy() == 70).sum() == 12


def test_rows_of_trained_weights_and_of_their_gradients_share_memory():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, in_channels=3), mx.gluon.nn.BatchNorm(in_channels=4))
    net.initialize()
    net.hybridize()
    for _ in range(2):
        with mx.autograd.record():
            out = net(nd.ones((2, 3, 8, 8)))
        out.backward()
    assert not net[0].weight.data()._data.is_contiguous()
    net[0].weight.data()[0][:] = 7
    net[0].weight.grad()[1][:] = 8
    assert (net[0].weight.data().asnumpy() == 7).sum() == 27 and (net[0].weight.grad().asnumpy() == 8).sum() == 27
