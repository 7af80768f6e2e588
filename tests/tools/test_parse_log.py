import logging

import numpy as np
import pytest

import mxnet as mx
from mxnet.tools import parse_log

LOG = """INFO:root:Epoch[0] Batch [0-20]\tSpeed: 1000.00 samples/sec\taccuracy=0.1
INFO:root:Epoch[0] Train-accuracy=0.500000
INFO:root:Epoch[0] Train-cross-entropy=1.250000
INFO:root:Epoch[0] Time cost=2.000
INFO:root:Epoch[0] Validation-accuracy=0.400000
INFO:root:Epoch[0] Validation-accuracy=0.600000
2020-01-01 Epoch[1] Train-accuracy=0.750000
INFO:root:Epoch[1] Time cost=4.000
nonsense
"""


@pytest.fixture
def log(tmp_path):
    (tmp_path / "a.log").write_text(LOG)
    return str(tmp_path / "a.log")


def test_markdown(log, capsys):
    assert parse_log.main([log]) == 0
    assert capsys.readouterr().out == ("| epoch | train-accuracy | val-accuracy | time |\n| --- | --- | --- | --- |\n"
                                       "| 1 | 0.500000 | 0.500000 | 2.0 |\n| 2 | 0.750000 | - | 4.0 |\n")


def test_columns_and_metrics(log, capsys):
    assert parse_log.main([log, "--format", "none", "--metric-names", "accuracy", "cross-entropy"]) == 0
    assert capsys.readouterr().out == ("epoch\ttrain-accuracy\ttrain-cross-entropy\tval-accuracy\tval-cross-entropy\ttime\n"
                                       "1\t0.500000\t1.250000\t0.500000\t-\t2.0\n2\t0.750000\t-\t-\t-\t4.0\n")


def test_numbers_of_every_form():
    lines = [f"Epoch[{i}] Train-loss={number}" for i, number in enumerate(("1", "-2.5", "3e-05", "nan", "inf", ".5"))]
    found = [values["train-loss"] for values in parse_log.parse(lines, ["loss"]).values()]
    assert np.array_equal(found, [1, -2.5, 3e-5, np.nan, np.inf, .5], equal_nan=True)


def test_what_module_logs(capsys, caplog, tmp_path):
    caplog.set_level(logging.INFO)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax")
    data = mx.io.NDArrayIter(np.zeros((4, 3), "float32"), np.zeros(4, "float32"), batch_size=2)
    mx.mod.Module(net).fit(data, eval_data=data, num_epoch=2)
    found = parse_log.parse(caplog.text.splitlines())
    assert list(found) == [0, 1] and all(values.keys() == {"train-accuracy", "val-accuracy", "time"} for values in found.values())


def test_what_an_estimator_logs():
    line = "[Epoch 2] Finished in 1.500s, training accuracy: 0.5000, training softmaxcrossentropyloss: 0.7, validation accuracy: 0.2500"
    assert parse_log.parse([line]) == {2: {"train-accuracy": 0.5, "val-accuracy": 0.25, "time": 1.5}}


def test_a_number_that_is_no_epochs():
    assert parse_log.parse([f"Epoch[{'1' * 5000}] Train-accuracy=0.5"]) == {}


def test_nothing_found(log, tmp_path, capsys):
    assert parse_log.main([str(tmp_path / "none.log")]) == 1 and "cannot read" in capsys.readouterr().err
    (tmp_path / "b.log").write_text("nothing\n")
    assert parse_log.main([str(tmp_path / "b.log")]) == 1
    assert "b.log has no line with one of accuracy of an epoch" in capsys.readouterr().err
