"""`Module.as_torch`: an MXNet module as a `torch.nn.Module` on the memory of its executor."""
from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from ..base import MXNetError
from ..ndarray import NDArray, from_torch, mutation_tracking

if TYPE_CHECKING:
    from ..interop import TorchModule


class SharesWithTorch:
    """A mixin with the method `as_torch` of `Module`, and its prerequisites."""

    _in_torch = False
    _newer = False

    @property
    def _params_dirty(self) -> bool:
        """True while the devices have newer values than the dicts of parameters; always with torch, whose writes are not observed."""
        return self._newer or self._in_torch

    @_params_dirty.setter
    def _params_dirty(self, newer: bool) -> None:
        self._newer = newer

    def as_torch(self) -> TorchModule:
        """Return the module as a `torch.nn.Module` whose parameters share the executor's memory: training either one trains both.

        Its arguments are the data, followed by the labels. Labels may be left out if no gradient is recorded.

        Returns
        -------
        mxnet.interop.TorchModule
            It returns the outputs as a tensor, or as a list of several. See `HybridBlock.as_torch`.

        Raises
        ------
        MXNetError
            If the module is not bound, has no parameters yet, has states, or runs on several devices.

        Example
        -------
        >>> import mxnet as mx, torch
        >>> net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc'), name='softmax')
        >>> module = mx.mod.Module(net)
        >>> module.bind([('data', (4, 3))], [('softmax_label', (4,))])
        >>> module.init_params(mx.init.Zero())
        >>> with torch.no_grad():
        ...     module.as_torch()(torch.ones(1, 3))
        tensor([[0.5000, 0.5000]])
        """
        from ..interop import SharedParameter, TorchModule
        module: Any = self
        module._require(params=True)
        if module._split is not None:
            raise MXNetError(f"as_torch: {', '.join(module._split.parts)} are divided among contexts or ranks, and a torch module needs them whole; "
                             "load the module's checkpoint without group2ctxs")
        if len(module._context) > 1 or module._state_names:
            obstacle = f"states ({', '.join(module._state_names)})" if module._state_names else f"{len(module._context)} devices"
            raise MXNetError(f"as_torch: a module on one device and without states expected, this one has {obstacle}")
        module._take_memory()
        symbol, fixed = module._symbol, set(module._fixed_param_names)
        arguments = symbol.list_inputs()
        labels = {desc.name: tuple(desc.shape) for desc in module.label_shapes or () if desc.name in arguments}
        inputs = [*module._data_names, *(name for name in module._label_names if name in arguments)]
        states = set(module._aux_names)
        shared = [SharedParameter(name, name, functools.partial(_array, module, name), functools.partial(_adopt, module, name),
                                  name not in fixed, name in states) for name in arguments if name not in inputs]
        self._in_torch = True
        count = len(symbol.list_outputs())
        shapes = {desc.name: tuple(desc.shape) for desc in (*module.data_shapes, *(module.label_shapes or ()))}
        return TorchModule(symbol, inputs, shared, [0] * len(inputs), 0 if count == 1 else [0] * count,
                           default=functools.partial(_label, labels, module._data_names[0]), examples=shapes)


def _array(module: Any, name: str) -> NDArray:
    executor = module._exec_group.execs[0]
    array = executor.arg_dict.get(name)
    return executor.aux_dict[name] if array is None else array


def _adopt(module: Any, name: str, tensor: torch.Tensor) -> None:
    array = _array(module, name)
    if tensor.dtype is not array._data.dtype or tensor.device != array._data.device:
        raise MXNetError(f"TorchModule: the executor of an mx.mod.Module was bound with {name} as {array._data.dtype} on {array._data.device}, and "
                         f"keeps that; received {tensor.dtype} on {tensor.device}. Copy the module first: copy.deepcopy(module).to(...)")
    mutation_tracking.written(array._data)
    array._data.data = from_torch(tensor)._data


def _label(shapes: Mapping[str, tuple[int, ...]], data: str, name: str, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return zeros for a label on which only gradients depend."""
    if name not in shapes:
        raise MXNetError(f"TorchModule: the input `{name}` was not given")
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise MXNetError(f"TorchModule: the gradient depends on the label `{name}`, which was not given; pass it behind the data, or call the "
                         "module under torch.no_grad()")
    first = tensors[data]
    return first.new_zeros((first.shape[0], *shapes[name][1:]), dtype=torch.float32)
