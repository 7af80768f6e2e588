"""Every operator with a record, on a GPU as on a processor: values, gradients, what it changes, and where its results are."""
import contextlib

import numpy as np
import pytest
import torch

import mxnet as mx
from gpu_checks import GPU, needs_gpu
from gpu_operator_runs import RECORDS, call, runs
from mxnet.ops import get

pytestmark = needs_gpu
TOLERANCES = {torch.float16: 2e-2, torch.bfloat16: 2e-2}


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_operator_is_as_on_a_processor(name, exact):
    operator = get(name)
    for key, sample in runs(name):
        expected, found = (call(operator, sample, ctx, contextlib.nullcontext()) for ctx in (mx.cpu(), GPU))
        for kind, some, others in zip(("result", "gradient", "input"), found, expected):
            assert len(some) == len(others)
            for i, (a, b) in enumerate(zip(some, others)):
                if b is None:
                    continue
                assert (a.context, a.shape, a.dtype) == (GPU, b.shape, b.dtype), f"{key}, {kind} {i}"
                if not operator.draws:
                    tolerance = TOLERANCES.get(b._data.dtype, 1e-3)
                    np.testing.assert_allclose(a.asnumpy().astype("f8"), b.asnumpy().astype("f8"), rtol=tolerance, atol=tolerance / 10,
                                               err_msg=f"{key}, {kind} {i}")
