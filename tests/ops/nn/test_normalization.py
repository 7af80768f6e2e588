"""Normalization layers: moving statistics, types, shapes inferred from parts. Values: `test_against_oracle`."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get, rendezvous

BATCH_NORM = get("BatchNorm")


def parameters(n=2, dtype=torch.float32):
    return [torch.ones(n, dtype=dtype), torch.zeros(n, dtype=dtype), torch.zeros(n, dtype=dtype), torch.ones(n, dtype=dtype)]


def test_moving_statistics_use_the_biased_variance():
    data = torch.tensor([[1.0, 2], [3, 6]])
    gamma, beta, mean, var = parameters()
    BATCH_NORM(data, gamma, beta, mean, var, momentum=0.5, training=True)
    assert mean.tolist() == [1.0, 2.0]
    assert var.tolist() == [1.0, 2.5]
    BATCH_NORM(data, gamma, beta, mean, var, momentum=0.5, training=True, use_global_stats=True)
    BATCH_NORM(data, gamma, beta, mean, var, momentum=0.5)
    assert mean.tolist() == [1.0, 2.0] and var.tolist() == [1.0, 2.5]


def test_one_layer_may_be_used_twice_before_backward():
    data = torch.tensor([[1.0, 2], [3, 6]], requires_grad=True)
    gamma, beta, mean, var = parameters()
    first = BATCH_NORM(data, gamma, beta, mean, var, training=True)
    second = BATCH_NORM(data * 2, gamma, beta, mean, var, training=True)
    (first * torch.tensor([[1.0, 2], [3, 4]]) + second).sum().backward()
    assert torch.isfinite(data.grad).all()


def test_one_value_per_channel():
    gamma, beta, mean, var = parameters()
    out = BATCH_NORM(torch.tensor([[3.0, 5.0]]), gamma, beta, mean, var, training=True)
    torch.testing.assert_close(out, torch.zeros(1, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(mean, torch.tensor([0.3, 0.5]))
    torch.testing.assert_close(var, torch.tensor([0.9, 0.9]))


def test_fixed_gamma_counts_as_one_and_gets_no_gradient():
    data = torch.tensor([[1.0, 2], [3, 6]], requires_grad=True)
    _, beta, mean, var = parameters()
    gamma = torch.tensor([5.0, 5.0], requires_grad=True)
    out = BATCH_NORM(data, gamma, beta, mean, var, eps=0.0, training=True)
    torch.testing.assert_close(out.detach(), torch.tensor([[-1.0, -1], [1, 1]]))
    out.sum().backward()
    assert gamma.grad is None


def test_half_precision_keeps_float32_parameters():
    every = BATCH_NORM.with_defaults({"output_mean_var": True})
    f16, f32, f64 = torch.float16, torch.float32, torch.float64
    assert BATCH_NORM.dtype_inference([f16] + [None] * 4, [None] * 3, **every) == ([f16] + [f32] * 4, [f16, f32, f32])
    assert BATCH_NORM.dtype_inference([None] * 5, [f64, None, None], **every)[0] == [f64] * 5
    gamma, beta, mean, var = parameters()
    out = BATCH_NORM(torch.tensor([[1.0, 2], [3, 6]], dtype=f16), gamma, beta, mean, var, training=True)
    assert out.dtype == f16 and mean.dtype == f32


def test_batch_norm_inference():
    every = BATCH_NORM.with_defaults({})
    assert BATCH_NORM.shape_inference([(-1, 3, 4)] + [None] * 4, [None], **every) == ([(-1, 3, 4)] + [(3,)] * 4, [(-1, 3, 4)])
    every["axis"] = -1
    assert BATCH_NORM.shape_inference([(2, 3, 4)] + [None] * 4, [None], **every)[0][1:] == [(4,)] * 4
    every["axis"] = 3
    with pytest.raises(MXNetError, match="BatchNorm: axis 3 is out of range for data with 3 axes"):
        BATCH_NORM.shape_inference([(2, 3, 4)] + [None] * 4, [None], **every)
    every["axis"] = 1
    with pytest.raises(MXNetError, match=r"BatchNorm's beta: expected shape \(3,\), received \(4,\)"):
        BATCH_NORM.shape_inference([(2, 3), None, (4,), None, None], [None], **every)


def test_names():
    assert BATCH_NORM.mutates == ("moving_mean", "moving_var")
    assert BATCH_NORM.list_output_names({}) == ("output",)
    assert BATCH_NORM.list_output_names({"output_mean_var": True}) == ("output", "mean", "var")
    assert get("LayerNorm").list_output_names({"output_mean_var": True}) == ("output", "mean", "std")


def test_several_devices_are_not_joined_silently():
    gamma, beta, mean, var = parameters()
    with pytest.warns(UserWarning, match="SyncBatchNorm 'k': statistics are those of each device, not of all 2; they are joined on the CPU, where"):
        get("_contrib_SyncBatchNorm")(torch.ones(2, 2), gamma, beta, mean, var, key="k", ndev=2, training=True)


@pytest.mark.parametrize("fixed", [False, True])
def test_devices_in_turn_compute_as_one_on_the_whole_batch(fixed):
    data, seeds = torch.arange(48.0).reshape(4, 3, 2, 2).sin().requires_grad_(), torch.arange(48.0).reshape(4, 3, 2, 2).cos()
    def layer():
        return [torch.tensor([1.0, 2, 3]).requires_grad_(), torch.tensor([0.0, 1, 2]).requires_grad_(), torch.zeros(3), torch.ones(3)]
    whole, parts = layer(), [layer(), layer()]
    expected = BATCH_NORM(data, *whole, fix_gamma=fixed, training=True)
    expected.backward(seeds)
    halves, outs = [d.detach().requires_grad_() for d in data.split(2)], [None, None]

    def run(i):
        attributes = {"fix_gamma": fixed, "key": "k", "ndev": 2, "output_mean_var": True, "training": True}
        outs[i], batch_mean, _ = get("_contrib_SyncBatchNorm")(halves[i], *parts[i], **attributes)
        torch.testing.assert_close(batch_mean, data.detach().mean((0, 2, 3)))
        outs[i].backward(seeds[2 * i:2 * i + 2])
    rendezvous.in_order_of_devices([lambda: run(0), lambda: run(1)])
    torch.testing.assert_close(torch.cat(outs), expected)
    torch.testing.assert_close(torch.cat([h.grad for h in halves]), data.grad)
    torch.testing.assert_close(parts[0][1].grad + parts[1][1].grad, whole[1].grad)
    if not fixed:
        torch.testing.assert_close(parts[0][0].grad + parts[1][0].grad, whole[0].grad)
    for part in parts:
        torch.testing.assert_close(part[2:], whole[2:])


def test_backward_of_joined_devices_belongs_into_their_threads():
    outs = []

    def run():
        gamma, beta, mean, var = parameters()
        outs.append(get("_contrib_SyncBatchNorm")(torch.ones(2, 2).requires_grad_(), gamma, beta, mean, var, key="k", ndev=2, training=True))
    rendezvous.in_order_of_devices([run, run])
    with pytest.raises(MXNetError, match="SyncBatchNorm 'k': forward was joined with other devices', so call backward in each device's thread, too"):
        outs[0].sum().backward()


def test_layer_and_group_norm_inference():
    layer, group = get("LayerNorm"), get("GroupNorm")
    every = layer.with_defaults({"axis": 1, "output_mean_var": True})
    assert layer.shape_inference([(2, 3, 4), None, None], [None] * 3, **every) == \
        ([(2, 3, 4), (3,), (3,)], [(2, 3, 4), (2, 1, 4), (2, 1, 4)])
    every = group.with_defaults({"num_groups": 2, "output_mean_var": True})
    assert group.shape_inference([(5, 4, 3), None, None], [None] * 3, **every) == ([(5, 4, 3), (2,), (2,)], [(5, 4, 3), (5, 2), (5, 2)])
    with pytest.raises(MXNetError, match="GroupNorm: 5 channels must be divisible by `num_groups`, received 2"):
        group.shape_inference([(5, 5, 3), None, None], [None] * 3, **every)
    with pytest.raises(MXNetError, match="LayerNorm: axis 2 is out of range"):
        layer.shape_inference([(2, 3), None, None], [None], **layer.with_defaults({"axis": 2}))


def test_instance_norm_of_plain_vectors():
    out = get("InstanceNorm")(torch.tensor([[1.0, 2.0]]), torch.tensor([3.0, 4.0]), torch.tensor([5.0, 6.0]))
    assert out.tolist() == [[5.0, 6.0]]


def test_errors():
    with pytest.raises(MXNetError, match="LRN: `nsize` must be odd and above 0, received 4"):
        get("LRN")(torch.ones(1, 4, 2, 2), nsize=4)
    with pytest.raises(MXNetError, match="L2Normalization: mode 'channel' needs data with at least 3 axes"):
        get("L2Normalization")(torch.ones(2, 3), mode="channel")


def test_lrn_in_half_precision():
    data = torch.linspace(-2, 2, 24).view(1, 6, 2, 2)
    out = get("LRN")(data.half(), nsize=3, alpha=0.5)
    assert out.dtype == torch.float16
    torch.testing.assert_close(out.float(), get("LRN")(data, nsize=3, alpha=0.5), atol=2e-3, rtol=1e-2)


def test_no_gradient_comes_from_the_moments():
    """MXNet's backward never reads what comes to the mean and the deviation."""
    data = torch.tensor([[1.0, 2.0, 4.0]], requires_grad=True)
    out = get("LayerNorm")(data, torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3), output_mean_var=True)
    torch.autograd.backward([o for o in out if o.requires_grad], [torch.tensor([[1.0, 0.0, 0.0]])])
    torch.testing.assert_close(data.grad, torch.tensor([[0.22908238, -0.34361991, 0.11453763]]))
    data = torch.tensor([[[1.0, 2.0], [4.0, 3.0]]], requires_grad=True)
    out = get("GroupNorm")(data, torch.tensor([2.0]), torch.zeros(1), output_mean_var=True)
    torch.autograd.backward([o for o in out if o.requires_grad], [torch.tensor([[[1.0, 0.0], [0.0, 0.0]]])])
    torch.testing.assert_close(data.grad, torch.tensor([[[0.53666055, -0.71553683], [0.35776308, -0.17888686]]]))


def test_lrn_of_plain_vectors():
    out = get("LRN")(torch.tensor([[1.0, 2.0, 3.0]]), nsize=3, alpha=3.0, beta=1.0, knorm=1.0)
    torch.testing.assert_close(out, torch.tensor([[1 / 6, 2 / 15, 3 / 14]]))
    for shape in ((2, 3, 4), (2, 3, 4, 5, 1)):
        with pytest.raises(MXNetError, match=r"LRN: `data` must be \(N, C, H, W\) or \(N, C\), received shape"):
            get("LRN")(torch.ones(shape), nsize=3)


def test_a_negative_number_of_devices():
    with pytest.raises(MXNetError, match="_contrib_SyncBatchNorm: `ndev` must be an integer of at least 0, received -1"):
        get("_contrib_SyncBatchNorm").parse({"ndev": -1, "key": "k"})


def test_lrn_over_more_channels_than_there_are():
    found = get("LRN")(torch.tensor([[1.0, 0.0, 2.0, 0.0]]), alpha=3.0, beta=1.0, knorm=1.0, nsize=9)
    assert found.tolist() == [[0.375, 0, 0.75, 0]]
    assert get("LRN")(torch.ones(1, 2, 1, 1), nsize=2**31 - 1).flatten().tolist() == pytest.approx([2**-0.75] * 2)


def test_group_norm_takes_a_factor_for_each_channel():
    data, gamma, beta = torch.tensor([[[1.0], [3.0], [10.0], [30.0]]]), torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.zeros(4)
    for name in ("GroupNorm", "_npx_group_norm"):
        assert get(name)(data, gamma, beta, num_groups=2, eps=0.0).flatten().tolist() == pytest.approx([-1, 2, -3, 4])
    assert get("_npx_group_norm").shape_inference([(2, 4, 3), None, None], [None], num_groups=2, eps=1e-5, output_mean_var=False) == (
        [(2, 4, 3), (4,), (4,)], [(2, 4, 3)])
