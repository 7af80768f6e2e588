"""Pickles of our own, read safely: arrays, optimizers and schedulers, and nothing else."""
import io
import pickle
import sys

from ..base import MXNetError
from ..context import Context
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from .base import Optimizer

_MODULES = ("mxnet.optimizer", "mxnet.lr_scheduler", "mxnet.ndarray", "mxnet.context", "mxnet.numpy")
_NAMES = {
    ("builtins", "bytearray"), ("builtins", "object"), ("builtins", "set"), ("builtins", "complex"),
    ("copyreg", "_reconstructor"), ("copy_reg", "_reconstructor"), ("_codecs", "encode"),
    ("collections", "OrderedDict"),
    *((module, name) for module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")
      for name in ("ndarray", "dtype", "_reconstruct", "_frombuffer", "scalar")),
    *(("numpy", name) for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                   "bool_")),
}


def _is_ours(found):
    """Whether a class is an array, an optimizer or a scheduler, or one that the program has derived from these."""
    return isinstance(found, type) and issubclass(found, (NDArray, Optimizer, LRScheduler, Context))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, what):
        super().__init__(file)
        self._what = what

    def find_class(self, module, name):
        if (module, name) in _NAMES:
            return super().find_class(module, name)
        if module.startswith(_MODULES):
            found = super().find_class(module, name)
        else:
            # A class of the program itself, such as its own optimizer. Nothing is imported on behalf of a file.
            found = getattr(sys.modules.get(module), name, None)
        if not _is_ours(found):
            raise MXNetError(f"{self._what} is refused: it holds {module}.{name}, and only arrays, optimizers and learning rate schedulers are "
                             "read (a class of your own must be defined, and derived from these, before the file is read)")
        return found


def loads(data, what="the pickled data"):
    """The object in a pickle that `mxnet` wrote.

    Parameters
    ----------
    data : bytes
    what : str
        What to call it in messages, such as the name of the file.

    Raises
    ------
    MXNetError
        If it is damaged, or holds anything but arrays, optimizers, schedulers and plain Python values.
    """
    stream = io.BytesIO(data)
    try:
        return _Unpickler(stream, what).load()
    except MXNetError:
        raise
    except Exception as error:
        # A damaged pickle may raise nearly anything.
        raise MXNetError(f"{what} can't be read near byte {stream.tell()} of {len(data)}: {error or type(error).__name__}") from error
