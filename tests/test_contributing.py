"""The worked example of CONTRIBUTING.md: a new operator is four files, and then everything knows it."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from forked import python

ROOT = pathlib.Path(__file__).parent.parent
STEP = re.compile(r"^\*\*\d\. `([^`]+)`\*\*.*?^```python\n(.*?)^```$", re.M | re.S)
USE = """
import mxnet as mx
x = mx.nd.array([[1, 5, 3, 2]])
net = mx.sym.contrib.maxout(mx.sym.var("data"))
print(mx.nd.contrib.maxout(x).asnumpy().tolist(), mx.npx.maxout(x.as_np_ndarray()).asnumpy().tolist())
print(net.infer_shape_partial(data=(0, 4))[1], mx.sym.load_json(net.tojson()).eval(data=x)[0].asnumpy().tolist())
q = mx.nd.contrib.quantize_v2(x, out_type="int8", min_calib_range=-5, max_calib_range=5)
print(mx.nd.contrib.dequantize(*mx.nd.contrib.quantized_maxout(*q)).asnumpy().round(1).tolist())
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with the example's blocks behind the files that they name."""
    copy = tmp_path_factory.mktemp("project")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, copy)
    steps = STEP.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert 1 < len({path for path, _ in steps}) == len(steps) <= 4
    for path, block in steps:
        with open(copy / path, "a") as file:
            file.write(f"\n\n{block}")
    return copy


def run(project, *command):
    env = {**os.environ, "PYTHONPATH": str(project / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*python(), *command], cwd=project, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout


def test_everything_knows_the_new_operator(project):
    assert run(project, "-c", USE).splitlines() == ["[[5.0, 3.0]] [[5.0, 3.0]]", "[(0, 2)] [[5.0, 3.0]]", "[[5.0, 3.0]]"]


def test_its_tests_come_from_the_record(project):
    files = ("tests/ops/nn/test_activation.py", "tests/ops/test_records.py", "tests/ops/test_traits.py", "tests/ops/test_docstrings.py",
             "tests/graph/backends/openvino/nn/test_activation.py")
    output = run(project, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", "maxout or pieces or every",
                 "-o", "addopts=--import-mode=importlib", *files)
    for expected in ("test_activation.py::test_pieces_must_divide_the_channels PASSED", "test_sym_is_nd_and_inference_is_right[_contrib_maxout",
                     "test_gradient_is_the_derivative[_contrib_maxout", "test_result_type[_contrib_maxout] PASSED",
                     "test_each_gives_what_its_operator_gives[_contrib_maxout] PASSED", "test_examples[_contrib_quantized_maxout] PASSED",
                     "test_every_operator_has_a_record PASSED"):
        assert expected in output, f"{expected}\n{output[-3000:]}"
