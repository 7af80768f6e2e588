"""Methods whose work is done above arrays and Symbols."""
import inspect
import pickle
import subprocess

import numpy as np
import pytest

import mxnet as mx
from forked import python


def test_methods_look_as_if_written_in_their_class():
    assert mx.nd.NDArray.backward.__qualname__ == "NDArray.backward" and mx.nd.NDArray.backward.__module__ == "mxnet.ndarray.ndarray"
    assert mx.sym.Symbol.bind.__qualname__ == "Symbol.bind" and "Executor" in mx.sym.Symbol.bind.__doc__
    assert list(inspect.signature(mx.sym.Symbol.simple_bind).parameters)[:3] == ["self", "ctx", "grad_req"]
    assert isinstance(inspect.getattr_static(mx.sym.Symbol, "T"), property)


def test_arrays():
    x = mx.nd.array([[1, 2], [0, 0]])
    x.attach_grad(stype="row_sparse")
    assert x.grad.stype == "row_sparse"
    x.attach_grad()
    with mx.autograd.record():
        y = (x * x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [[2, 4], [0, 0]]
    assert x.tostype("csr").indices.asnumpy().tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"only an array of 2 axes can be stored as csr, received shape \(2,\)"):
        x[0].tostype("csr")
    as_np = x.as_np_ndarray()
    as_np += 1
    assert type(as_np) is mx.np.ndarray and x.asnumpy().tolist() == [[2, 3], [1, 1]]
    assert pickle.loads(pickle.dumps(x)).asnumpy().tolist() == [[2, 3], [1, 1]]


def test_symbols():
    a = mx.sym.var("a")
    given = mx.nd.array([[1.5, 2.5, 3.5]])
    assert a.reshape(3, 1).eval(a=given)[0].shape == a.reshape((3, 1)).eval(a=given)[0].shape == a.T.eval(a=given)[0].shape == (3, 1)
    assert a.astype("int32").eval(a=given)[0].dtype == np.int32
    assert [o.shape for o in a.split_v2(3, axis=1).eval(a=given)] == [(1, 1)] * 3
    assert type(a.as_np_ndarray()) is mx.sym.np._Symbol
    assert a.bind(mx.cpu(), [given]).forward()[0].asnumpy().tolist() == [[1.5, 2.5, 3.5]]
    assert a.simple_bind(mx.cpu(), a=(1, 3)).arg_dict["a"].shape == (1, 3)
    assert a.optimize_for("nowhere") is a


def test_what_stands_above_is_imported_when_it_is_called():
    code = "import sys, mxnet as mx; print([m for m in ('mxnet.numpy', 'mxnet.executor', 'mxnet.graph', 'mxnet.gluon') if m in sys.modules])"
    assert subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout.strip() == "[]"
