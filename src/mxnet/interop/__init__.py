"""Networks that cross between MXNet and torch: `torch_module` hands a graph out as a `torch.nn.Module`, `from_torch` reads what torch exports."""
from .torch_module import SharedParameter, TorchModule

__all__ = ["SharedParameter", "TorchModule"]
