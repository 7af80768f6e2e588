"""Every operator on a simulated GPU: as on the CPU, everything on the GPU, and no wait for it that docs/gpu.md does not name."""
import numpy as np
import pytest

import mxnet as mx
from gpu_operator_runs import BEYOND, PAGE, RECORDS, WHY, call, check_same, documented, row, runs, waits_of
from mxnet.ops import get
from mxnet.ops.registry import OPERATORS
from simulated_gpus import Watch, gpus

# Without a record, so that other tests run them on a simulated GPU, or none can.
ELSEWHERE = {
    **dict.fromkeys(["Custom", "_CachedOp", "_cond", "_foreach", "_while_loop"], "test_simulated_networks.py"),
    **dict.fromkeys(["_contrib_edge_id", "_contrib_getnnz", "_sparse_retain", "cast_storage"], "test_simulated_sparse.py"),
    **dict.fromkeys(["_contrib_dgl_adjacency", "_contrib_dgl_csr_neighbor_non_uniform_sample", "_contrib_dgl_csr_neighbor_uniform_sample",
                     "_contrib_dgl_graph_compact", "_contrib_dgl_subgraph"], "test_simulated_sparse.py"),
    **dict.fromkeys(["_contrib_calibrate_entropy", "_contrib_dequantize", "_contrib_quantize", "_contrib_quantize_asym", "_contrib_quantize_v2",
                     "_contrib_quantized_act", "_contrib_quantized_batch_norm", "_contrib_quantized_concat", "_contrib_quantized_conv",
                     "_contrib_quantized_elemwise_add", "_contrib_quantized_elemwise_mul", "_contrib_quantized_embedding",
                     "_contrib_quantized_flatten", "_contrib_quantized_fully_connected", "_contrib_quantized_pooling", "_contrib_quantized_rnn",
                     "_contrib_requantize"], "QUANTIZED below"),
    **dict.fromkeys(["_sg_mkldnn_conv", "_sg_mkldnn_fully_connected", "_sg_mkldnn_selfatt_qk", "_sg_mkldnn_selfatt_valatt"],
                    "layers of oneDNN, which graphs for a CPU get"),
    "_cvimread": "test_images_of_files", "_imdecode": "never runs", "_npi_mvn_fallback": "never runs: mx.np names the function",
    "_npi_resize_fallback": "test_functions_without_a_record",
}


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_operator_is_as_on_the_cpu_and_waits_as_documented(name):
    waits = waits_of(name)
    assert documented().get(name) == (row(name, waits) if waits else None)


def test_every_operator_runs():
    recorded = {get(name).name for name in RECORDS} | {"_contrib_onnx_graph"}  # which is there where ONNX was imported, and runs on the host
    assert sorted({o.name for o in OPERATORS.values() if o.raw.__module__.startswith("mxnet.")} - recorded) == sorted(ELSEWHERE)
    assert sorted(set(documented()) - set(RECORDS)) == sorted(set(WHY) - set(documented())) == []


@pytest.mark.parametrize("key", BEYOND)
def test_what_the_simulation_cannot_run(key):
    name = key.rsplit("-", 1)[0]
    with gpus() as (gpu, _), pytest.raises(mx.MXNetError) as error:
        call(get(name), dict(runs(name))[key], gpu, Watch())
    assert BEYOND[key] in str(error.value.__cause__)


def _int8(*shape):
    return mx.nd.array(np.arange(np.prod(shape)).reshape(shape) % 200 - 100, dtype="int8")


def _range(count=1):
    return [mx.nd.array([v]) for _ in range(count) for v in (-1.5, 2)]


def _ranges(*arrays):
    """The arrays, then the two ends of the range of each."""
    return [*arrays, *_range(len(arrays))]


def _quantized_samples():
    real = mx.nd.array(np.linspace(-2, 3, 24).reshape(2, 3, 4))
    image, table = _int8(1, 4, 5, 5), _int8(6, 4)
    weight = _int8(4, 12)
    yield "_contrib_quantize", [real, *_range()], {"out_type": "int8"}
    yield "_contrib_quantize_v2", [real], {"out_type": "int8"}
    yield "_contrib_quantize_v2", [real], {"out_type": "uint8", "min_calib_range": -1.0, "max_calib_range": 2.0}
    yield "_contrib_quantize_asym", [real], {}
    yield "_contrib_dequantize", _ranges(_int8(2, 3)), {}
    yield "_contrib_requantize", _ranges(_int8(2, 3).astype("int32") * 1000000), {}
    yield "_contrib_requantize", _ranges(_int8(2, 3).astype("int32") * 1000000), {"min_calib_range": -1.0, "max_calib_range": 2.0}
    yield "_contrib_quantized_act", _ranges(image), {"act_type": "relu"}
    yield "_contrib_quantized_flatten", _ranges(image), {}
    yield "_contrib_quantized_pooling", _ranges(image), {"kernel": (2, 2), "pool_type": "max"}
    yield "_contrib_quantized_pooling", _ranges(image), {"kernel": (2, 2), "pool_type": "avg"}
    yield "_contrib_quantized_elemwise_add", _ranges(image, image), {}
    yield "_contrib_quantized_elemwise_mul", _ranges(image, image), {}
    yield "_contrib_quantized_concat", _ranges(image, image), {"dim": 1, "num_args": 2}
    yield "_contrib_quantized_embedding", [mx.nd.array([1, 5]), table, *_range()], {"input_dim": 6, "output_dim": 4}
    yield "_contrib_quantized_fully_connected", _ranges(_int8(2, 12), weight), {"num_hidden": 4, "no_bias": True}
    yield "_contrib_quantized_fully_connected", _ranges(_int8(2, 12), weight, _int8(4)), {"num_hidden": 4}
    yield "_contrib_quantized_conv", _ranges(image, _int8(3, 4, 2, 2)), {"kernel": (2, 2), "num_filter": 3, "no_bias": True}
    moments = [mx.nd.array([0.5, 1, 2, 3]) for _ in range(4)]
    yield "_contrib_quantized_batch_norm", [image, *moments, *_range()], {"min_calib_range": -2.0, "max_calib_range": 2.0, "eps": 1e-3}
    parameters, state = mx.nd.array(np.sin(np.arange(200))), mx.nd.zeros((1, 2, 5))
    yield "_contrib_quantized_rnn", [_int8(4, 2, 3).astype("uint8"), parameters, state, state, mx.nd.array([60]), mx.nd.array([90])], {
        "state_size": 5, "num_layers": 1, "mode": "lstm"}
    yield "_contrib_calibrate_entropy", [mx.nd.array(np.arange(101)), mx.nd.array(np.linspace(-1, 1, 102))], {"num_quantized_bins": 31}


QUANTIZED = list(_quantized_samples())


@pytest.mark.parametrize("name, inputs, attributes", QUANTIZED, ids=[f"{i}-{q[0]}" for i, q in enumerate(QUANTIZED)])
def test_quantized_operators(name, inputs, attributes):
    expected = mx.ndarray.dispatch.invoke(get(name), inputs, attributes)
    watch = Watch()
    with gpus() as (gpu, _):
        moved = [a.as_in_context(gpu) for a in inputs]
        with watch:
            found = mx.ndarray.dispatch.invoke(get(name), moved, attributes)
        for a, b in zip(*(r if isinstance(r, list) else [r] for r in (found, expected))):
            check_same(a, b, gpu)
    assert bool(watch.waits or watch.copies) == (name == "_contrib_calibrate_entropy")  # which looks for a threshold on the host


def test_all_quantized_operators_run():
    assert {q[0] for q in QUANTIZED} == {name for name, where in ELSEWHERE.items() if where == "QUANTIZED below"}


def test_functions_without_a_record():
    expected = get("_npi_resize_fallback").fn(mx.np.arange(5)._data, new_shape=(2, 4)).tolist()
    with gpus() as (gpu, _):
        found = mx.np.resize(mx.np.arange(5, ctx=gpu), (2, 4))
        assert found.ctx == gpu and found.tolist() == expected


def test_images_of_files(tmp_path):
    path = str(tmp_path / "orange.ppm")
    with open(path, "wb") as file:
        file.write(b"P6 1 1 255 " + bytes([255, 128, 0]))
    expected = mx.image.imread(path)
    with gpus() as (gpu, _), gpu:
        check_same(mx.image.imread(path), expected, gpu)


def test_the_page_is_what_the_runs_write():
    """A sorted table, without a row twice."""
    rows = list(documented())
    assert rows == sorted(rows) and len(rows) == PAGE.read_text("utf-8").count("\n| `")
