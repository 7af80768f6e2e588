"""`BucketingModule`: networks of several sizes, such as sequence lengths, that share parameters and memory."""
from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ndarray as nd
from .. import symbol as sym
from ..base import MXNetError
from ..checkpoint import load_params, params_file
from ..context import cpu
from ..initializer import Uniform
from ..name import NameManager
from .base_module import BaseModule, _check_input_names
from .module import Module

if TYPE_CHECKING:
    from ..context import Context
    from ..io.base import DataDesc
    from ..monitor import Monitor
    from ..ndarray import NDArray


class BucketingModule(BaseModule):
    """Several networks, one for each bucket of the data, that share parameters.

    Parameters
    ----------
    sym_gen : callable
        Maps a bucket key to ``(symbol, data_names, label_names)``.
    default_bucket_key
        The key of the bucket with the largest memory, which the others share. Its network has the parameters of all buckets.
    logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params
        As for `Module`.
    """

    def __init__(self, sym_gen: Callable[..., Any], default_bucket_key: Any = None, logger: Any = logging, context: Context | list[Context] = cpu(),
                 work_load_list: list[float] | None = None, fixed_param_names: list[str] | None = None, state_names: list[str] | None = None,
                 group2ctxs: Any = None, compression_params: dict[str, Any] | None = None) -> None:
        super().__init__(logger=logger)
        if default_bucket_key is None:
            raise MXNetError("BucketingModule needs default_bucket_key, the key of the largest bucket; received None")
        self._sym_gen = sym_gen
        self._default_bucket_key = default_bucket_key
        symbol, data_names, label_names = self._call_sym_gen(default_bucket_key)
        _check_input_names(symbol, list(data_names or ()), "data", True)
        _check_input_names(symbol, list(label_names or ()), "label", False)
        _check_input_names(symbol, list(state_names or ()), "state", True)
        _check_input_names(symbol, list(fixed_param_names or ()), "fixed_param", True)
        self._context, self._work_load_list = context, work_load_list
        self._fixed_param_names, self._state_names = list(fixed_param_names or ()), list(state_names or ())
        self._group2ctxs, self._compression_params = group2ctxs, compression_params
        self._params_dirty = False
        self._monitor: Any = None
        self._grad_req: Any = None
        self._reset_bind()

    def _reset_bind(self) -> None:
        self.binded = False
        self._buckets: dict[Any, Module] = {}
        self._curr_module: Any = None
        self._curr_bucket_key: Any = None

    @property
    def _module_options(self):
        return {"logger": self.logger, "context": self._context, "work_load_list": self._work_load_list,
                "fixed_param_names": self._fixed_param_names, "state_names": self._state_names, "group2ctxs": self._group2ctxs,
                "compression_params": self._compression_params}

    def _call_sym_gen(self, *args: Any, **kwargs: Any):
        with NameManager():  # unnamed operators have the same names in all buckets
            return self._sym_gen(*args, **kwargs)

    def _new_module(self, bucket_key: Any):
        symbol, data_names, label_names = self._call_sym_gen(bucket_key)
        return Module(symbol, data_names, label_names, **self._module_options)

    @property
    def _default_module(self) -> Module:
        """The module of the default bucket: the others may have fewer parameters."""
        return self._buckets[self._default_bucket_key]

    def _save_states(self, fname: str) -> None:
        self._default_module._save_states(fname)

    def _load_training(self, fname: str) -> None:
        self._default_module._load_training(fname)

    # -- properties --------------------------------------------------------------------------------------------------------------

    @property
    def data_names(self) -> list[str]:
        """The names of the data."""
        return self._curr_module.data_names if self.binded else self._call_sym_gen(self._default_bucket_key)[1]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return self._curr_module.output_names if self.binded else self._call_sym_gen(self._default_bucket_key)[0].list_outputs()

    @property
    def data_shapes(self) -> list[DataDesc]:
        """The names and shapes of the data, in the current bucket."""
        self._require()
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """The names and shapes of the labels, in the current bucket."""
        self._require()
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of the outputs, in the current bucket."""
        self._require()
        return self._curr_module.output_shapes

    @property
    def symbol(self) -> Any:
        """The network of the current bucket."""
        self._require()
        return self._curr_module.symbol

    # -- parameters --------------------------------------------------------------------------------------------------------------

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return the parameters, as two dicts by name: arguments and auxiliary states."""
        self._require(bound=False, params=True)
        self._default_module._params_dirty = self._params_dirty  # updates through any bucket changed the shared parameters
        params = self._default_module.get_params()
        self._params_dirty = False
        return params

    def set_params(self, arg_params: dict[str, NDArray] | None, aux_params: dict[str, NDArray] | None, allow_missing: bool = False,
                   force_init: bool = True, allow_extra: bool = False) -> None:
        """Set the parameters from two dicts by name; see `Module.init_params` for the flags."""
        if not allow_missing:
            self.init_params(initializer=None, arg_params=arg_params, aux_params=aux_params, allow_missing=False, force_init=force_init,
                             allow_extra=allow_extra)
            return
        if self.params_initialized and not force_init:
            warnings.warn("set_params has no effect: there are parameters already; pass force_init=True to replace them", stacklevel=2)
            return
        self._require()
        self._default_module.set_params(arg_params, aux_params, allow_missing=True, force_init=force_init, allow_extra=allow_extra)
        self._params_dirty = True  # the devices have newer values than the dicts now
        self.params_initialized = True

    def init_params(self, initializer: Any = Uniform(0.01), arg_params: dict[str, NDArray] | None = None,
                    aux_params: dict[str, NDArray] | None = None, allow_missing: bool = False, force_init: bool = False,
                    allow_extra: bool = False) -> None:
        """Initialize all parameters; see `Module.init_params`."""
        if self.params_initialized and not force_init:
            return
        self._require()
        self._default_module.init_params(initializer=initializer, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing,
                                         force_init=force_init, allow_extra=allow_extra)
        self._params_dirty = False
        self.params_initialized = True

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the states that persist across batches; see `Module.get_states`."""
        self._require(params=True)
        return self._curr_module.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states that persist across batches; see `Module.set_states`."""
        self._require(params=True)
        self._curr_module.set_states(states, value)

    # -- binding -----------------------------------------------------------------------------------------------------------------

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False, force_rebind: bool = False,
             shared_module: BaseModule | None = None, grad_req: str | list[str] | dict[str, str] = "write") -> None:
        """Bind the network of the default bucket; `switch_bucket` binds the others at their first use. See `Module.bind`."""
        params = self.get_params() if self.params_initialized else None
        if force_rebind:
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if shared_module is not None:
            raise MXNetError("BucketingModule cannot share the memory of another module; shared_module=None expected, received a "
                             f"{type(shared_module).__name__}")
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._grad_req = grad_req
        key = self._default_bucket_key
        module = self._buckets.get(key) or self._new_module(key)
        module.bind(data_shapes, label_shapes, for_training, inputs_need_grad, grad_req=grad_req)
        self.binded = True
        self._buckets[key] = self._curr_module = module
        self._curr_bucket_key = key
        if params is not None:
            self.set_params(*params)

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Select a bucket; if it is new, its network is created and bound with shared parameters and memory."""
        self._require()
        module = self._buckets.get(bucket_key)
        if module is None:
            module = self._new_module(bucket_key)
            self._bind_bucket(module, bucket_key, data_shapes, label_shapes)
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        elif not module.binded:
            self._bind_bucket(module, bucket_key, data_shapes, label_shapes)
        self._curr_module = module
        self._curr_bucket_key = bucket_key

    def _bind_bucket(self, module: Module, bucket_key: Any, data_shapes: Any, label_shapes: Any) -> None:
        missing = module._parameters_missing_in(self._default_module)
        if missing:
            raise MXNetError(f"BucketingModule: the network of bucket {bucket_key!r} has the parameters {', '.join(missing)}, which that of the "
                             f"default bucket {self._default_bucket_key!r} does not have. The network of default_bucket_key must have the "
                             "parameters of all buckets: choose another default_bucket_key, or let sym_gen use all parameters for this one")
        module.bind(data_shapes, label_shapes, self.for_training, self.inputs_need_grad, shared_module=self._default_module,
                    grad_req=self._grad_req)

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = (("learning_rate", 0.01),),
                       force_init: bool = False) -> None:
        """Set up the optimizer, which all buckets share; see `Module.init_optimizer`."""
        self._require(params=True)
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        default = self._default_module
        default.init_optimizer(kvstore, optimizer, optimizer_params, force_init=force_init)
        for module in self._buckets.values():
            if module is not default:
                module.borrow_optimizer(default)
        self.optimizer_initialized = True

    # -- one batch ---------------------------------------------------------------------------------------------------------------

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Bind the bucket of the next batch, and fetch the parameter rows that it needs; see `BaseModule.prepare`."""
        self._require(params=True)
        current = self._curr_bucket_key
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._curr_module.prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
        self.switch_bucket(current, None, None)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Run a batch forward in the bucket of its ``bucket_key``."""
        self._require(params=True)
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._curr_module.forward(data_batch, is_train=is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients, in the current bucket."""
        self._require(params=True)
        self._curr_module.backward(out_grads=out_grads)

    def update(self) -> None:
        """Update the shared parameters by the optimizer with the gradients of the last `backward`."""
        self._require(params=True, optimizer=True)
        self._params_dirty = True
        self._curr_module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last `forward`."""
        self._require(params=True)
        return self._curr_module.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the data; needs ``bind(inputs_need_grad=True)``."""
        self._require(params=True)
        return self._curr_module.get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with labels and the last outputs."""
        self._require(params=True)
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Monitor) -> None:
        """Install a `Monitor` in the executors of all buckets, including later ones."""
        self._require()
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)

    # -- files -------------------------------------------------------------------------------------------------------------------

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Save the parameters, the network of each bucket (``prefix-<key>-symbol.json``) and the list of keys (``prefix.buckets``).

        Bucket keys must be integers.
        """
        if not self._buckets:
            raise MXNetError("save_checkpoint: there are no buckets yet: call bind(...) first")
        self.save_params(params_file(prefix, epoch))
        for key in self._buckets:
            symbol, _, _ = self._sym_gen(key)
            symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast=remove_amp_cast)
        nd.save(f"{prefix}.buckets", nd.array(list(self._buckets), dtype=np.int32))

    @staticmethod
    def load(prefix: str, epoch: int, sym_gen: Callable[..., Any] | None = None, default_bucket_key: int | None = None, **kwargs: Any) -> Any:
        """Load a module with the networks and parameters that `save_checkpoint` wrote; it is not bound yet.

        Parameters
        ----------
        prefix : str
        epoch : int
        sym_gen : callable
            As for `BucketingModule`; it defines data and label names, and makes buckets that were not saved.
        default_bucket_key : int
        **kwargs
            For `BucketingModule`.
        """
        if sym_gen is None or default_bucket_key is None:
            raise MXNetError(f"BucketingModule.load needs sym_gen and default_bucket_key, received {sym_gen} and {default_bucket_key}")
        keys = [int(key) for key in nd.load(f"{prefix}.buckets")[0].asnumpy()]
        symbols = {key: sym.load(f"{prefix}-{key}-symbol.json") for key in keys}
        return BucketingModule._with_buckets(symbols, sym_gen, default_bucket_key, *load_params(prefix, epoch), **kwargs)

    @staticmethod
    def load_dict(sym_dict: dict[Any, sym.Symbol] | None = None, sym_gen: Callable[..., Any] | None = None, default_bucket_key: Any = None,
                  arg_params: dict[str, NDArray] | None = None, aux_params: dict[str, NDArray] | None = None, **kwargs: Any) -> Any:
        """Create a module as `load` does, from networks (a dict by bucket key) and parameters in memory."""
        given = {"sym_dict": sym_dict, "default_bucket_key": default_bucket_key, "arg_params": arg_params, "aux_params": aux_params}
        for name, value in given.items():
            if value is None:
                raise MXNetError(f"BucketingModule.load_dict needs {name}")
        return BucketingModule._with_buckets(sym_dict, sym_gen, default_bucket_key, arg_params, aux_params, **kwargs)

    @staticmethod
    def _with_buckets(symbols: Any, sym_gen: Any, default_bucket_key: Any, arg_params: dict[str, NDArray] | None,
                      aux_params: dict[str, NDArray] | None, **kwargs: Any):
        module = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        if default_bucket_key not in symbols:
            raise MXNetError(f"the default bucket {default_bucket_key!r} is not among the saved ones: {sorted(symbols)}")
        for key, symbol in symbols.items():
            _, data_names, label_names = sym_gen(key)
            module._buckets[key] = Module(symbol, data_names, label_names, **kwargs)
        current = module._curr_module = module._buckets[default_bucket_key]
        current._arg_params, current._aux_params = arg_params, aux_params
        current.params_initialized = module.params_initialized = True
        return module
