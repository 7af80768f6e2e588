"""Inferring shapes and types, and binding, import none of torch's compilers: the first would take 0.5 to 4 seconds, in every process.

Torch imports them for some functions on meta tensors, so every operator with such a function says its shapes by rule.
"""
import json
import pathlib
import subprocess
import sys

import mxnet as mx
from mxnet.ops import get

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from records import IMPERATIVE, RECORDS  # noqa: E402
from test_records import semantics, symbol_of  # noqa: E402

COMPILERS = ("torch._dynamo", "sympy", "torch.fx.experimental.symbolic_shapes")
EXCEPT: dict[str, str] = {}  # operator -> why it must
REMAINING = set("""
_np_diag _np_diagflat _np_roll _np_trace _npi_arange _npi_argmax _npi_argmin _npi_average _npi_bernoulli _npi_blackman
_npi_boolean_mask_assign_scalar _npi_boolean_mask_assign_tensor _npi_cholesky _npi_column_stack _npi_delete _npi_diag_indices_from _npi_diff
_npi_dstack _npi_ediff1d _npi_eig _npi_eigh _npi_eigvals _npi_eigvalsh _npi_einsum _npi_exponential _npi_flip _npi_gamma _npi_gumbel _npi_hamming
_npi_hanning _npi_hstack _npi_identity _npi_indices _npi_insert_scalar _npi_insert_slice _npi_logistic _npi_logspace _npi_matmul _npi_norm
_npi_normal _npi_normal_n _npi_pad _npi_pareto _npi_percentile _npi_pinv _npi_pinv_scalar_rcond _npi_polyval _npi_powerd _npi_rayleigh _npi_rot90
_npi_solve _npi_svd _npi_tensordot _npi_tensordot_int_axes _npi_tensorinv _npi_tensorsolve _npi_tril _npi_uniform _npi_uniform_n _npi_vstack
_npi_weibull
""".split())  # operators of mx.np that have no rule yet


class Guard:
    """Notes who asks for a compiler, and refuses it, so that the next one asks again."""

    def __init__(self):
        self.operator = None
        self.found = {}

    def find_spec(self, name, path=None, target=None):
        if name in COMPILERS:
            self.found.setdefault(self.operator, set()).add(name)
            raise ImportError(f"{name} is imported for {self.operator}")


def infer_and_bind(operator, sample):
    names = [f"input{i}" for i in range(len(sample.inputs))]
    shapes = {n: a.shape for n, a in zip(names, sample.inputs)}
    types = {n: a.dtype for n, a in zip(names, sample.inputs)}
    with semantics(operator):
        symbol = symbol_of(operator, sample)
        symbol.infer_type(**types)
        symbol.infer_shape(**shapes)
        try:
            symbol.simple_bind(mx.cpu(), grad_req="null", type_dict=types, **shapes)
        except mx.MXNetError as error:
            if "Shapes cannot be decided" not in str(error):  # where they depend on values
                raise


def main():
    guard, failed = Guard(), {}
    imported = [m for m in COMPILERS if m in sys.modules]
    sys.meta_path.insert(0, guard)
    for name, samples in RECORDS.items():
        guard.operator, operator = name, get(name)
        if name in IMPERATIVE or operator.num_outputs == 0:  # nothing to be a Symbol of
            continue
        for sample in samples:
            try:
                infer_and_bind(operator, sample)
            except Exception as error:
                if name not in guard.found:
                    failed[name] = repr(error)
    print(json.dumps({"imported": imported, "found": sorted(guard.found), "failed": failed}))


def test_inference_and_binding_import_no_compiler():
    child = subprocess.run([sys.executable, "-W", "ignore", __file__], capture_output=True, text=True, timeout=600)
    assert child.returncode == 0, child.stderr[-2000:]
    result = json.loads(child.stdout.splitlines()[-1])
    assert (result["imported"], result["failed"]) == ([], {})
    assert set(result["found"]) == REMAINING | set(EXCEPT)


if __name__ == "__main__":
    main()
