import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet.optimizer import pickles


class Own(mx.lr_scheduler.LRScheduler):
    def __call__(self, num_update):
        return 7.0


class Stranger:
    pass


def test_what_is_ours_is_read():
    data = {"a": mx.nd.array([1, 2]), "b": (np.arange(3), 1.5, None, "text"), "c": mx.optimizer.SGD(lr_scheduler=Own()),
            "d": np.float32(2), "e": mx.cpu(1)}
    found = pickles.loads(pickle.dumps(data))
    assert found["a"].asnumpy().tolist() == [1, 2]
    assert found["b"][0].tolist() == [0, 1, 2] and found["b"][1:] == (1.5, None, "text")
    assert found["c"].learning_rate == 7.0
    assert found["d"] == np.float32(2) and found["e"] == mx.cpu(1)


@pytest.mark.parametrize("stranger, name", [(Stranger(), "Stranger"), (mx.optimizer.create, "Optimizer.create_optimizer"), (mx.nd.save, "save")])
def test_strangers_are_refused(stranger, name):
    with pytest.raises(mx.MXNetError, match=f"x.states is refused: it holds .*{name}"):
        pickles.loads(pickle.dumps(stranger), "x.states")


def test_modules_are_not_imported_for_a_file():
    import sys
    sys.modules.pop("this", None)
    with pytest.raises(mx.MXNetError, match="it holds this.c"):
        pickles.loads(b"cthis\nc\n.")
    assert "this" not in sys.modules
