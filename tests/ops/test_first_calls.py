"""Inferring shapes and types, and binding, import neither torch's compilers, the first of which would take 0.5 to 4 seconds, nor OpenCV.

Torch imports them for some functions on meta tensors, so every operator with such a function says its shapes by rule.
"""
import json
import pathlib
import subprocess
import sys

import mxnet as mx
from mxnet.ops import get

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).parents[:2]]
from records import IMPERATIVE, RECORDS  # noqa: E402
from test_records import semantics, symbol_of  # noqa: E402

from forked import python  # noqa: E402

SLOW = ("torch._dynamo", "sympy", "torch.fx.experimental.symbolic_shapes", "cv2")


class Guard:
    """Notes who asks for a slow module, and refuses it, so that the next one asks again."""

    def __init__(self):
        self.operator = None
        self.found = {}

    def find_spec(self, name, path=None, target=None):
        if name in SLOW:
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
    imported = [m for m in SLOW if m in sys.modules]
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


def test_inference_and_binding_import_no_slow_module():
    child = subprocess.run([*python(), "-W", "ignore", __file__], capture_output=True, text=True, timeout=600)
    assert child.returncode == 0, child.stderr[-2000:]
    result = json.loads(child.stdout.splitlines()[-1])
    assert result == {"imported": [], "found": [], "failed": {}}


if __name__ == "__main__":
    main()
