"""`SequentialModule`: a chain of modules; each one's outputs are the next one's inputs."""
from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any

from ..base import MXNetError
from ..initializer import Uniform
from .base_module import BaseModule

if TYPE_CHECKING:
    from ..io.base import DataDesc
    from ..monitor import Monitor
    from ..ndarray import NDArray


class SequentialModule(BaseModule):
    """A chain of modules.

    Example
    -------
    >>> import mxnet as mx
    >>> body = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=4, name='fc1')
    >>> head = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc2'), name='softmax')
    >>> chain = mx.mod.SequentialModule()
    >>> chain = chain.add(mx.mod.Module(body, label_names=[])).add(mx.mod.Module(head), take_labels=True, auto_wiring=True)
    >>> chain.bind([('data', (5, 3))], [('softmax_label', (5,))])
    >>> chain.output_shapes
    [('softmax_output', (5, 2))]
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger=logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: Any = None
        self._data_shapes: Any = None
        self._meta_keys = {self.META_TAKE_LABELS, self.META_AUTO_WIRING}

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Append a module.

        Parameters
        ----------
        module : BaseModule
        take_labels : bool
            Pass the labels to it.
        auto_wiring : bool
            Connect its inputs by position, regardless of the names of the previous outputs.

        Returns
        -------
        SequentialModule
            This one, so that calls can be chained.
        """
        for key in kwargs:
            if key not in self._meta_keys:
                raise MXNetError(f"SequentialModule.add: unknown keyword {key!r}; expected one of {sorted(self._meta_keys)}")
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    @property
    def data_names(self) -> list[str]:
        """The names of the data: those of the first module."""
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs: those of the last module."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> list[DataDesc]:
        """The names and shapes of the data."""
        self._require()
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """The names and shapes of the labels; None if no module takes them."""
        self._require()
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of the outputs."""
        self._require()
        return self._modules[-1].output_shapes

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return the parameters of all modules, as two dicts by name."""
        self._require(params=True)
        arguments, auxiliary = {}, {}
        for module in self._modules:
            arg, aux = module.get_params()
            arguments.update(arg)
            auxiliary.update(aux)
        return arguments, auxiliary

    def init_params(self, initializer: Any = Uniform(0.01), arg_params: dict[str, NDArray] | None = None,
                    aux_params: dict[str, NDArray] | None = None, allow_missing: bool = False, force_init: bool = False,
                    allow_extra: bool = False) -> None:
        """Initialize the parameters of all modules; see `Module.init_params`.

        Raises
        ------
        MXNetError
            If two modules have a parameter of the same name.
        """
        if self.params_initialized and not force_init:
            return
        self._require()
        owners: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for i, module in enumerate(self._modules):
            module.init_params(initializer=initializer, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing,
                               force_init=force_init, allow_extra=allow_extra)
            for owner, params in zip(owners, module.get_params()):
                for name in params:
                    if name in owner:
                        first = owner[name]
                        raise MXNetError(f"Duplicated parameter names: {name!r} in layer {i} ({type(module).__name__}) is already used "
                                         f"in layer {first} ({type(self._modules[first]).__name__}); name the operators differently")
                    owner[name] = i
        self.params_initialized = True

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False, force_rebind: bool = False,
             shared_module: BaseModule | None = None, grad_req: str | list[str] | dict[str, str] = "write") -> None:
        """Bind all modules, each to the output shapes of the one before; see `Module.bind`."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise MXNetError(f"bind: inputs_need_grad=True needs for_training=True, received for_training={for_training}")
        if shared_module is not None:
            raise MXNetError("SequentialModule cannot share the memory of another module; shared_module=None expected, received a "
                             f"{type(shared_module).__name__}")
        if not self._modules:
            raise MXNetError("SequentialModule: at least one module expected, received none: add(module) some before bind")
        self.binded = True
        takes_labels = [bool(meta.get(self.META_TAKE_LABELS)) for meta in self._metas]
        self._label_shapes = label_shapes if any(takes_labels) else None
        shapes = data_shapes
        for i, (module, meta) in enumerate(zip(self._modules, self._metas)):
            if meta.get(self.META_AUTO_WIRING):
                if len(module.data_names) != len(shapes):
                    raise MXNetError(f"auto_wiring: layer {i} takes {module.data_names}, but there are {len(shapes)} outputs before it")
                shapes = [(name, d[1]) for name, d in zip(module.data_names, shapes)]
            module.bind(data_shapes=shapes, label_shapes=label_shapes if takes_labels[i] else None, for_training=for_training,
                        inputs_need_grad=bool(inputs_need_grad or (for_training and i > 0)), force_rebind=force_rebind, grad_req=grad_req)
            shapes = module.output_shapes

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = (("learning_rate", 0.01),),
                       force_init: bool = False) -> None:
        """Set up an optimizer for each module; see `Module.init_optimizer`."""
        self._require(params=True)
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params, force_init=force_init)
        self.optimizer_initialized = True

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Run a batch through all modules."""
        self._require(params=True)
        batch = copy.copy(data_batch)  # its data are replaced by each module; the caller's batch is not changed
        for module in self._modules[:-1]:
            module.forward(batch, is_train=is_train)
            batch.data = module.get_outputs()
            if hasattr(batch, "provide_data"):
                batch.provide_data = [(name, array.shape) for name, array in zip(module.output_names, batch.data)]
        self._modules[-1].forward(batch, is_train=is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients, from the last module to the first."""
        self._require(params=True)
        for i, module in reversed(list(enumerate(self._modules))):
            module.backward(out_grads=out_grads)
            if i:
                out_grads = module.get_input_grads()

    def update(self) -> None:
        """Update the parameters of all modules by their optimizers."""
        self._require(params=True, optimizer=True)
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last module."""
        self._require(params=True)
        return self._modules[-1].get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the data."""
        self._require(params=True)
        if not self.inputs_need_grad and not self._modules[0].inputs_need_grad:
            raise MXNetError(f"get_input_grads needs a module bound with inputs_need_grad=True, it was bound with {self.inputs_need_grad}; bind "
                             "it again")
        return self._modules[0].get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with the labels and the outputs of the modules with labels."""
        self._require(params=True)
        for meta, module in zip(self._metas, self._modules):
            if meta.get(self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Monitor) -> None:
        """Install a `Monitor` in all modules."""
        self._require()
        for module in self._modules:
            module.install_monitor(mon)
