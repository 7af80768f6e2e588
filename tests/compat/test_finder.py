import importlib
import importlib.util
import inspect
import pickle
import subprocess
import sys

import pytest

import mxnet as mx
from forked import python
from mxnet.compat import finder


def run(code):
    return subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_a_path_without_a_file_leads_to_the_real_thing():
    from mxnet.io.io import DataBatch
    from mxnet.rnn.rnn import do_rnn_checkpoint
    assert DataBatch is mx.io.DataBatch and do_rnn_checkpoint is mx.rnn.do_rnn_checkpoint
    assert mx.io.io is sys.modules["mxnet.io.io"] and mx.numpy.stride_tricks.broadcast_arrays is mx.np.broadcast_arrays
    assert {"DataBatch", "NDArrayIter", "namedtuple"} <= set(dir(mx.io.io))
    assert dict(inspect.getmembers(mx.rnn.rnn_cell))["LSTMCell"] is mx.rnn.LSTMCell
    assert mx.io.io.__doc__ == "Holds nothing of its own: it leads to mxnet.io."
    assert repr(mx.io.io) == "<module 'mxnet.io.io' (leads to mxnet.io)>"


def test_a_path_that_only_leads_to_one_module_is_that_module():
    import mxnet.contrib.ndarray as by_path
    assert by_path is mx.contrib.ndarray is mx.nd.contrib and mx.rnn.rnn is mx.rnn.checkpoint
    assert by_path.__name__ == "mxnet.ndarray.contrib" and importlib.import_module("mxnet.contrib.ndarray") is by_path


def test_names_that_a_module_only_imports_in_mxnet():
    import collections
    import math
    import os
    assert mx.metric.ndarray is mx.nd and mx.metric.math is math and mx.metric.OrderedDict is collections.OrderedDict
    assert mx.rnn.rnn_cell.FusedRNNCell is mx.rnn.FusedRNNCell and mx.image.os is os
    assert mx.base.basestring is str and mx.optimizer.optimizer.NDnorm is mx.nd.norm
    assert mx.autograd.check_call is mx.base.check_call


def test_numbers_that_stand_for_types():
    import numpy as np
    assert mx.nd._DTYPE_NP_TO_MX[np.int8] == 5 and mx.operator._DTYPE_MX_TO_NP[-1] is None and mx.rtc._DTYPE_MX_TO_NP[0] is np.float32
    assert mx.nd._GRAD_REQ_MAP == {"null": 0, "write": 1, "add": 3}
    assert mx.nd.sparse._STORAGE_TYPE_STR_TO_ID["csr"] == mx.nd.sparse._STORAGE_TYPE_CSR == 2
    assert mx.nd.get_indexing_dispatch_code((1,)) == mx.nd.ndarray._NDARRAY_BASIC_INDEXING == 0
    assert mx.nd.get_indexing_dispatch_code([1, 2]) == mx.nd.ndarray._NDARRAY_ADVANCED_INDEXING == 1


def test_a_name_that_stands_for_a_state_follows_it():
    assert run("from mxnet.contrib import amp; print(amp.amp._amp_initialized, amp.amp._loss_scaler); amp.init(); "
               "print(amp.amp._amp_initialized, type(amp.amp._loss_scaler).__name__)") == "False None\nTrue LossScaler"


@pytest.mark.parametrize("module, own, public", [
    ("mxnet.gluon.block", "Block", mx.gluon), ("mxnet.gluon.parameter", "Parameter", mx.gluon),
    ("mxnet.gluon.rnn.rnn_cell", "LSTMCell", mx.gluon.rnn)])
def test_classes_that_stand_above_the_module_where_programs_find_them(module, own, public):
    names = importlib.import_module(module).__all__
    imported = {}
    exec(f"from {module} import *", imported)
    assert {n: imported[n] for n in names} == {n: getattr(public, n) for n in names}
    assert imported[own].__module__ == module and len(set(names) - set(vars(importlib.import_module(module)))) >= 1


def test_a_second_name_of_a_package_is_one_of_its_modules_too():
    assert run("import mxnet.ndarray.numpy.random as first, mxnet as mx; import mxnet.ndarray.numpy_extension.image as second; "
               "print(mx.nd.np is mx.nd.numpy is mx.np, first is mx.np.random, mx.nd.npx is mx.npx, second is mx.npx.image)") == "True True True True"
    with pytest.raises(ModuleNotFoundError, match="No module named 'mxnet.ndarray.numpy.nothing'"):
        importlib.import_module("mxnet.ndarray.numpy.nothing")


def test_nothing_is_put_into_a_module():
    assert mx.nd.sparse.py_sum is sum and mx.numpy.multiarray.abs is mx.np.abs
    assert not {"py_sum", "warnings"} & set(vars(mx.nd.sparse)) and "abs" not in vars(mx.numpy.multiarray)


def test_modules_that_are_read_at_every_step_need_no_lookup():
    assert "__getattr__" not in vars(mx.autograd)
    for module, name in ((mx.autograd, "Symbol"), (mx.np, "finfo"), (mx.np, "stride_tricks")):
        assert name in vars(module)


def test_a_module_keeps_its_own_lookup_and_its_own_words():
    assert mx.th.sys is sys and mx.th.cumsum(mx.nd.array([1, 2]), dim=0).asnumpy().tolist() == [1, 3]
    with pytest.raises(AttributeError, match="torch has no such function"):
        mx.th.no_such_function
    for where, name in ((mx, "mxnet"), (mx.metric, "mxnet.metric"), (mx.io.io, "mxnet.io.io")):
        with pytest.raises(AttributeError, match=f"^module '{name}' has no attribute 'no_such_name'"):
            where.no_such_name
    with pytest.raises(ImportError, match="cannot import name 'no_such_name' from 'mxnet.io.io'"):
        from mxnet.io.io import no_such_name  # noqa: F401


def test_what_is_not_installed_is_an_attribute_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    assert not hasattr(mx.gluon.utils, "requests")
    with pytest.raises(AttributeError, match="'mxnet.gluon.utils' has no attribute 'requests': it leads to requests"):
        mx.gluon.utils.requests


def test_pickles_that_name_the_old_path_load():
    for path, name, real in (
        ("mxnet.io.io", "DataBatch", mx.io.DataBatch), ("mxnet.ndarray.utils", "array", mx.nd.array),
        ("mxnet.image.image", "ResizeAug", mx.image.ResizeAug), ("mxnet.gluon.nn.conv_layers", "MaxPool2D", mx.gluon.nn.MaxPool2D),
        ("mxnet.symbol.numpy._symbol", "_Symbol", mx.sym.np._Symbol), ("mxnet.gluon.block", "HybridBlock", mx.gluon.HybridBlock),
        ("mxnet.gluon.parameter", "ParameterDict", mx.gluon.ParameterDict), ("mxnet.gluon.rnn.rnn_cell", "ZoneoutCell", mx.gluon.rnn.ZoneoutCell),
    ):
        assert pickle.loads(f"c{path}\n{name}\n.".encode()) is real
    desc = mx.io.DataDesc("x", (2, 3))
    assert type(desc).__module__.encode() in pickle.dumps(desc, protocol=0)
    assert pickle.loads(pickle.dumps(desc, protocol=0).replace(type(desc).__module__.encode(), b"mxnet.io.io")) == desc


def test_other_packages_and_unlisted_modules_are_left_alone():
    assert [finder.Finder.find_spec(name) for name in ("numpy", "os.path", "mxnet_tools", "mxnet.files", "io.io")] == [None] * 5
    assert importlib.util.find_spec("mxnet.no_such_module") is None
    assert run("import sys, mxnet, mxnet.compat.finder as f; f.install(); print(sys.meta_path.count(f.Finder))") == "1"


def test_a_completed_module_shows_its_own_loader():
    assert type(mx.metric.__loader__) is type(mx.metric.__spec__.loader) is importlib.machinery.SourceFileLoader
    assert mx.metric.__file__.endswith("__init__.py") and importlib.util.find_spec("mxnet.registry").origin == mx.registry.__file__
    assert "def get_register_func" in inspect.getsource(mx.registry)


def test_a_module_that_is_loaded_again_still_has_its_names():
    assert run("import importlib, mxnet as mx; importlib.reload(mx.registry); importlib.reload(mx.io.io); "
               "print(mx.registry.string_types, mx.io.io.DataIter is mx.io.DataIter)") == "(<class 'str'>,) True"


def test_names_come_from_many_threads_at_once():
    assert run("""
import threading, mxnet as mx
paths = ["mx.io.io.DataIter", "mx.rnn.rnn.BaseRNNCell", "mx.metric.ndarray", "mx.image.image.ImageIter", "mx.gluon.trainer.KVStore"]
found, start = [], threading.Barrier(20)
def look(path):
    start.wait()
    found.append(eval(path) is not None)
threads = [threading.Thread(target=look, args=(p,)) for p in paths * 4]
[t.start() for t in threads]
[t.join(60) for t in threads]
print(len(found))""") == "20"


def test_nothing_is_imported_before_it_is_asked_for():
    assert run("import sys, mxnet; print(sorted({'mxnet.io', 'mxnet.io.io', 'mxnet.image', 'cv2', 'scipy.sparse'} & set(sys.modules)))") == "[]"


def test_standard_modules_that_programs_expect():
    code = "import mxnet, multiprocessing; print(multiprocessing.pool.ThreadPool.__name__, multiprocessing.queues.Queue.__name__)"
    assert run(code) == "ThreadPool Queue"
