"""The common part of kernels over rows of channels, without a GPU: stand-ins for Triton, and the division of rows among programs."""
import threading
import types

import pytest
import torch

from mxnet.kernels.runtime import channel_kernels
from mxnet.kernels.runtime.channel_kernels import PARTS, PROGRAMS, blocks, partition
from mxnet.kernels.runtime.triton_kernels import OPTIONS


@pytest.mark.parametrize("rows, channels", [(1, 1), (5, 3), (401408, 64), (100352, 512), (6272, 2048), (6272, 512), (1000, 4096), ((1 << 30), 64),
                                            (1 << 14, 1 << 16)])
@pytest.mark.parametrize("programs, most", [(PROGRAMS[0], PARTS), (PROGRAMS[1], 1 << 30)])
def test_all_rows_are_shared_among_few_enough_parts_of_full_tiles(rows, channels, programs, most):
    height, width = blocks(channels)
    parts, part = partition(rows, channels, programs, most)
    assert height * width == channel_kernels.TILE and width <= 64 and 8 <= width
    assert part % height == 0 and (parts - 1) * part < rows <= parts * part
    assert 1 <= parts <= min(most, programs) and parts <= 65535


def test_large_layers_give_every_multiprocessor_several_programs():
    for rows, channels in [(401408, 64), (401408, 256), (100352, 128), (100352, 512), (25088, 1024), (6272, 512), (6272, 2048)]:
        columns = -(-channels // blocks(channels)[1])
        assert columns * partition(rows, channels, PROGRAMS[0], PARTS)[0] >= 4 * 132


def on_a_gpu(trial, monkeypatch, count=1):
    """A module of kernels on a GPU with Triton where there is none, with the GPU."""
    monkeypatch.setattr(channel_kernels, "installed", lambda: True)
    monkeypatch.setattr(channel_kernels, "interpreted", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return channel_kernels.KernelModule("layers", lambda: None, lambda device, dtype: [trial] * count), torch.device("cuda", 0)


def test_kernels_that_fail_are_tried_once_and_torch_computes(monkeypatch, caplog):
    tried = []

    def trial():
        tried.append(1)
        raise RuntimeError("Failed to find C compiler")

    module, device = on_a_gpu(trial, monkeypatch)
    for _ in range(2):
        assert not module.available(device, torch.float16)
        module.wait()
        assert not module.compiling() and len(tried) == 1
    assert caplog.messages == ["layers train on torch's kernels, as Triton's fail on cuda:0: Failed to find C compiler"]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert not module.available(device, torch.float32) and not module.available(device, torch.float64) and len(tried) == 1


def test_nobody_waits_for_the_compiler(monkeypatch):
    """Torch's kernels compute until a thread has compiled; then the others do."""
    compiled, ended = [], threading.Event()

    def trial():
        ended.wait(60)
        compiled.append(1)

    module, device = on_a_gpu(trial, monkeypatch, 3)
    assert not module.available(device, torch.float32) and not module.available(device, torch.float32)
    assert module.compiling() and channel_kernels.compiling()
    ended.set()
    module.wait()
    assert module.available(device, torch.float32) and not module.compiling() and not channel_kernels.compiling() and len(compiled) == 3


def test_nothing_is_compiled_while_a_graph_is_captured(monkeypatch):
    tried = []
    module, device = on_a_gpu(lambda: tried.append(1), monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert not module.available(device) and not module.compiling()
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert not tried and not module.available(device)
    module.wait()
    assert tried and module.available(device)


def test_each_variant_is_compiled_at_its_first_use(monkeypatch):
    _, device = on_a_gpu(None, monkeypatch)
    compiled = []

    def smoke_tests(device, dtype, *variant):
        return [lambda: compiled.append(variant)] if variant != ("fails",) else 1 / 0

    module = channel_kernels.KernelModule("layers", lambda: None, smoke_tests)
    for variant in ((), (3, (2, 2)), (4, (2, 2)), ("fails",)):
        for _ in range(2):
            assert not module.available(device, torch.float32, *variant) or compiled[-1] == variant
            module.wait()
    assert compiled == [(), (3, (2, 2)), (4, (2, 2))] and module.available(device, torch.float32, 3, (2, 2))


class Kernel:
    """Stands for a kernel of Triton's, and for what it compiles; `calls` has who was started, with which grid and arguments."""

    def __init__(self, name, calls, compiles=True):
        self.name, self.calls, self.compiles = name, calls, compiles

    def __getitem__(self, grid):
        def start(*arguments, **options):
            self.calls.append((self.name, grid, arguments, options))
            return Kernel("compiled", self.calls, False) if self.compiles else None

        return start


def test_triton_is_asked_once_for_what_it_has_compiled():
    calls = []
    module = channel_kernels.KernelModule("layers", lambda: types.SimpleNamespace(normalize=Kernel("normalize", calls)), lambda *_: [])
    x = torch.zeros(65)

    def started(tensors, channels, constants):
        module.start("normalize", (1, 2, 1), tensors, channels, (7, channels), constants)
        return calls[-1][0]

    assert started((x, x), 64, (True, 32)) == "normalize" and started((x, x), 128, (True, 32)) == "compiled"
    assert calls[-1][1:] == ((1, 2, 1), (x, x, 7, 128, True, 32), {}) and calls[0][3] == {"num_warps": 8, **OPTIONS}
    for other in [((x, x.half()), 64, (True, 32)), ((x, x), 24, (True, 32)), ((x, x), 64, (False, 32))]:
        assert [started(*other), started(*other)] == ["normalize", "compiled"]
    for odd in [((x, x[1:]), 64, (True, 32)), ((x, x), 1, (True, 32))]:  # Triton looks at each
        assert [started(*odd), started(*odd)] == ["normalize", "normalize"]
