import array
import ctypes

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
