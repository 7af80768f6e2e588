import types

import pytest

import mxnet as mx
from mxnet.contrib.amp import amp


def test_prefixes_and_submodules():
    base = mx.base
    assert base._OP_NAME_PREFIX_LIST == ["_contrib_", "_linalg_", "_sparse_", "_image_", "_random_"]
    assert [base._get_op_name_prefix(n) for n in ("_contrib_fft", "dot", "_random_normal_like")] == ["_contrib_", "", "_random_"]
    assert [base._is_np_op(n) for n in ("_npi_add", "_npx_relu", "_np_sum", "dot")] == [True, True, True, False]
    assert [base._output_is_list(n) for n in ("_npi_split", "_npi_add", "split")] == [True, False, False]
    assert base._get_op_submodule_name("_np_linalg_svd", "_np", base._NP_OP_SUBMODULE_LIST) == "_linalg_"
    assert base._get_op_submodule_name("_npi_add", "_npi_", base._NP_EXT_OP_SUBMODULE_LIST) == ""
    with pytest.raises(AssertionError, match="starts with '_npi_' expected, received 'dot'"):
        base._get_op_submodule_name("dot", "_npi_", [])


def test_where_an_operator_is():
    modules = {"_contrib_": mx.nd.contrib, "_random_": mx.nd.random}
    found = [amp._get_fun_to_wrap(n, mx.nd, modules) for n in ("_contrib_fft", "_random_normal", "_random_normal_like", "_copy", "dot")]
    assert found == [("fft", mx.nd.contrib), ("_random_normal", mx.nd._internal), ("normal_like", mx.nd.random), ("_copy", mx.nd._internal),
                     ("dot", mx.nd)]
    assert all(hasattr(module, name) for name, module in found)


def test_docstrings():
    document = mx.base.build_param_doc
    assert document(["a", "num_args", "a", "b"], ["int"] * 4, ["x", "y", "z", ""]) == "Parameters\n----------\na : int\n    x\nb : int\n"
    assert document(["a", "a"], ["int"] * 2, ["x", "z"], remove_dup=False).count("a : int") == 2
    module = types.ModuleType("documented")

    def function():
        """Does nothing."""

    class Class:
        def method(self):
            """Does nothing either."""

    module.function, module.Class = function, Class
    mx.base.add_fileline_to_docstring(module)
    mx.base.add_fileline_to_docstring(module)
    line = function.__code__.co_firstlineno
    assert function.__doc__ == f"Does nothing.\n\nFrom:{__file__}:{line}"
    assert Class.method.__doc__ == f"Does nothing either.\n\nFrom:{__file__}:{line + 4}"
