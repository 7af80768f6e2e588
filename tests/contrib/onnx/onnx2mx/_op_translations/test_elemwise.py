import numpy as np
import pytest
from onnx import TensorProto

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

X = np.array([[-1.5, -0.25, 0.0], [0.5, 0.75, 2.0]], "float32")
ROW = np.array([2, 3, -4], "float32")
WHOLE = np.array([[-7, 5, 4], [3, -2, 9]])


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Pow"])
@pytest.mark.parametrize("other", [ROW, np.float32(3), np.array([3], "float32"), np.full((2, 1, 3), 3, "float32")], ids=np.shape)
def test_arithmetic_with_an_input_or_a_constant_on_either_side(operator, other):
    data = abs(X) + 1
    agrees(node(operator, "x c"), {"x": data}, {"c": np.asarray(other)})
    agrees(node(operator, "c x"), {"x": data}, {"c": np.asarray(abs(other))})
    agrees(node(operator, "x z"), {"x": data, "z": np.asarray(other)})


def test_integers_are_divided_towards_zero_and_keep_their_type():
    (found,) = agrees(node("Div", "x c"), {"x": WHOLE}, {"c": np.array(2)})
    assert found.dtype == np.int64 and found.tolist() == [[-3, 2, 2], [1, -1, 4]]


def test_a_power_has_the_type_of_its_base():
    assert agrees(node("Pow", "x c"), {"x": X}, {"c": np.array(2)})[0].dtype == np.float32
    assert agrees(node("Pow", "x z"), {"x": WHOLE, "z": np.float32([2, 1, 3])})[0].dtype == np.int64


@pytest.mark.parametrize("operator", ["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
def test_comparisons_give_truth_values(operator):
    model = model_of([node(operator, "x z")], {"x": (2, 3), "z": (3,)}, types={"y": TensorProto.BOOL})
    (found,) = run(model, x=X, z=np.float32([0.5, 0.75, 2]))
    expected = {"Equal": X == [0.5, 0.75, 2], "Greater": X > [0.5, 0.75, 2], "Less": X < [0.5, 0.75, 2], "GreaterOrEqual": X >= [0.5, 0.75, 2],
                "LessOrEqual": X <= [0.5, 0.75, 2]}[operator]
    assert found.dtype == bool and found.tolist() == expected.tolist()


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_logic(operator):
    agrees(node(operator, "x z"), {"x": X > 0, "z": np.array([True, False, True])})


@pytest.mark.parametrize("operator", ["Abs", "Neg", "Ceil", "Floor", "Exp", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Atan", "Asinh", "Erf", "Sign",
                                      "Relu", "Sigmoid", "Tanh", "Softsign", "Round", "IsNaN", "Identity"])
def test_functions_of_one_element(operator):
    agrees(node(operator, "x"), {"x": X}, rtol=1e-4)


@pytest.mark.parametrize("operator", ["Log", "Sqrt", "Reciprocal", "Acosh"])
def test_functions_above_0(operator):
    agrees(node(operator, "x"), {"x": abs(X) + 1}, rtol=1e-4)


@pytest.mark.parametrize("operator", ["Asin", "Acos", "Atanh"])
def test_functions_up_to_1(operator):
    agrees(node(operator, "x"), {"x": X / 4}, rtol=1e-4)


def test_half_rounds_to_even():
    assert agrees(node("Round", "x"), {"x": np.float32([0.5, 1.5, 2.5, -2.5])})[0].tolist() == [0, 2, 2, -2]


def test_remainders_have_the_sign_of_the_divisor_or_of_the_dividend():
    divisor = {"c": np.array([3, -3, 2])}
    assert agrees(node("Mod", "x c"), {"x": WHOLE}, divisor)[0].tolist() == [[2, -1, 0], [0, -2, 1]]
    assert agrees(node("Mod", "x c", fmod=1), {"x": WHOLE}, divisor)[0].tolist() == [[-1, 2, 0], [0, -2, 1]]


@pytest.mark.parametrize("operator", ["Max", "Min", "Sum", "Mean"])
def test_several_values_of_different_shapes(operator):
    agrees(node(operator, "x z c"), {"x": X, "z": ROW}, {"c": np.float32([[1], [-1]])})
    agrees(node(operator, "x"), {"x": X})


def test_bounds_as_attributes_and_as_inputs():
    assert agrees(node("Clip", "x", min=-1.0, max=0.5), {"x": X}, opset=6)[0].max() == 0.5
    agrees(node("Clip", "x low -"), {"x": X}, {"low": np.float32(0.0)})
    agrees(node("Clip", "x low high"), {"x": X, "low": np.float32(-1), "high": np.float32(1)})
    assert agrees(node("Clip", "x low"), {"x": WHOLE}, {"low": np.array(0)})[0].dtype == np.int64


def test_types():
    for name, wanted in (("INT64", np.int64), ("FLOAT16", np.float16), ("BOOL", bool), ("UINT8", np.uint8), ("UINT32", np.uint32)):
        number = getattr(TensorProto, name)
        (found,) = run(model_of([node("Cast", "x", to=number)], {"x": (2, 3)}, types={"y": number}), x=abs(X))
        assert found.dtype == wanted and found.tolist() == abs(X).astype(wanted).tolist()
    agrees(node("CastLike", "x z"), {"x": X, "z": WHOLE})


def test_a_choice_between_values():
    agrees(node("Where", "c x z"), {"c": X > 0, "x": X, "z": ROW})
    agrees([node("Greater", "x z", "c"), node("Where", "c x z")], {"x": X, "z": X.T.reshape(2, 3).copy()})


def test_infinite_values():
    data = np.float32([np.inf, -np.inf, np.nan, 1])
    for positive, negative in ((1, 1), (1, 0), (0, 1)):
        agrees(node("IsInf", "x", detect_positive=positive, detect_negative=negative), {"x": data})
    with pytest.raises(MXNetError, match="`detect_negative` or `detect_positive` must be 1, received 0 and 0"):
        agrees(node("IsInf", "x", detect_positive=0, detect_negative=0), {"x": data})


def test_bits():
    for operator in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        agrees(node(operator, "x z"), {"x": WHOLE, "z": np.array([1, 6, 12])}, opset=18)
    agrees(node("BitwiseNot", "x"), {"x": WHOLE}, opset=18)


def test_the_old_way_to_say_at_which_axis_the_smaller_value_begins():
    data = np.arange(24, dtype="float32").reshape(2, 3, 4)
    model = model_of([node("Add", "x c", axis=1, broadcast=1)], {"x": data.shape}, {"c": ROW}, opset=6)
    assert run(model, x=data)[0].tolist() == (data + ROW[:, None]).tolist()


def test_scalars_stay_scalars():
    agrees([node("ReduceSum", "x", "s", keepdims=0), node("Unsqueeze", "s axes", "u"), node("Concat", "u u", axis=0)], {"x": X},
           {"axes": np.array([0])})
