"""What MXNet has for GPUs only (Fourier transforms, sketches), and point processes. More values: `test_against_oracle`."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get


def test_fft_interleaves_real_and_imaginary_parts():
    data = torch.tensor([[1.0, 2.0, 0.0, -1.0]], requires_grad=True)
    out = get("_contrib_fft")(data)
    torch.testing.assert_close(out.detach(), torch.tensor([[2.0, 0.0, 1.0, -3.0, 0.0, 0.0, 1.0, 3.0]]))
    out[0, 2].backward()  # the real part of frequency 1
    torch.testing.assert_close(data.grad, torch.tensor([[1.0, 0.0, -1.0, 0.0]]))


def test_ifft_is_not_divided_by_the_size():
    data = torch.linspace(-1, 1, 12).view(3, 4)
    torch.testing.assert_close(get("_contrib_ifft")(get("_contrib_fft")(data)), data * 4)
    every = get("_contrib_ifft").with_defaults({})
    assert get("_contrib_ifft").shape_inference([(2, 8)], [None], **every)[1] == [(2, 4)]
    with pytest.raises(MXNetError, match="ifft: the last axis holds pairs of numbers, received size 7"):
        get("_contrib_ifft").shape_inference([(2, 7)], [None], **every)


def test_count_sketch():
    data = torch.tensor([[1.0, 2.0, 4.0, 8.0]], requires_grad=True)
    out = get("_contrib_count_sketch")(data, torch.tensor([[0.0, 1.0, 1.0, 2.0]]), torch.tensor([[1.0, -1.0, 1.0, 1.0]]), out_dim=4)
    assert out.tolist() == [[1.0, 2.0, 8.0, 0.0]]
    out.sum().backward()
    assert data.grad.tolist() == [[1.0, -1.0, 1.0, 1.0]]
    every = get("_contrib_count_sketch").with_defaults({"out_dim": 5})
    assert get("_contrib_count_sketch").shape_inference([(2, 3), None, None], [None], **every) == ([(2, 3), (1, 3), (1, 3)], [(2, 5)])


def test_hawkes_process():
    operator = get("_contrib_hawkesll")
    lda = torch.tensor([[1.5, 2.0, 3.0]] * 4, requires_grad=True)
    alpha, beta = torch.tensor([0.2, 0.3, 0.4], requires_grad=True), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    lags = torch.tensor([[6.0, 7, 8, 9], [1, 2, 3, 4], [3, 4, 5, 6], [8, 9, 10, 11]])
    marks = torch.zeros(4, 4, dtype=torch.int32)
    out, state = operator(lda, alpha, beta, torch.zeros(4, 3), lags, marks, torch.tensor([1.0, 2, 3, 4]), torch.full((4,), 100.0))
    # Both are what MXNet 1.9.1 returns.
    torch.testing.assert_close(out.detach(), torch.tensor([-649.79456, -649.57117, -649.38025, -649.1781]), rtol=1e-6, atol=1e-3)
    assert state.abs().max() < 1e-20
    out.sum().backward()
    assert all(torch.isfinite(t.grad).all() for t in (lda, alpha, beta))
    assert operator.shape_inference([(4, 3), None, None, None, (4, 5), None, None, None], [None, None])[0] == \
        [(4, 3), (3,), (3,), (4, 3), (4, 5), (4, 5), (4,), (4,)]
    assert operator.dtype_inference([torch.float64] + [None] * 7, [None] * 2)[0][5] == torch.int32


def test_straight_through_gradients():
    data = torch.tensor([-1.5, 0.2], requires_grad=True)
    for name in ("_contrib_round_ste", "_contrib_sign_ste"):
        data.grad = None
        (get(name)(data) * 3).sum().backward()
        assert data.grad.tolist() == [3.0, 3.0]
