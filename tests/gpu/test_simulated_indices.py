"""A GPU that gets an index outside of its axis is lost for the whole process: no operator lets one through."""
import contextlib
import dataclasses

import numpy as np
import pytest

import mxnet as mx
import simulated_gpus
from gpu_operator_runs import RECORDS, call, runs
from mxnet import nd
from mxnet.ops import get
from mxnet.ops.bounds import IndexOutOfBoundsError, within
from simulated_gpus import gpus

READ_BY_INDEX = ("index", "gather", "scatter", "take", "embedding", "nll", "put", "select", "bincount")


OUTSIDE = 10 ** 6, -10 ** 6, 7, -9  # far and just


def damaged(sample, value):
    """The sample with one number of one input outside, for each of its inputs."""
    for i, values in enumerate(sample.inputs):
        array = None if values is None else np.asarray(values)
        if array is None or not array.size or array.dtype.kind not in "iuf" or array.dtype.itemsize == 1:
            continue
        if array.dtype.kind == "f" and (array.ndim <= 3 or abs(value) > 9) or (
                array.dtype.kind != "f" and np.iinfo(array.dtype).min <= value <= np.iinfo(array.dtype).max):
            other = array.copy()
            other.flat[-1] = value if array.dtype.itemsize > 2 else value % 50000
            yield dataclasses.replace(sample, inputs=[*sample.inputs[:i], other, *sample.inputs[i + 1:]])


def test_no_operator_reads_outside_of_an_array(monkeypatch):
    ordinary, lost, reading, now = simulated_gpus.run, {}, set(), ""

    def run(func, args, kwargs):
        reads = any(word in func._schema.name for word in READ_BY_INDEX)
        if reads:
            reading.add(now)
        try:
            return ordinary(func, args, kwargs)
        except (IndexError, RuntimeError) as error:
            if reads and "out of" in str(error):
                lost.setdefault(now, f"{func}: {error}")
            raise

    monkeypatch.setattr(simulated_gpus, "run", run)
    with gpus() as (gpu, _):
        for now in sorted(RECORDS):
            for _, sample in runs(now)[:1]:
                for number, others in enumerate([[sample], *(damaged(sample, value) for value in OUTSIDE)]):
                    if number > 1 and now not in reading:
                        break  # it reads nothing by index, whatever the numbers are
                    for other in others:
                        with contextlib.suppress(Exception):
                            call(get(now), other, gpu, contextlib.nullcontext())
    assert lost == {} and len(reading) > 50


@pytest.mark.parametrize("values, negative, told", [([0, 3], True, 3), ([-4, 0], True, -4), ([-1, 2], False, -1)])
def test_the_error_names_index_and_axis(values, negative, told):
    with gpus() as (gpu, _):
        index = nd.array(values, ctx=gpu, dtype="int64")._data
        with pytest.raises(IndexOutOfBoundsError, match=f"^op: index {told} is out of bounds for dimension 0 with size 3$"):
            within("op", [index], [3], negative)


def test_gather_nd_raises_as_on_a_cpu():
    with gpus() as (gpu, _):
        data = nd.array([[0, 1, 2], [3, 4, 5]], ctx=gpu)
        with pytest.raises(IndexError, match="gather_nd: index 3 is out of bounds for dimension 1 with size 3"):
            nd.gather_nd(data, nd.array([[0, 1, 0], [0, 1, 3]], ctx=gpu))
        assert nd.gather_nd(data, nd.array([[0, 1, -1], [0, 1, -2]], ctx=gpu)).asnumpy().tolist() == [0, 4, 4]


def test_a_capture_uses_the_nearest_index(monkeypatch):
    with gpus() as (gpu, _):
        monkeypatch.setattr("torch.cuda.is_current_stream_capturing", lambda: True)
        index, = within("op", [nd.array([5, -5, 1], ctx=gpu, dtype="int64")._data], [3])
        assert index.tolist() == [2, -3, 1]


def test_what_is_not_used_may_be_anything():
    """As in MXNet: the boxes of anchors that take no part, and the marks behind a sequence's end."""
    anchors, refs, ones = nd.array([[[0, 0, 4, 4], [2, 2, 4, 4]]]), nd.array([[[1, 0, 5, 4]]]), nd.ones(4)
    targets, _ = nd.contrib.box_encode(nd.array([[1, 0]]), nd.array([[0, -1]]), anchors, refs, 0 * ones, ones)
    assert targets.asnumpy().tolist() == [[[0.25, 0, 0, 0], [0, 0, 0, 0]]]
    rate, none = nd.array([[0.5]]), nd.zeros(1)
    marks = nd.array([[0, 0, 9]], dtype="int32")
    score, _ = nd.contrib.hawkesll(rate, none, none + 1, nd.zeros((1, 1)), nd.array([[1, 1, 1]]), marks, nd.array([2]), nd.array([6]))
    assert mx.nd.round(score * 1000).asnumpy().tolist() == [-4386]
