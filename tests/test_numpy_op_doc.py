"""The functions behind NumPy operators' names."""
import inspect

from mxnet import _numpy_op_doc, np


def parameters(function):
    found = inspect.signature(function)
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in found.parameters.values()]))


def test_functions_by_the_names_of_their_operators():
    assert _numpy_op_doc._np_sum is np.sum
    assert parameters(_numpy_op_doc._np_sum) == "(a, axis=None, dtype=None, keepdims=False, initial=None, out=None, where=None)"
    assert parameters(_numpy_op_doc._np_atleast_1d) == "(*arys)"
    assert parameters(_numpy_op_doc._npx_reshape) == "(a, newshape, reverse=False, order='C')"
    assert parameters(_numpy_op_doc._np__random_shuffle) == "(x)"
