# Made by scripts/make_stubs.py; do not edit.
# mypy: disable-error-code="override, misc"
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload

from . import amp as amp
from . import attribute as attribute
from . import autograd as autograd
from . import base as base
from . import callback as callback
from . import checkpoint as checkpoint
from . import compat as compat
from . import context as context
from . import contrib as contrib
from . import device as device
from . import engine as engine
from . import environment as environment
from . import error as error
from . import executor as executor
from . import gluon as gluon
from . import graph as graph
from . import image as _img
from . import image as image
from . import initializer as _init
from . import initializer as initializer
from . import io as io
from . import kvstore as _kv
from . import kvstore as kvstore
from . import libinfo as libinfo
from . import library as library
from . import log as log
from . import lr_scheduler as lr_scheduler
from . import memory as memory
from . import metric as metric
from . import model as model
from . import module as _mod
from . import module as module
from . import monitor as _mon
from . import monitor as monitor
from . import name as name
from . import ndarray as _nd
from . import ndarray as ndarray
from . import ndarray_doc as ndarray_doc
from . import notebook as notebook
from . import numpy as _np
from . import numpy as numpy
from . import numpy_dispatch_protocol as numpy_dispatch_protocol
from . import numpy_extension as _npx
from . import numpy_extension as numpy_extension
from . import numpy_op_fallback as numpy_op_fallback
from . import numpy_op_signature as numpy_op_signature
from . import onnx as onnx
from . import operator as operator
from . import optimizer as optimizer
from . import profiler as profiler
from . import random as _rnd
from . import random as random
from . import recordio as recordio
from . import registry as registry
from . import rnn as rnn
from . import rtc as rtc
from . import runtime as runtime
from . import symbol as _sym
from . import symbol as symbol
from . import symbol_doc as symbol_doc
from . import test_utils as test_utils
from . import tools as tools
from . import torch as _th
from . import torch as torch
from . import util as util
from . import visualization as _viz
from . import visualization as visualization
from .attribute import AttrScope as AttrScope
from .base import MXNetError as MXNetError
from .context import Context as Context
from .context import Context as _Device
from .context import cpu as cpu
from .context import cpu_pinned as cpu_pinned
from .context import current_context as _current_device
from .context import current_context as current_context
from .context import gpu as gpu
from .context import gpu_memory_info as gpu_memory_info
from .context import num_gpus as num_gpus
from .symbol import numpy as _np_symbol
from .util import is_np_array as is_np_array
from .util import is_np_shape as is_np_shape
from .util import np_array as np_array
from .util import np_shape as np_shape
from .util import set_np_shape as set_np_shape
from .util import use_np as use_np
from .util import use_np_array as use_np_array
from .util import use_np_shape as use_np_shape

Device = _Device
current_device = _current_device
img = _img
init = _init
kv = _kv
mod = _mod
mon = _mon
nd = _nd
np = _np
np_symbol = _np_symbol
npx = _npx
rnd = _rnd
sym = _sym
th = _th
viz = _viz

__version__: str
