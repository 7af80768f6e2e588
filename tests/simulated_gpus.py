"""GPUs where there are none: tensors that say that they are on ``cuda:0`` or ``cuda:1``, compute on the processor, and keep a GPU's rules.

Most faults of code for GPUs are no matter of numbers: a constant is made on the processor, a kernel for processors is chosen, a result lies on
the wrong device, the host waits. All of them show on tensors that only say where they are, on any machine. Inside of `gpus()` a program may use
``mx.gpu(0)`` and ``mx.gpu(1)``:

- An operation on tensors of two devices fails, as does one that CUDA refuses although processors have it (`REFUSED`).
- An array whose tensor lies elsewhere than the array says fails where it is made.
- Whatever makes the host wait for a GPU is noted: `Watch`. A copy to a GPU does, too, unless it is ``non_blocking``.
- To torch's C++ these are tensors of a processor. What its functions and formulas for gradients make on their own way they thus make there, where
  CUDA's are on the GPU. Such a tensor is told from one that our Python makes by who called: Python's calls pass `_Functions` first.

What it cannot show: numbers that differ since CUDA's kernels compute otherwise, types that CUDA's kernels lack, memory, and captured graphs.
"""
import contextlib
import math
import threading
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

import mxnet as mx
from mxnet import context
from mxnet.gluon import fast_path, forward_trace
from mxnet.graph.tuning import policy
from mxnet.ndarray import dispatch, fast_calls, memory_format, ndarray
from mxnet.numpy import frontend, multiarray
from mxnet.ops import random_state

aten, prim = torch.ops.aten, torch.ops.prim
COUNT = 2
# What reads numbers on the host to know how much memory its result takes, or whether a solver succeeded: torch's C++ does so below what is seen here.
READ_BY_THE_HOST = {
    aten._local_scalar_dense.default, aten.is_nonzero.default, aten.equal.default, aten.nonzero.default, aten.masked_select.default,
    aten._unique2.default, aten.unique_consecutive.default, aten.unique_dim.default, aten.repeat_interleave.Tensor, aten.bincount.default,
    aten._coalesce.default, aten._linalg_check_errors.default, aten._linalg_eigh.default, aten._linalg_svd.default, aten.linalg_eig.default,
    aten._linalg_eigvals.default, aten.linalg_eigvals.default, aten.linalg_pinv.atol_rtol_tensor, aten.linalg_pinv.atol_rtol_float}
# Their indices may be on the host, and are copied.
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
# What runs on a processor only, by a test of the arguments.
REFUSED = {aten.native_batch_norm.default: lambda args: args[1] is None and args[2] is not None,
           aten._batch_norm_impl_index.default: lambda args: args[1] is None and args[2] is not None}


class OnGPU(torch.Tensor):
    """A tensor of a simulated GPU; `numbers` has its numbers."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    is_cuda, is_cpu = True, False

    @staticmethod
    def __new__(cls, values, device):
        if values.layout is torch.strided:
            made = torch.Tensor._make_wrapper_subclass(cls, values.shape, strides=values.stride(), storage_offset=values.storage_offset(),
                                                       dtype=values.dtype, device="cpu")
        else:
            made = torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=values.dtype, layout=values.layout, device="cpu",
                                                       dispatch_layout=True)
        made.numbers, made.place = values, device
        return made

    @property
    def device(self):
        return self.place

    def __repr__(self, **_):
        return f"OnGPU({self.numbers}, {self.place})"

    @property
    def data(self):
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, values):
        torch.Tensor.data.__set__(self, values)
        self.numbers = values.numbers

    def data_ptr(self):
        return self.numbers.data_ptr()

    def untyped_storage(self):
        return self.numbers.untyped_storage()

    def get_device(self):
        return self.place.index

    def to(self, *args, copy=False, **kwargs):
        device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        if not copy and device in (None, self.place) and dtype in (None, self.dtype):
            return self
        found = self if device in (None, self.place) else Move.apply(self, torch.device(device), non_blocking)
        if dtype in (None, found.dtype):
            return found.clone() if found is self else found
        options = {} if memory_format is None else {"memory_format": memory_format}
        return torch.Tensor.to(found, dtype=dtype, copy=copy, **options)

    def cpu(self, **_):
        return self.to(torch.device("cpu"))

    def numpy(self, *, force=False):
        if not force:
            raise TypeError(f"can't convert {self.place} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
        return self.detach().cpu().numpy()

    def __array__(self, *_):
        return self.numpy()

    def tolist(self):
        return self.detach().cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


class Move(torch.autograd.Function):
    """A copy on another device."""

    @staticmethod
    def forward(ctx, tensor, device, non_blocking):
        ctx.source = tensor.device
        return moved(tensor, device, non_blocking)

    @staticmethod
    def backward(ctx, gradient):
        return moved(gradient, ctx.source), None, None


class _Thread(threading.local):
    watch = None
    function = False  # whether Python called a function of torch's with a GPU's tensors, and it has not returned
    of_functions = -1  # the backward pass in which Python called torch last, -1 for none


_thread = _Thread()


def called_by_torch():
    """Whether an operation is a step of a function of torch's on tensors of a GPU, or of torch's formula for a gradient."""
    return _thread.function or torch._C._current_graph_task_id() not in (-1, _thread.of_functions)


def lies_on(tensor, device):
    """Whether a tensor is on a simulated GPU; torch's own formulas know but one."""
    return isinstance(tensor, OnGPU) and tensor.place == device or hasattr(tensor, "of_torch")


class Watch:
    """What made the host wait for a GPU: `waits` has what reads from one, by torch's names, and `copies` what writes to one."""

    def __init__(self):
        self.waits, self.copies = [], []

    def __enter__(self):
        self._outer, _thread.watch = _thread.watch, self
        return self

    def __exit__(self, *_):
        _thread.watch = self._outer


def note(kind, what):
    """Tell the current `Watch`."""
    if _thread.watch is not None:
        getattr(_thread.watch, kind).append(what)


def moved(tensor, device, non_blocking=False):
    """A copy of a tensor's values on a device."""
    tensor = tensor.detach()
    with torch._C._DisableTorchDispatch():  # what is copied to the host was not made there
        values = getattr(tensor, "numbers", tensor).clone()
    if device.type == "cpu":
        note("waits", "copy to the host")
        return values
    if not isinstance(tensor, OnGPU) and not non_blocking:
        note("copies", "copy from the host")
    return OnGPU(values, numbered(device))


def numbered(device):
    device = torch.device(device)
    if device.index is not None and device.index >= COUNT:
        raise RuntimeError(f"CUDA error: invalid device ordinal {device.index}")
    return torch.device("cuda", device.index or 0)


def tensors_in(values):
    """The tensors among the arguments or results of an operation, which may stand in lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (v for v in value if isinstance(v, torch.Tensor))


def changed(change, value):
    """`value` with ``change(tensor)`` for each tensor."""
    if isinstance(value, torch.Tensor):
        return change(value)
    return type(value)([changed(change, v) for v in value]) if type(value) in (list, tuple) else value


def check_devices(func, values):
    """One device for all but numbers, as CUDA wants it; those in lists go to a kernel as they are."""
    places = {str(t.device) for v in values for t in tensors_in((v,)) if t is not v or t.dim() or isinstance(t, OnGPU)}
    if len(places) > 1:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {' and '.join(sorted(places))}! ({func})")


def run(func, args, kwargs):
    """An operation of torch's, on whichever device its tensors or its ``device=`` say."""
    if func is prim.layout.default:
        return args[0].numbers.layout
    if func is aten._to_copy.default and torch._C._current_graph_task_id() not in (-1, _thread.of_functions):
        kwargs = {**kwargs, "device": None}  # a gradient becomes as its input was: to C++ on a processor
    places = [t.place for t in tensors_in((*args, *kwargs.values())) if isinstance(t, OnGPU)]
    asked = kwargs.get("device")
    target = torch.device(asked) if asked is not None else places[0] if places else torch.device("cpu")
    if target.type == "cpu" and not places or target.type == "meta":
        found = func(*args, **kwargs)
        if called_by_torch() or any(hasattr(t, "of_torch") for t in tensors_in(args)):
            for t in tensors_in((found,)):
                t.of_torch = True
        return found
    if places:
        args, kwargs = remade(lambda t: OnGPU(t, places[0]) if hasattr(t, "of_torch") else t, args, kwargs)
    if func is aten._to_copy.default:
        return copied(func, args[0], target, kwargs)
    if func is aten.copy_.default:
        if not isinstance(args[0], OnGPU):
            note("waits", "copy to the host")
            func(args[0], args[1].numbers, *args[2:])
            return args[0]
        if not isinstance(args[1], OnGPU) and args[1].dim() and not (args[2:] or kwargs.get("non_blocking")):
            note("copies", "copy from the host")
    else:
        check_devices(func, (*(args[:1] if func in INDEXED else args), *kwargs.values()))
    if func in READ_BY_THE_HOST:
        note("waits", func._schema.name.removeprefix("aten::"))
    if func in INDEXED and any(t.dtype in (torch.bool, torch.uint8) for t in args[1] if t is not None):
        note("waits", "nonzero of a mask")
    if func in REFUSED and REFUSED[func](args):
        raise RuntimeError(f"{func}: CUDA does not take this")
    plain_args, plain_kwargs = remade(lambda t: t.numbers if isinstance(t, OnGPU) else t, args, kwargs)
    if asked is not None:
        plain_kwargs["device"] = torch.device("cpu")
    found = func(*plain_args, **plain_kwargs)
    place = numbered(target) if target.type == "cuda" else places[0]
    return connected(func, args, kwargs, changed(lambda t: OnGPU(t, place), found))


def remade(change, args, kwargs):
    return tuple(changed(change, a) for a in args), {k: changed(change, v) for k, v in kwargs.items()}


def copied(func, tensor, target, kwargs):
    """A copy on another device, in another type or order."""
    copy = moved(tensor, target, kwargs.get("non_blocking")) if target != tensor.device else tensor
    rest = {k: v for k, v in kwargs.items() if k not in ("device", "non_blocking", "pin_memory") and v is not None}
    return OnGPU(func(copy.numbers, **rest), copy.place) if isinstance(copy, OnGPU) else func(copy, **rest)


def connected(func, args, kwargs, results):
    """The results as torch wants them: views know what they are views of, and what was written to is what came."""
    ours = [t for t in tensors_in((*args, *kwargs.values(), *(results if isinstance(results, (list, tuple)) else [results]))) if isinstance(t, OnGPU)]
    for t in ours if func._schema.is_mutable else ():
        if t.shape != t.numbers.shape:  # what ``out=`` was too small for
            t.data = OnGPU(t.numbers, t.place)
    if all(t.numbers.layout is torch.strided for t in ours):
        return return_and_correct_aliasing(func, args, kwargs, results)
    return args[0] if func._schema.is_mutable else results


class _Operations(TorchDispatchMode):
    """Sees what makes tensors on a device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Sees what looks at devices before an operation does."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        before = _thread.function, _thread.of_functions
        _thread.function = any(isinstance(t, OnGPU) for t in tensors_in(args))
        _thread.of_functions = torch._C._current_graph_task_id()
        try:
            return self.call(func, args, dict(kwargs or {}))
        finally:
            _thread.function, _thread.of_functions = before

    @staticmethod
    def call(func, args, kwargs):
        if func in (torch.tensor, torch.as_tensor, torch.asarray) and on_cuda(kwargs.get("device")):
            device = numbered(kwargs.pop("device"))
            return func(*args, **kwargs).to(device)
        if func is torch.Tensor.new_tensor and isinstance(args[0], OnGPU):
            return torch.tensor(args[1], dtype=kwargs.get("dtype") or args[0].dtype).to(args[0].place)
        if func is torch.Tensor.cuda:
            func, args = torch.Tensor.to, (args[0], torch.device("cuda"))
        if func is torch.Tensor.to and len(args) > 1 and isinstance(args[1], torch.Tensor):
            args = (args[0], args[1].device, args[1].dtype, *args[2:])
        if func is torch.Tensor.to and isinstance(args[0], OnGPU):
            return args[0].to(*args[1:], **kwargs)
        if func is torch.Tensor.to:
            device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args[1:], **{k: v for k, v in kwargs.items() if k != "copy"})
            if on_cuda(device):
                found = Move.apply(args[0], numbered(device), non_blocking)
                return found if dtype in (None, found.dtype) else found.to(dtype)
        if func is torch.Tensor.pin_memory:
            return args[0].clone()
        return func(*args, **kwargs)


def on_cuda(device):
    return device is not None and torch.device(device).type == "cuda"


def _wrap(cls, tensor, ctx):
    """`dispatch.wrap`, of tensors that lie where the array says."""
    if not (tensor.device == ctx.torch_device or tensor.is_meta or hasattr(tensor, "of_torch")):
        raise AssertionError(f"an array that says it is on {ctx} got a tensor of {tensor.device}")
    return _plain_wrap(cls, tensor, ctx)


_plain_wrap = dispatch.wrap
_WRAPPERS = dispatch, fast_calls, forward_trace, frontend, multiarray, ndarray, fast_path  # who has it under its name


_owned_on_cpu = memory_format.owned


def _owned(tensor):
    """The rule of `memory_format.owned`, which takes plain tensors only."""
    if not isinstance(tensor, OnGPU):
        return _owned_on_cpu(tensor)
    return not tensor._is_view() and _owned_on_cpu(tensor.numbers)


@contextlib.contextmanager
def gpus():
    """Let torch say that there are two GPUs, and take tensors of theirs."""
    cuda = {"is_available": lambda: True, "device_count": lambda: COUNT, "_lazy_init": lambda: None, "synchronize": lambda *_: None,
            "current_device": lambda: 0, "empty_cache": lambda: None, "mem_get_info": lambda *_: (1 << 30, 2 << 30),
            "get_device_capability": lambda *_: (9, 0), "is_current_stream_capturing": lambda: False}
    context._torch_device.cache_clear()
    with contextlib.ExitStack() as stack:
        for name, value in cuda.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        stack.enter_context(mock.patch.object(policy, "budget", lambda _: math.inf))  # captures, which would follow
        stack.enter_context(mock.patch.dict(random_state._generators, {("cuda", i): torch.Generator().manual_seed(i) for i in range(COUNT)}))
        stack.enter_context(mock.patch.object(memory_format, "owned", _owned))
        for module in _WRAPPERS:
            stack.enter_context(mock.patch.object(module, "wrap", _wrap))
        stack.enter_context(mock.patch.object(mx.nd.NDArray, "_new", classmethod(_wrap)))
        stack.enter_context(_Functions())
        stack.enter_context(_Operations())
        try:
            yield mx.gpu(0), mx.gpu(1)
        finally:
            context._torch_device.cache_clear()
