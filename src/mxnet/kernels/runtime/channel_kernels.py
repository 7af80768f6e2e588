"""Kernels in Triton for training over rows of channels: the arrays that they fit, the division of rows among programs, compilation and starts.

Such arrays have their channels last: (N, C, H, W) in that memory format, or (N, C). A program processes a block of channels and a part of the rows.
"""
import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import torch

from .triton_kernels import OLDEST, CompiledKernels, installed, interpreted

_log = logging.getLogger(__name__)
# Elements below which torch is done before the kernels would have been started (and nothing is compiled).
_WORTHWHILE = 1 << 14
TYPES = torch.float16, torch.bfloat16, torch.float32
TILE = 4096  # elements of a program's tile
PARTS = 1024  # most parts of the rows in sums; programs with TILE // PARTS channels join them
PROGRAMS = 1024, 2048  # of the kernels that sum, and that write an array; a GPU runs about four on each of up to 160 multiprocessors at once
_MOST_CHANNELS = 64  # of a tile: a row of float16 fills a cache line
_LARGEST = 1 << 16, 1 << 30  # channels and rows
_WARPS = 8
_ALIGNED = 16  # multiple of addresses (bytes) and of channels for which Triton specializes kernels


def fits(data: torch.Tensor) -> bool:
    """Return True if an array has a size, a memory order and a type for which there are kernels, and is large enough to profit from them."""
    if type(data) is not torch.Tensor or data.dtype not in TYPES or data.numel() < max(_WORTHWHILE, 1) or not _is_rows(data):
        return False
    channels = data.shape[1]
    return channels <= _LARGEST[0] and data.numel() // channels <= _LARGEST[1]


def _is_rows(tensor: torch.Tensor) -> bool:
    """Return True if a tensor is contiguous with its channels last."""
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last) or tensor.dim() == 2 and tensor.is_contiguous()


def fits_vector(vector: torch.Tensor, data: torch.Tensor, types: Sequence[torch.dtype]) -> bool:
    """Return True if kernels can read `vector`, a number of one of these types for each channel of `data`."""
    return vector.dtype in types and vector.shape == data.shape[1:2] and vector.is_contiguous() and vector.device == data.device


def arranged(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor contiguous with its channels last."""
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor.contiguous()


def empty_like(data: torch.Tensor) -> torch.Tensor:
    """Return an array of the same shape and type without values, with its channels last."""
    return torch.empty_like(data, memory_format=torch.channels_last if data.dim() == 4 else torch.contiguous_format)


def blocks(channels: int) -> tuple[int, int]:
    """Return the rows and channels of a tile."""
    width = min(max(1 << (channels - 1).bit_length(), 8), _MOST_CHANNELS)
    return TILE // width, width


def partition(rows: int, channels: int, programs: int, most: int) -> tuple[int, int]:
    """Return the number of parts of the rows for about `programs` programs, and the rows of a part: a multiple of the tile's."""
    height, width = blocks(channels)
    parts = min(max(programs // -(-channels // width), 1), most)
    part = -(-rows // (parts * height)) * height
    return -(-rows // part), part


class KernelModule:
    """A module of kernels, which are compiled and tested in a thread before they are used.

    Parameters
    ----------
    layers : str
        What the kernels compute, for messages.
    load : callable
        Imports and returns the Python module, which imports triton.
    smoke_tests : callable
        Takes a device, a type and a variant, and returns functions without arguments that start all kernels on small arrays, and raise if one
        fails.
    """

    def __init__(self, layers: str, load: Callable[[], Any], smoke_tests: Callable[..., Iterable[Callable[[], Any]]]):
        self._layers, self._load, self.smoke_tests = layers, load, smoke_tests
        self._usable: dict[tuple, bool] = {}
        self._threads: dict[tuple, threading.Thread] = {}
        self._compiled = CompiledKernels()
        _modules.append(self)

    def available(self, device: torch.device, dtype: torch.dtype = torch.float32, *variant: Hashable) -> bool:
        """Return True if the kernels run on a device. The first call starts a thread that tests them; until it is done, torch's are to run.

        `variant` has further arguments of the smoke tests, such as sizes that are constants of the kernels: each is compiled at its first call.
        """
        if dtype not in TYPES or not installed():
            return False
        if interpreted():
            return device.type == "cpu"
        key = device, dtype, *variant
        usable = self._usable.get(key)
        if usable is None and device.type == "cuda" and key not in self._threads and not torch.cuda.is_current_stream_capturing():
            if torch.cuda.get_device_capability(device) < OLDEST:
                self._usable[key] = False
            else:
                self._threads[key] = thread = threading.Thread(target=self._test, args=key, name=f"Triton compiles {self._layers}")
                thread.start()
        return bool(usable)

    def compiling(self) -> bool:
        """Return True while kernels are being compiled."""
        return any(thread.is_alive() for thread in list(self._threads.values()))

    def wait(self) -> None:
        """Wait until all compilations are done."""
        for thread in list(self._threads.values()):
            thread.join()

    def _test(self, *key: Any) -> None:
        """Run the smoke tests, and record if they succeed: Triton's compiler may lack a tool on this machine."""
        try:
            for test in self.smoke_tests(*key):
                test()
                if not threading.main_thread().is_alive():
                    return  # the program ends
        except Exception as error:  # of the compiler, the assembler or the driver
            _log.warning("%s train on torch's kernels, as Triton's fail on %s: %s", self._layers, key[0], str(error).strip()[:300])
            self._usable[key] = False
        else:
            self._usable[key] = True

    def start(self, name: str, grid: tuple[int, int, int], tensors: Sequence[torch.Tensor], channels: int, numbers: tuple, constants: tuple) -> None:
        """Start a kernel, whose parameters are tensors, numbers and constants in this order.

        The compiled kernel is cached for aligned addresses; for others Triton selects it each time.
        """
        plain = channels > 1 and not any(t.data_ptr() % _ALIGNED for t in tensors)
        key = (name, channels % _ALIGNED == 0, tensors[0].device, *[t.dtype for t in tensors], *constants) if plain else None
        self._compiled.start(key, lambda: getattr(self._load(), name), grid, (*tensors, *numbers, *constants), _WARPS)


_modules: list[KernelModule] = []


def compiling() -> bool:
    """Return True while kernels of any module are being compiled: a graph captured now would not contain them."""
    return any(module.compiling() for module in _modules)
