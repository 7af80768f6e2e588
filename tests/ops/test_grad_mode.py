"""Tests of torch's grad mode in blocks."""
import pytest
import torch

from interrupt_checks import at_each_point
from mxnet.ops.grad_mode import GradMode, enable_grad, no_grad


def test_blocks_in_blocks():
    seen = []
    with no_grad():
        with enable_grad():
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
        with GradMode(False):
            seen.append(torch.is_grad_enabled())
    assert seen == [True, False, False] and torch.is_grad_enabled()


@pytest.mark.parametrize("block", [no_grad, enable_grad])
def test_ctrl_c_leaves_it_as_it_was(block):
    def work():
        with block():
            seen.append(torch.is_grad_enabled())

    def check():
        assert torch.is_grad_enabled() is outside

    seen, outside = [], block is no_grad
    with torch.set_grad_enabled(outside):
        assert at_each_point(work, check) > 10 and seen[-1] is not outside
