import pytest

import mxnet as mx
import serve_checks


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder with what the server of these tests serves."""
    onnx = pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("models")
    serve_checks.save_linear(folder / "linear", 1)
    serve_checks.save_pair(folder / "pair")
    serve_checks.save_colours(folder / "colours")
    for version in (1, 2, 10):
        (folder / "versioned" / str(version)).mkdir(parents=True)
        serve_checks.save_linear(folder / "versioned" / str(version) / "net", version)
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ("batch", 2)) for name in "xy")
    weight = onnx.numpy_helper.from_array(mx.nd.array([[1, 2]]).asnumpy(), "weight")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Mul", ["x", "weight"], ["y"])], "g", [x], [y], [weight])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), folder / "twice.onnx")
    serve_checks.save_archive(folder / "sleeper.mar", 0.5)
    return folder


@pytest.fixture(scope="session")
def server(models):
    """A server of all of them, whose limits are never reached but in bytes."""
    arguments = [models / name for name in ("linear", "pair", "colours", "versioned", "twice.onnx", "sleeper.mar")]
    inputs = ("linear:data=-1,4", "pair:a=-1,3", "pair:b=-1,1:int32", "versioned:data=-1,4")
    with serve_checks.Running(*arguments, *(part for text in inputs for part in ("--input", text)), "--allow-code", "--max-body", 100_000) as running:
        yield running
        assert running.stop() == 0
