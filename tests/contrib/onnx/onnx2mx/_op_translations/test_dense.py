import numpy as np
import pytest
import torch

from mxnet import MXNetError
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(0)


def real(*shape):
    return np.asarray(R.randn(*shape), "float32")


@pytest.mark.parametrize("a, b", [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 5, 2, 3), (2, 5, 3, 4)), ((1, 2, 3), (5, 3, 4)),
                                  ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((4, 2, 3), (3, 4))])
def test_products(a, b):
    a, b = real(*a), real(*b)
    agrees(node("MatMul", "x z"), {"x": a, "z": b}, rtol=1e-4, atol=1e-5)
    agrees(node("MatMul", "x c"), {"x": a}, {"c": b}, rtol=1e-4, atol=1e-5)
    agrees(node("MatMul", "c x"), {"x": b}, {"c": a}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attributes", [{}, {"transB": 1}, {"transA": 1, "alpha": 0.5}, {"beta": 2.0},
                                        {"transA": 1, "transB": 1, "alpha": 2.0, "beta": 0.0}], ids=str)
@pytest.mark.parametrize("bias", [None, (4,), (1, 4), (2, 4), (2, 1), (1,), ()])
def test_gemm(attributes, bias):
    a, b = real(3, 2) if attributes.get("transA") else real(2, 3), real(4, 3) if attributes.get("transB") else real(3, 4)
    c = {} if bias is None else {"c": real(*bias)}
    names = "x w" if bias is None else "x w c"
    agrees(node("Gemm", names, **attributes), {"x": a}, {"w": b, **c}, rtol=1e-4, atol=1e-5)
    agrees(node("Gemm", names, **attributes), {"x": a, "w": b, **c}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("equation, shapes", [("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))), ("i,i->", ((3,), (3,))), ("ij->ji", ((2, 3),)),
                                              (",ij->i", ((), (2, 3))), (",->", ((), ()))])
def test_sums_by_letters(equation, shapes):
    inputs = {name: real(*shape) for name, shape in zip("xz", shapes)}
    agrees(node("Einsum", list(inputs), equation=equation), inputs, rtol=1e-4, atol=1e-5)


def test_a_constant_matrix_keeps_the_rows_of_its_outputs():
    model = model_of([node("Gemm", "x w", transB=1)], {"x": (2, 3)}, {"w": real(4, 3)})
    out, args, _ = GraphProto().from_onnx(model.graph, 13)
    assert out.list_outputs() == ["the_gemm_output"] and args["w"].shape == (4, 3)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("attributes", [{}, {"strides": 2, "pads": (1, 1)}, {"pads": (0, 2)}, {"dilations": 2}, {"auto_pad": "SAME_LOWER"},
                                        {"auto_pad": "SAME_UPPER", "strides": 2}, {"auto_pad": "VALID"}], ids=str)
def test_convolutions(axes, attributes):
    x, w, b = real(2, 4, *[7, 6, 8][:axes]), real(6, 2, *[3] * axes), real(6)
    given = {key: value if isinstance(value, str) else [value] * axes if isinstance(value, int) else [n for n in value for _ in range(axes)]
             for key, value in attributes.items()}
    (found,) = run(model_of([node("Conv", "x w b", group=2, **given)], {"x": x.shape}, {"w": w, "b": b}), x=x)
    strides, dilations = given.get("strides", [1] * axes), given.get("dilations", [1] * axes)
    pads = given.get("pads", [0] * 2 * axes)
    if given.get("auto_pad", "").startswith("SAME"):
        total = [max((-(-n // s) - 1) * s + 3 - n, 0) for n, s in zip(x.shape[2:], strides)]
        upper = given["auto_pad"] == "SAME_UPPER"
        pads = [t // 2 if upper else t - t // 2 for t in total] + [t - t // 2 if upper else t // 2 for t in total]
    padded = torch.nn.functional.pad(torch.from_numpy(x), [p for i in reversed(range(axes)) for p in (pads[i], pads[i + axes])])
    function = [torch.conv1d, torch.conv2d, torch.conv3d][axes - 1]
    expected = function(padded, torch.from_numpy(w), torch.from_numpy(b), strides, 0, dilations, 2)
    assert found.shape == expected.shape and np.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 3], "pads": [1, 0, 1, 0], "output_padding": [1, 2]}, {"pads": [1, 0, 0, 2]},
                                        {"strides": [3, 2], "output_shape": [10, 8]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
                                        {"dilations": [2, 2]}], ids=str)
def test_transposed_convolutions(attributes):
    agrees(node("ConvTranspose", "x w", **attributes), {"x": real(1, 2, 3, 3)}, {"w": real(2, 4, 3, 3)}, rtol=1e-4, atol=1e-4)
    agrees(node("ConvTranspose", "x w b", **attributes), {"x": real(1, 2, 3, 3), "w": real(2, 4, 3, 3)}, {"b": real(4)}, rtol=1e-4, atol=1e-4)


def test_determinants():
    agrees(node("Det", "x"), {"x": real(2, 3, 3)}, rtol=1e-4, atol=1e-5)


def test_windows_that_do_not_fit_are_refused():
    with pytest.raises(MXNetError, match=r"node 'the_conv' \(Conv\): windows of size \(3, 3\) over data of 4 axes: .* strides \(1,\)"):
        run(model_of([node("Conv", "x w", strides=[1])], {"x": (1, 2, 5, 5)}, {"w": real(4, 2, 3, 3)}))
    with pytest.raises(MXNetError, match="auto_pad must be .* received 'SOME'"):
        run(model_of([node("Conv", "x w", auto_pad="SOME")], {"x": (1, 2, 5, 5)}, {"w": real(4, 2, 3, 3)}))
