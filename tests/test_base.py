import array
import ctypes
import functools

import numpy as np
import pytest

import mxnet as mx
from mxnet import base


def test_check_call_raises_for_a_code():
    assert base.check_call(0) is None
    with pytest.raises(mx.MXNetError, match="error code -1"):
        base.check_call(-1)


def test_c_arrays():
    floats = base.c_array(base.mx_float, [1, 2.5])
    assert (len(floats), floats[1], ctypes.sizeof(floats)) == (2, 2.5, 8)
    source = array.array("i", [1, 2, 3])
    shared = base.c_array_buf(ctypes.c_int, source)
    source[1] = 20
    assert list(shared) == [1, 20, 3]
    assert list(base.c_str_array(["a", "b\u00e4"])) == [b"a", b"b\xc3\xa4"]
    assert base.c_str("x").value == b"x" and base.py_str(b"b\xc3\xa4") == "b\u00e4"

    class Thing:
        handle = ctypes.c_void_p(7)

    assert list(base.c_handle_array([Thing, Thing])) == [7, 7]


def test_memory_of_c_functions():
    floats = base.c_array(base.mx_float, [1, 2, 3, 4])
    values = base.ctypes2numpy_shared(ctypes.cast(floats, base.mx_float_p), (2, 2))
    floats[3] = 9
    assert values.tolist() == [[1, 2], [3, 9]] and values.dtype == np.float32
    with pytest.raises(RuntimeError, match="a float pointer is needed, received int"):
        base.ctypes2numpy_shared(3, (2,))
    text = ctypes.create_string_buffer(b"abc")
    assert base.ctypes2buffer(ctypes.cast(text, ctypes.POINTER(ctypes.c_char)), 2) == b"ab"
    with pytest.raises(TypeError, match="a char pointer is needed, received bytes"):
        base.ctypes2buffer(b"abc", 2)


def test_properties_of_classes_and_metaclasses():
    class Meta(type):
        pass

    class Child(base.with_metaclass(Meta, dict)):
        @base.classproperty
        def double_name(cls):
            return cls.__name__ * 2

        @base.classproperty
        @classmethod
        def half(cls):
            return cls.__name__[:2]

    assert type(Child) is Meta and issubclass(Child, dict)
    assert (Child.double_name, Child.half, Child(a=1)) == ("ChildChild", "Ch", {"a": 1})


def test_a_property_of_a_class_can_be_set():
    class Scale(metaclass=base.ClassPropertyType):
        _percent = 100

        @base.classproperty
        def factor(cls):
            return cls._percent / 100

        @factor.setter
        def factor(cls, value):
            cls._percent = 100 * value

        @base.classproperty
        def fixed(cls):
            return 1

    Scale.factor = 1.5
    assert (Scale._percent, Scale.factor, Scale().factor) == (150, 1.5, 1.5)
    Scale().factor = 2
    assert Scale._percent == 200
    for owner in (Scale, Scale()):
        with pytest.raises(AttributeError, match="has no setter"):
            owner.fixed = 2
    Scale.other = 3
    assert Scale.other == 3


def test_the_current_context_is_read_and_set_as_old_programs_do():
    default, local = mx.Context.default_ctx, mx.Context._default_ctx
    try:
        mx.Context.default_ctx = mx.cpu(3)
        assert mx.current_context() == mx.cpu().default_ctx == local.value == mx.cpu(3)
        local.value = mx.cpu(2)
        with mx.Context("cpu", 4) as outer:
            assert outer._old_ctx == mx.cpu(2) and mx.nd.ones((1,)).context == mx.cpu(4)
        assert mx.current_context() == mx.cpu(2) and mx.Context("cpu", 4)._old_ctx is None
    finally:
        mx.Context.default_ctx = default


def test_data_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    assert base.data_dir() == str(tmp_path) and base.data_dir_default().endswith(".mxnet")
    monkeypatch.delenv("MXNET_HOME")
    assert base.data_dir() == base.data_dir_default()


@pytest.mark.parametrize("function, use", [
    ("MXRecordIOWriterCreate", "use mx.recordio.MXRecordIO or MXIndexedRecordIO; a subclass that overrides `open` calls"),
    ("MXSymbolGetName", "use mx.sym.Symbol"), ("MXQuantizeSymbol", "use mx.contrib.quantization.quantize_model"),
    ("NNListAllOpNames", "use mx.operator.get_all_registered_operators"),
    ("MXFoo", "Symbols, arrays and executors have methods")])
def test_the_c_interface_is_refused_with_what_replaces_it(function, use):
    with pytest.raises(mx.MXNetError, match=f"_LIB.{function}: MXNet's C interface is not here, since there is no libmxnet; {use}"):
        getattr(mx.base._LIB, function)


def test_what_replaces_the_c_interface_exists():
    for name in mx.base._PYTHON_NAMES.values():
        functools.reduce(getattr, name.split(".")[1:], mx)
