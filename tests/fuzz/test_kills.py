"""A few kills in each writer; `python -m tests.fuzz --kills 1000` does many."""
import sys

import pytest

from fuzz import kills
from mxnet.contrib.text import datasets as text_datasets
from mxnet.gluon.data.vision import datasets
from mxnet.gluon.model_zoo import model_store
from mxnet.kernels.runtime import libraries
from mxnet.test_utils import data as test_data


@pytest.fixture(autouse=True)
def what_writers_replace_is_put_back(monkeypatch):
    """Those that download get their bytes from stand-ins."""
    for module, name in ((text_datasets, "download"), (datasets, "download"), (test_data, "download"), (libraries, "folder")):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(model_store, "short_hash", model_store.short_hash)
    monkeypatch.setattr(model_store, "_model_sha1", dict(model_store._model_sha1))
    requests = sys.modules.get("requests")
    yield
    if requests is not None:
        sys.modules["requests"] = requests
    else:
        sys.modules.pop("requests", None)


@pytest.mark.parametrize("name", kills.WRITERS)
def test_killed_writers_leave_a_whole_file_and_the_next_save_nothing_else(name):
    assert kills.kill_writer(name, 4, seed=2, report=lambda text: None) == []
