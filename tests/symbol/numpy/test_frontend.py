import pytest

import mxnet as mx
from mxnet.numpy.frontend import InputTypeError
from mxnet.symbol.numpy import _Symbol
from mxnet.symbol.numpy.frontend import npx_function, symbols

X = mx.sym.var("x").as_np_ndarray()


def test_a_call_makes_a_symbol_of_numpy():
    made = symbols.call("_npi_exp", X)
    assert type(made) is _Symbol and made.attr_dict() == {} and made.handle[0][0].op.name == "_npi_exp"
    with mx.name.NameManager():
        assert [symbols.call(n, X).name for n in ("_npi_exp", "_np_transpose", "_npx_relu")] == ["exp0", "transpose0", "relu0"]
    assert symbols.call("_npi_argmax", X, axis=None, keepdims=True).attr("axis") is None


def test_several_results_are_a_list():
    parts = symbols.call("_split_v2", X, indices=(0, 1), axis=0, sections=0)
    assert [type(p) for p in parts] == [_Symbol] * 2 and [p.handle[0][1] for p in parts] == [0, 1]


def test_a_number_says_whether_it_is_an_integer():
    assert symbols.call_scalar("_npi_add_scalar", X, 2).list_attr() == {"scalar": "2.0", "is_int": "True"}
    assert symbols.call_scalar("_npi_add_scalar", X, 2.5).list_attr() == {"scalar": "2.5", "is_int": "False"}


def test_what_is_no_symbol_is_refused():
    with pytest.raises(InputTypeError, match="_npi_exp: inputs must be Symbols, received 3 of type int"):
        symbols.call("_npi_exp", 3)
    with pytest.raises(TypeError, match="_npi_exp: a Symbol has no values to write to; out=None expected, received NDArray"):
        symbols.call("_npi_exp", X, out=mx.nd.ones(1))
    assert symbols.is_array(X) and not symbols.is_array(mx.nd.ones(1))


def test_what_only_running_tells():
    assert symbols.truth(X) is X and symbols.context(mx.cpu(2)) == mx.cpu(2)
    with mx.cpu(3):
        assert symbols.context(None) == mx.cpu(3)
    with pytest.raises(NotImplementedError, match="the number of axes of its input, which a Symbol does not know"):
        symbols.ndim(X)


def test_functions_of_npx():
    relu = npx_function("_npx_relu")
    assert relu.__name__ == "relu" and type(relu(X)) is _Symbol and relu.__doc__
    nonzero = npx_function("_npx_nonzero")
    assert type(nonzero(X)) is _Symbol
