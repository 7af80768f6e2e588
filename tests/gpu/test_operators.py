"""Every operator with a record, on a GPU as on a processor: values, gradients, what it changes, and where its results are."""
import contextlib
import dataclasses

import numpy as np
import pytest
import torch

import mxnet as mx
from gpu_checks import GPU, needs_gpu
from gpu_operator_runs import RECORDS, call, runs
from mxnet.ops import get

pytestmark = needs_gpu
# cuBLAS and cuDNN multiply no integers, as in MXNet; whoever calls these with some is told to convert them.
NO_INTEGERS = {"Convolution", "Convolution_v1", "FullyConnected", "GridGenerator", "Pooling", "Pooling_v1", "RNN", "_contrib_DeformableConvolution",
               "_contrib_ModulatedDeformableConvolution", "_contrib_box_nms", "_contrib_interleaved_matmul_encdec_valatt",
               "_contrib_interleaved_matmul_selfatt_valatt", "_linalg_gemm", "_linalg_gemm2", "_linalg_syrk", "_linalg_trmm", "batch_dot", "dot"}
# Integers made from what is no number are undefined, and so is the order of equal ones.
UNDEFINED = {"_npi_arccos", "_npi_arcsin", "_npi_arctanh", "arccos", "arcsin", "arctanh", "erfinv", "_random_pdf_dirichlet", "sort", "topk"}
TOLERANCES = {torch.float16: 2e-2, torch.bfloat16: 2e-2}


def compare(name, samples, kinds):
    operator = get(name)
    for key, sample in samples:
        expected, found = (call(operator, sample, ctx, contextlib.nullcontext(), kinds) for ctx in (mx.cpu(), GPU))
        for kind, some, others in zip(("result", "gradient", "input"), found, expected):
            assert len(some) == len(others), f"{key}, {kind}"
            for i, (a, b) in enumerate(zip(some, others)):
                if b is None:
                    continue
                assert (a.context, a.shape, a.dtype) == (GPU, b.shape, b.dtype), f"{key}, {kind} {i}"
                if not operator.stochastic:
                    tolerance = TOLERANCES.get(b._data.dtype, 1e-3)
                    np.testing.assert_allclose(a.asnumpy().astype("f8"), b.asnumpy().astype("f8"), rtol=tolerance, atol=tolerance / 10,
                                               err_msg=f"{key}, {kind} {i}")


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_operator_is_as_on_a_processor(name, exact):
    compare(name, runs(name), "f")


def integers_of(sample):
    """The sample with integers for its floating-point inputs, or None if it has none to replace."""
    arrays = [None if a is None else np.asarray(a) for a in sample.inputs]
    if not any(a is not None and a.dtype == np.float32 for a in arrays):
        return None
    return dataclasses.replace(sample, inputs=[
        a if a is None or a.dtype != np.float32 else np.rint(3 * np.nan_to_num(a, nan=1, posinf=9, neginf=-9)).clip(-99, 99).astype("int32")
        for a in arrays])


def accepts(operator, sample):
    """Return True if an operator takes the inputs on a processor."""
    try:
        call(operator, sample, mx.cpu(), contextlib.nullcontext(), "fiu")
    except (mx.MXNetError, TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_integers_are_as_on_a_processor(name, exact):
    """Their gradients, too: MXNet differentiates arrays of integers like any others."""
    operator = get(name)
    samples = [(key, integers) for key, sample in runs(name) if (integers := integers_of(sample)) and accepts(operator, integers)]
    if not samples or name in UNDEFINED:
        pytest.skip("takes no integers where its record has numbers" if not samples else "undefined for integers")
    if name in NO_INTEGERS:
        with pytest.raises(mx.MXNetError, match=r"astype\('float32'\)|do not fit together"):
            compare(name, samples, "fiu")
        return
    compare(name, samples, "fiu")
