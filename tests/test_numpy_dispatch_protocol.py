import pytest

from mxnet import numpy_dispatch_protocol as protocol


@pytest.mark.parametrize("mark", [protocol.with_array_function_protocol, protocol.with_array_ufunc_protocol])
def test_marked_functions_run_as_they_are(mark):
    @mark
    def double(x, *, plus=0):
        """Twice."""
        return 2 * x + plus

    assert double(3, plus=1) == 7 and double.__name__ == "double" and double.__doc__ == "Twice."
