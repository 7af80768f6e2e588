"""Networks as ONNX files, scored by ONNX Runtime and compared with what they compute here."""
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime

import mxnet as mx
from mxnet.onnx.mx2onnx._export_onnx import OPSETS

NEWEST = min(OPSETS[-1], onnx.defs.onnx_opset_version())


def exported(sym, inputs, params=None, dynamic_shapes=None, **options):
    """The ONNX model of a Symbol, checked for its types and shapes. `inputs`: arrays by name, in any order."""
    params = {name: mx.nd.array(value, dtype=value.dtype) for name, value in (params or {}).items()}
    names = [n for n in sym.list_inputs() if n in inputs]
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "net.onnx")
        mx.onnx.export_model(sym, params, [inputs[n].shape for n in names], [inputs[n].dtype for n in names], path,
                             dynamic=dynamic_shapes is not None, dynamic_input_shapes=dynamic_shapes, check=False, **options)
        model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model, inputs, optimized=True):
    """Return the results of ONNX Runtime for a model, or for the file of one.

    Without `optimized` it runs node by node: its fused kernels on integers overflow where a processor has no VNNI.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    return session.run(None, {k: v for k, v in inputs.items() if k in wanted})


def computed(sym, inputs, params=None):
    """What the Symbol computes here, at inference."""
    arrays = {name: mx.nd.array(value, dtype=value.dtype) for name, value in {**inputs, **(params or {})}.items()}
    shapes = dict(zip(sym.list_arguments(), sym.infer_shape(**{k: v.shape for k, v in arrays.items() if k in sym.list_arguments()})[0]))
    args = {n: arrays.get(n, mx.nd.zeros(s)) for n, s in shapes.items()}
    executor = sym.bind(mx.cpu(), args, aux_states={n: arrays[n] for n in sym.list_auxiliary_states()}, grad_req="null")
    return [o.asnumpy() for o in executor.forward(is_train=False)]


def check(sym, inputs, params=None, *, varying=None, others=(), rtol=1e-5, atol=1e-6, opsets=(13, 12, NEWEST)):
    """Compare values, shapes and types in each opset; with `varying` shapes also for the `others` inputs. Returns the last model."""
    for opset in opsets:
        model = exported(sym, inputs, params, varying, opset_version=opset)
        assert [o.version for o in model.opset_import] == [opset]
        for given in (inputs, *others):
            for found, expected in zip(run(model, given), computed(sym, given, params), strict=True):
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    return model
