import pytest

from optimizer_checks import check_rows, check_steps

# (name, arguments, the weight after three steps with learning_rate=0.1, wd=0.1, rescale_grad=0.5), from MXNet 1.9.1
DENSE = [
    ("ftml", {}, [0.926958, -1.93729, 0.428284]),
    ("ftrl", {}, [0.327807, -0.417473, 0.219655]),
]


# (name, arguments, how the weight is stored, the weight after gradients of row 0 and of rows 0 and 2), from MXNet 1.9.1
SPARSE = [
    ("ftrl", {"wd": 0.1}, "default", [[0.268232, 0.599358], [0.0, 0.0], [-0.0324503, -0.0324503]]),
    ("ftrl", {"wd": 0.1}, "row_sparse", [[0.268232, 0.599358], [3.0, 4.0], [1.62185, 1.95298]]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name, kwargs, expected", DENSE)
def test_three_steps(name, kwargs, expected, dtype):
    check_steps(name, kwargs, expected, dtype)


@pytest.mark.parametrize("name, kwargs, stype, expected", SPARSE)
def test_row_sparse_gradients(name, kwargs, stype, expected):
    check_rows(name, kwargs, stype, expected)
