import pytest

import mxnet as mx


def test_errors_are_known_by_name():
    @mx.error.register
    class Mine(mx.MXNetError):
        pass

    @mx.error.register("Other")
    class Another(mx.MXNetError):
        pass

    assert mx.error.register("Third", KeyError) is KeyError
    types = mx.base.error_types
    assert (types["Mine"], types["Other"], types["Third"], types["ValueError"]) == (Mine, Another, KeyError, ValueError)
    for name in ("Mine", "Other", "Third"):
        del types[name]


def test_an_internal_error_says_what_to_do():
    with pytest.raises(mx.MXNetError, match="(?s)lost.*MXNet hint: this is an error in the library itself"):
        raise mx.error.InternalError("lost")
    assert str(mx.error.InternalError("x\nMXNet hint: y")) == "x\nMXNet hint: y"
