"""Devices under MXNet 2's names: `Device` is `mxnet.context.Context`, `current_device` is `mxnet.context.current_context`."""
from .context import Context as Device
from .context import cpu, cpu_pinned, gpu, gpu_memory_info, num_gpus
from .context import current_context as current_device

__all__ = ["Device", "cpu", "cpu_pinned", "current_device", "gpu", "gpu_memory_info", "num_gpus"]
