"""Operators on a simulated GPU next to the CPU, on the inputs of their records, and what the host waits for meanwhile.

    python tests/gpu_operator_runs.py

writes the table of docs/gpu.md anew.
"""
import contextlib
import functools
import pathlib
import re
import sys

if __name__ == "__main__":
    sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "src")]
sys.path.insert(0, str(pathlib.Path(__file__).parent / "ops"))
import numpy as np
from records import RECORDS

import mxnet as mx
import mxnet.ops.numpy  # noqa: F401  its operators are registered when first asked for
from mxnet.ndarray import dispatch
from mxnet.ops import get
from simulated_gpus import Watch, gpus, lies_on

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "gpu.md"

# Samples that the simulation cannot run, each with the error that says why.
BEYOND = {"Cast-2": "already associated to a python object of type OnGPU"}  # recorded integers are another class of tensors

_SIZE = "the result's size depends on the values"
_CHECK = "wrong parameters raise an error, as in MXNet"
_SOLVED = "torch raises an error where a matrix has no solution, or a solver does not converge"
WHY = {
    **dict.fromkeys(["_contrib_boolean_mask", "_npi_bincount", "_npi_delete", "_npi_unique", "_npx_nonzero"], _SIZE),
    "_npi_boolean_mask_assign_tensor": "how many values are needed depends on the mask",
    "_npi_insert_tensor": "wrong indices raise an error",
    **dict.fromkeys(["gather_nd", "scatter_nd", "_backward_gather_nd", "_scatter_set_nd", "fill_element_0index", "_contrib_index_copy",
                     "_contrib_box_encode", "_contrib_count_sketch", "_contrib_scatter_reduce", "_contrib_hawkesll", "_npx_index_add",
                     "_npx_index_update"], "wrong indices raise an error"),
    "_sample_unique_zipfian": "draws until there are enough different numbers",
    **dict.fromkeys(["_linalg_inverse", "_linalg_potrf", "_linalg_slogdet", "_linalg_syevd", "_npi_cholesky", "_npi_eig", "_npi_eigh", "_npi_eigvals",
                     "_npi_eigvalsh", "_npi_norm", "_npi_pinv", "_npi_pinv_scalar_rcond", "_npi_solve", "_npi_svd", "_npi_tensorinv",
                     "_npi_tensorsolve"], _SOLVED),
    **dict.fromkeys(["_npi_bernoulli", "_npi_exponential", "_npi_gamma", "_npi_gumbel", "_npi_laplace", "_npi_logistic", "_npi_normal",
                     "_npi_normal_n", "_npi_pareto", "_npi_percentile", "_npi_powerd", "_npi_rayleigh", "_npi_weibull",
                     "_npx_constraint_check"], _CHECK),
    **dict.fromkeys(["_cvcopyMakeBorder", "_cvimdecode", "_cvimresize"], "OpenCV computes on the host"),
    # ops/spatial
}
_WORDS = {"_local_scalar_dense": "a number", "bincount": "a number", "copy to the host": "values", "copy from the host": "a copy to the GPU",
          "nonzero": "a count", "nonzero of a mask": "a count", "_unique2": "a count", "unique_dim": "a count"}


def runs(operator):
    """The ids and samples of an operator."""
    return [(f"{operator}-{i}", sample) for i, sample in enumerate(RECORDS[operator])]


def call(operator, sample, ctx, watch, kinds="f"):
    """The results, gradients and changed inputs of an operator on a device; inputs of these kinds of NumPy's types get a gradient."""
    with mx.util.np_shape(True), mx.Context(ctx):
        arrays = [None if a is None else mx.nd.array(a, dtype=np.asarray(a).dtype) for a in sample.inputs]
        mx.random.seed(1)
        marked = [] if operator.no_gradient else [
            a for i, a in enumerate(arrays) if a is not None and np.dtype(a.dtype).kind in kinds and i not in operator.mutated_indices
            and (sample.gradient is None or i in sample.gradient)]
        for a in marked:
            a.attach_grad()
        with watch, mx.autograd.record(train_mode=sample.training):
            results = dispatch.invoke(operator, arrays, dict(sample.attributes))
        results = results if isinstance(results, list) else [results]
        heads = [r for r in results if r._data.requires_grad]
        if heads:
            seeds = [mx.nd.array(np.linspace(-1, 1, h.size).reshape(h.shape), dtype=h.dtype) for h in heads]
            with watch:
                mx.autograd.backward(heads, seeds)
        changed = [arrays[i] for i in operator.mutated_indices if i < len(arrays) and arrays[i] is not None]
        return results, [a.grad for a in marked] if heads else [], changed


def check_same(found, expected, ctx, values=True, tolerance=1e-5):
    """An array on a simulated GPU is really there, and is as the other."""
    assert found.ctx == ctx and lies_on(found._data, ctx.torch_device), f"lies on {found._data.device}"
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if values:
        np.testing.assert_allclose(found.asnumpy().astype("f8"), expected.asnumpy().astype("f8"), rtol=10 * tolerance, atol=tolerance)


@functools.cache
def waits_of(name):
    """Run all samples of an operator; return what the host waited for, as torch's names."""
    operator, watch = get(name), Watch()
    samples = {key: sample for key, sample in runs(name) if key not in BEYOND}
    expected = {key: call(operator, sample, mx.cpu(), contextlib.nullcontext()) for key, sample in samples.items()}
    with gpus() as (gpu, _):
        for key, sample in samples.items():
            for kind, some, others in zip(("result", "gradient", "input"), call(operator, sample, gpu, watch), expected[key]):
                assert len(some) == len(others)
                for i, (a, b) in enumerate(zip(some, others)):
                    try:
                        if b is not None:
                            check_same(a, b, gpu, not operator.stochastic)
                    except AssertionError as error:
                        raise AssertionError(f"{key}, {kind} {i}: {error}") from None
    return sorted({*watch.waits, *watch.copies})


def row(name, waits):
    """The line of an operator in the table."""
    words = {"success" if "linalg" in w else _WORDS[w] for w in waits}
    return f"| `{name}` | {', '.join(sorted(words))} | {WHY[name]} |"


def documented():
    """The lines of the table in docs/gpu.md, by operator."""
    return {match[1]: match[0] for match in re.finditer(r"^\| `(\w+)` \|.*$", PAGE.read_text("utf-8"), re.M)}


def write_page():
    """Replace the table in docs/gpu.md."""
    lines = [row(name, waits) for name in sorted(RECORDS) if (waits := waits_of(name))]
    text = PAGE.read_text("utf-8")
    start = text.index("| operator |")
    head = text[start:].split("\n", 2)[:2]
    end = re.search(r"\n(?!\|)", text[start:]).start() + start
    PAGE.write_text("\n".join([text[:start] + head[0], head[1], *lines]) + text[end:], "utf-8")


if __name__ == "__main__":
    write_page()
