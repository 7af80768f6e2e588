import mxnet as mx
from mxnet.numpy.frontend import TABLE, bind

SPACES = {"": mx.np, "linalg": mx.np.linalg, "random": mx.np.random, "npx.random": mx.npx.random}
FUNCTIONS = {f"{SPACES[space].__name__}.{name}": getattr(SPACES[space], name) for space, names in TABLE.items() for name in names}


def test_every_function_has_an_example_of_its_own():  # which pytest runs
    silent = []
    for name, function in FUNCTIONS.items():
        shown = name.replace("mxnet.numpy_extension", "mx.npx").replace("mxnet.numpy", "mx.np")
        if f"{shown}(" not in function.__doc__.partition("Example\n")[2]:
            silent.append(name)
    assert not silent, f"functions without an example in their docstring: {silent}"


def test_other_names_of_a_function_stand_in_its_example():
    assert ">>> mx.np.max(" in mx.np.max.__doc__ and ">>> mx.np.amax(" in mx.np.amax.__doc__
    assert ">>> mx.np.bitwise_not(" not in mx.np.invert.__doc__


def test_the_example_of_an_operator_of_the_same_name_but_another_function_is_not_taken():
    def power(F, a):
        """Numbers with a density."""

    assert bind(power, None, "power", "mxnet.numpy.random").__doc__ == "Numbers with a density."
    assert "mx.np.power(" in bind(power, None, "power", "mxnet.numpy").__doc__
