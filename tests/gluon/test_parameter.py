"""Parameters and dictionaries of them."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import Constant, Parameter
from mxnet.gluon.parameter import DeferredInitializationError

TWO = [mx.cpu(0), mx.cpu(1)]


def test_initialize_on_several_contexts():
    p = Parameter("w", shape=(2, 3), init="ones")
    p.initialize(ctx=TWO)
    assert p.list_ctx() == TWO
    assert [a.context for a in p.list_data()] == TWO and [g.context for g in p.list_grad()] == TWO
    assert p.data(mx.cpu(1)) is p.list_data()[1]
    with mx.cpu(1):
        assert p.data() is p.list_data()[1] and p.grad() is p.list_grad()[1]
    with pytest.raises(RuntimeError, match=r"'w' was not initialized on context cpu\(2\). It was only initialized on \[cpu\(0\), cpu\(1\)\]"):
        p.data(mx.cpu(2))
    assert repr(p) == "Parameter w (shape=(2, 3), dtype=<class 'numpy.float32'>)"


def test_cpu_shared_and_pinned_are_the_cpu():
    p = Parameter("w", shape=(1,))
    p.initialize()
    assert p.data(mx.Context("cpu_shared", 0)) is p.data()


def test_uninitialized():
    p = Parameter("w", shape=(2, 0), allow_deferred_init=True)
    with pytest.raises(RuntimeError, match="Parameter 'w' has not been initialized: call initialize\\(\\) first"):
        p.data()
    with pytest.raises(RuntimeError, match="'w' has not been initialized"):
        p.list_ctx()
    p.initialize(ctx=TWO)
    assert p.list_ctx() == TWO
    with pytest.raises(DeferredInitializationError, match=r"its shape \(2, 0\) is not known"):
        p.data()
    with pytest.raises(ValueError, match=r"because it has invalid shape: \(0,\)"):
        Parameter("v", shape=(0,)).initialize()
    p.shape = (2, 5)
    p._finish_deferred_init()
    assert p.data(mx.cpu(0)).shape == (2, 5)


def test_initialize_twice_warns():
    p = Parameter("w", shape=(1,), init="zeros")
    p.initialize()
    with pytest.warns(UserWarning, match="Parameter 'w' is already initialized and stays as it is"):
        p.initialize(mx.init.One())
    assert p.data().asscalar() == 0
    p.initialize(mx.init.One(), force_reinit=True)
    assert p.data().asscalar() == 1


def test_init_precedence():
    own, given = Parameter("a_weight", shape=(1,), init="ones"), Parameter("b_weight", shape=(1,))
    for p in (own, given):
        p.initialize(default_init=mx.init.Constant(5))
    assert (own.data().asscalar(), given.data().asscalar()) == (1, 5)


def test_shape_setter():
    p = Parameter("w", shape=(2, 0))
    p.shape = (2, 7)
    assert p.shape == (2, 7)
    with pytest.raises(AssertionError, match=r"'w': expected shape \(3, 7\) is incompatible with given shape \(2, 7\)"):
        p.shape = (3, 7)
    assert Parameter("v", shape=4).shape == (4,)


def test_grad_req():
    p = Parameter("w", shape=(2,), init="ones")
    p.initialize()
    x = mx.nd.array([1., 2.])
    for _ in range(2):
        with mx.autograd.record():
            y = p.data() * x
        y.backward()
    assert p.grad().asnumpy().tolist() == [1, 2]
    p.grad_req = "add"
    for _ in range(2):
        with mx.autograd.record():
            y = p.data() * x
        y.backward()
    assert p.grad().asnumpy().tolist() == [2, 4]
    p.zero_grad()
    assert p.grad().asnumpy().tolist() == [0, 0]
    p.grad_req = "null"
    with pytest.raises(RuntimeError, match="Parameter 'w' has no gradient: its grad_req is 'null'"):
        p.grad()
    with pytest.raises(AssertionError, match="grad_req must be one of write, add, null, but got 'sum'"):
        p.grad_req = "sum"
    fixed = Parameter("v", differentiable=False)
    fixed.grad_req = "write"
    assert fixed.grad_req == "null"


def test_set_data_and_reset_ctx():
    p = Parameter("w", shape=(2,), allow_deferred_init=True, init="zeros")
    with pytest.raises(AssertionError, match="call initialize"):
        p.set_data(mx.nd.ones((2,)))
    p.initialize(ctx=TWO)
    p.set_data(mx.nd.array([1, 2]))
    assert [a.asnumpy().tolist() for a in p.list_data()] == [[1, 2]] * 2
    with pytest.raises(AssertionError, match="incompatible"):
        p.set_data(mx.nd.ones((3,)))
    p.data(mx.cpu(1))[:] = 3
    p.reset_ctx(mx.cpu(2))
    assert p.list_ctx() == [mx.cpu(2)] and p._ctx_map == [[], [None, None, 0]]
    assert p.data().asnumpy().tolist() == [2, 2.5]  # the mean
    with pytest.raises(ValueError, match="reset_ctx: Parameter 'v' has not been initialized"):
        Parameter("v", shape=(1,)).reset_ctx(mx.cpu())


def test_set_data_while_deferred():
    p = Parameter("w", shape=(0, 2), allow_deferred_init=True)
    p.initialize()
    p.set_data(mx.nd.full((3, 2), 7))
    p._finish_deferred_init()
    assert p.data().asnumpy().tolist() == [[7, 7]] * 3


def test_cast_keeps_gradients_flowing():
    p = Parameter("w", shape=(2,), init="ones")
    p.initialize()
    p.dtype = "float64"
    assert p.data().dtype == np.float64 and p.grad().dtype == np.float64
    with mx.autograd.record():
        y = p.data() * 3
    y.backward()
    assert p.grad().asnumpy().tolist() == [3, 3]


def test_load_init_checks():
    p = Parameter("w", shape=(2, 0), allow_deferred_init=True)
    with pytest.raises(AssertionError, match=r"'w' from saved params: shape incompatible expected \(2, 0\) vs saved \(3, 4\)"):
        p._load_init(mx.nd.ones((3, 4)), None)
    with pytest.raises(AssertionError, match="dtype incompatible expected float32 vs saved float16. cast_dtype=True converts"):
        p._load_init(mx.nd.ones((2, 4), dtype="float16"), None)
    p._load_init(mx.nd.ones((2, 4), dtype="float16"), mx.cpu(1), cast_dtype=True)
    assert p.list_ctx() == [mx.cpu(1)] and p.data().dtype == np.float32 and p.shape == (2, 4)
    p._load_init(mx.nd.ones((2, 4), dtype="float16"), None, cast_dtype=True, dtype_source="saved")
    assert p.data().dtype == np.float16
    with pytest.raises(AssertionError, match=r"on \[cpu\(0\)\] because it was previously initialized on \[cpu\(1\)\]"):
        p._load_init(mx.nd.ones((2, 4), dtype="float16"), mx.cpu(0))
    with pytest.raises(mx.MXNetError, match="dtype_source must be"):
        p._load_init(mx.nd.ones((2, 4)), None, cast_dtype=True, dtype_source="x")


def test_var():
    p = Parameter("w", shape=(2, 3), dtype="float16", lr_mult=2.0, wd_mult=0.5, init="zeros")
    assert p.var() is p.var()
    attributes = p.var().list_attr()
    assert {k: attributes[k] for k in ("__shape__", "__lr_mult__", "__wd_mult__", "__init__", "__dtype__")} == {
        "__shape__": "(2, 3)", "__lr_mult__": "2.0", "__wd_mult__": "0.5", "__init__": "zeros", "__dtype__": "2"}


def test_stype_checks():
    with pytest.raises(AssertionError, match="stype for Parameter 'w' must be one of default, row_sparse, csr, but got 'dense'"):
        Parameter("w", stype="dense")
    with pytest.raises(AssertionError, match="grad_stype for Parameter 'w'"):
        Parameter("w", grad_stype="dense")
    p = Parameter("w", shape=(4, 2), stype="row_sparse")
    with pytest.raises(RuntimeError, match=r"^data\(\) is for dense Parameters, received 'w' with storage type row_sparse"):
        p.data()
    with pytest.raises(RuntimeError, match=r"^list_data\(\) is for dense Parameters, received 'w' with storage type row_sparse"):
        p.list_data()
    with pytest.raises(RuntimeError, match="are kept by its Trainer, and it has none"):
        p.row_sparse_data(mx.nd.array([0]))
    dense = Parameter("v", shape=(4, 2))
    with pytest.raises(RuntimeError, match=r"^row_sparse_data\(\) is for row_sparse Parameters, received 'v' with storage type default"):
        dense.row_sparse_data(mx.nd.array([0]))
    with pytest.raises(RuntimeError, match=r"^list_row_sparse_data\(\) is for row_sparse Parameters"):
        dense.list_row_sparse_data(mx.nd.array([0]))


def test_constant():
    c = Constant("c", [[1, 2], [3, 4]])
    c.initialize(ctx=mx.cpu(1))
    assert c.data().asnumpy().tolist() == [[1, 2], [3, 4]]
    assert repr(c) == "Constant c (shape=(2, 2), dtype=<class 'numpy.float32'>)"
    with pytest.warns(UserWarning, match="Constant c has no gradient: its grad_req stays 'null', received 'add'"):
        c.grad_req = "add"
    assert c.grad_req == "null"


def test_a_constant_becomes_what_np_programs_use():
    constant = Constant("c", [[1, 2], [3, 4]])
    with mx.np_shape(True), mx.util.np_array(True):
        constant.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
        for data in constant.list_data():
            assert type(data) is mx.np.ndarray and data.tolist() == [[1, 2], [3, 4]]


def test_deferred_error_is_an_mxnet_error():
    assert issubclass(gluon.DeferredInitializationError, mx.MXNetError)
    assert isinstance(mx.nd.ones((1,)), gluon.tensor_types) and isinstance(mx.sym.var("x"), gluon.tensor_types)


def test_gradients_of_large_parameters_start_as_zeros_and_are_replaced():
    parameter = mx.gluon.Parameter("large", shape=(64, 1024), init="ones")
    parameter.initialize()
    assert parameter.grad().shape == (64, 1024) and not parameter.grad().asnumpy().any()
    assert parameter.grad()._owns_memory()
    before = parameter.grad()._data.data_ptr()
    with mx.autograd.record():
        y = parameter.data() * 2
    y.backward()
    assert (parameter.grad().asnumpy() == 2).all() and parameter.grad()._data.data_ptr() != before


def test_initializers_of_programs_that_use_numpy_get_its_arrays():
    class Own(mx.init.Initializer):
        def _init_weight(self, name, array):
            kind = mx.np if mx.util.is_np_array() else mx.nd
            kind.random.uniform(2, 3, array.shape, out=array)
            array[:] = array + kind.ones(array.shape)

    for numpy in (True, False):
        with mx.util.np_array(numpy):
            parameter = mx.gluon.Parameter("weight", shape=(2, 2))
            parameter.initialize(Own())
            assert type(parameter.data()) is (mx.np.ndarray if numpy else mx.nd.NDArray)
            assert (parameter.data().asnumpy() >= 3).all()


def test_warnings_point_to_the_line_of_the_program():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2, in_units=2))
    net.initialize()
    with pytest.warns(UserWarning, match="is already initialized and stays as it is") as warned:
        net.initialize()
    constant = mx.gluon.Constant("c", mx.nd.ones(2))
    with pytest.warns(UserWarning, match="Constant c has no gradient") as also:
        constant.grad_req = "write"
    assert {entry.filename for entry in [*warned, *also]} == {__file__}
