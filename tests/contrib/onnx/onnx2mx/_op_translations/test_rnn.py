import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(0)
T, N, C, H = 5, 2, 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def arrays(operator, directions=1):
    rows = GATES[operator] * H
    return {"w": R.randn(directions, rows, C).astype("float32") / 2, "r": R.randn(directions, rows, H).astype("float32") / 2,
            "b": R.randn(directions, 2 * rows).astype("float32") / 2}


def steps(kind, x, w, r, b, h, c=None, before=0):
    """One direction, by the formulas of ONNX's documentation."""
    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    out, (wb, rb) = [], np.split(b, 2)
    for t in range(len(x)):
        i, s = x[t] @ w.T + wb, h @ r.T + rb
        if kind == "RNN":
            h = np.tanh(i + s)
        elif kind == "GRU":
            (iz, ir, ih), (sz, sr, sh) = np.split(i, 3, -1), np.split(s, 3, -1)
            z, reset = sigmoid(iz + sz), sigmoid(ir + sr)
            inner = reset * sh if before else (reset * h) @ r[2 * H:].T + rb[2 * H:]
            h = (1 - z) * np.tanh(ih + inner) + z * h
        else:
            gi, go, gf, gc = np.split(i + s, 4, -1)
            c = sigmoid(gf) * c + sigmoid(gi) * np.tanh(gc)
            h = sigmoid(go) * np.tanh(c)
        out.append(h)
    return np.stack(out), h, c


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("known", [True, False])
def test_layers(operator, direction, known):
    directions = 2 if direction == "bidirectional" else 1
    x, weights = R.randn(T, N, C).astype("float32"), arrays(operator, directions)
    lstm = operator == "LSTM"
    attributes = {"linear_before_reset": 1} if operator == "GRU" else {}
    made = node(operator, "x w r b", "y h c" if lstm else "y h", hidden_size=H, direction=direction, **attributes)
    shapes = {"x": x.shape, **({} if known else {n: a.shape for n, a in weights.items()})}
    model = model_of([made], shapes, weights if known else None, ("y", "h", "c") if lstm else ("y", "h"))
    found = run(model, x=x, **({} if known else weights))
    zeros = np.zeros((N, H))
    for d in range(directions):
        turned = direction == "reverse" or d == 1
        y, h, c = steps(operator, x[::-1] if turned else x, *(weights[n][d] for n in "wrb"), zeros, zeros, 1)
        assert np.allclose(found[0][:, d], y[::-1] if turned else y, atol=1e-5) and np.allclose(found[1][d], h, atol=1e-5)
        assert not lstm or np.allclose(found[2][d], c, atol=1e-5)


def test_a_reset_before_the_product():
    x, weights = R.randn(T, N, C).astype("float32"), arrays("GRU")
    found = run(model_of([node("GRU", "x w r b", "y h", hidden_size=H)], {"x": x.shape}, weights, ("y", "h")), x=x)
    y, h, _ = steps("GRU", x, *(weights[n][0] for n in "wrb"), np.zeros((N, H)))
    assert np.allclose(found[0][:, 0], y, atol=1e-5) and np.allclose(found[1][0], h, atol=1e-5)


def test_states_that_are_given_and_a_batch_that_comes_first():
    x, weights = R.randn(N, T, C).astype("float32"), arrays("LSTM")
    start = R.randn(2, N, 1, H).astype("float32")
    made = node("LSTM", "x w r b - i j", "y h c", hidden_size=H, layout=1)
    found = run(model_of([made], {"x": ("n", T, C)}, {**weights, "i": start[0], "j": start[1]}, ("y", "h", "c")), x=x)
    y, h, c = steps("LSTM", x.swapaxes(0, 1), *(weights[n][0] for n in "wrb"), start[0][:, 0], start[1][:, 0])
    assert found[0].shape == (N, T, 1, H) and np.allclose(found[0][:, :, 0], y.swapaxes(0, 1), atol=1e-5)
    assert np.allclose(found[1][:, 0], h, atol=1e-5) and np.allclose(found[2][:, 0], c, atol=1e-5)


def test_lengths():
    x, weights = R.randn(T, N, C).astype("float32"), arrays("LSTM")
    made = node("LSTM", "x w r b n", "y h", hidden_size=H, direction="reverse")
    found = run(model_of([made], {"x": x.shape}, {**weights, "n": np.int32([5, 2])}, ("y", "h")), x=x)
    y, h, _ = steps("LSTM", x[:2, 1:][::-1], *(weights[n][0] for n in "wrb"), np.zeros((1, H)), np.zeros((1, H)))
    assert np.allclose(found[0][:2, 0, 1], y[::-1, 0], atol=1e-5) and not found[0][2:, 0, 1].any() and np.allclose(found[1][0, 1], h[0], atol=1e-5)


def test_peepholes_other_functions_and_joined_gates():
    x, weights = R.randn(T, N, C).astype("float32"), arrays("LSTM")
    peepholes = R.randn(1, 3 * H).astype("float32")
    agrees(node("LSTM", "x w r b - - - p", "- h", hidden_size=H), {"x": x}, {**weights, "p": peepholes}, "h", rtol=1e-4, atol=1e-5)
    plain = arrays("RNN")
    made = node("RNN", "x w r b", "y", hidden_size=H, activations=["Relu"])
    assert run(model_of([made], {"x": x.shape}, plain), x=x)[0].min() == 0
    made = node("RNN", "x w r b", "y", hidden_size=H, activations=["Softsign"], clip=0.5)
    found = run(model_of([made], {"x": x.shape}, plain), x=x)[0]
    h = np.zeros((N, H))
    for t in range(T):
        total = np.clip(x[t] @ plain["w"][0].T + h @ plain["r"][0].T + plain["b"][0, :H] + plain["b"][0, H:], -0.5, 0.5)
        h = total / (1 + abs(total))
        assert np.allclose(found[t, 0], h, atol=1e-5)
    joined = run(model_of([node("LSTM", "x w r", "y", hidden_size=H, input_forget=1)], {"x": x.shape}, weights), x=x)[0]
    assert joined.shape == (T, 1, N, H)


def test_what_is_refused():
    weights = arrays("LSTM")
    with pytest.raises(MXNetError, match=r"R has the shape \(1, 16, 4\); expected \(1, 4 \* units, units\), with 5 units"):
        run(model_of([node("LSTM", "x w r", hidden_size=5)], {"x": (T, N, C)}, weights))
    with pytest.raises(MXNetError, match="`direction` must be forward, reverse or bidirectional, received 'up'"):
        run(model_of([node("LSTM", "x w r", direction="up")], {"x": (T, N, C)}, weights))
    with pytest.raises(NotImplementedError, match="expected 3 for each direction"):
        run(model_of([node("LSTM", "x w r", activations=["Affine"] * 3)], {"x": (T, N, C)}, weights))
