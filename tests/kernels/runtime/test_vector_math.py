"""The elementary functions of kernels/runtime/vector_math.h: their errors in units in the last place, their limits, and their being the only ones."""
import ctypes
import re
import shutil

import numpy as np
import pytest

from mxnet.kernels.runtime import build, libraries

SOURCE = """
#include "runtime/vector_math.h"
extern "C" {
#define EACH(name) \\
  void each_##name(const float* in, float* out, int64_t n) { for (int64_t i = 0; i < n; i += kLanes) store(out + i, name(load(in + i))); }
EACH(exp_nonpositive)
EACH(sigmoid)
EACH(tanh)
void each_log_normal(const float* in, float* out, int64_t n) { for (int64_t i = 0; i < n; ++i) out[i] = log_normal(in[i]); }
void each_log_double(const double* in, double* out, int64_t n) { for (int64_t i = 0; i < n; ++i) out[i] = log_normal(in[i]); }
}
"""
EXACT = {"exp_nonpositive": np.exp, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "log_normal": np.log}


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("vector_math")
    (folder / "probe").mkdir()
    (folder / "probe" / "functions.cpp").write_text(SOURCE)
    library = folder / "functions.so"
    library.write_bytes(build.library(folder, "probe/functions", (*libraries.FLAGS, f"-I{libraries.FOLDER}"), libraries._TORCH, ["-lgomp"]))
    return ctypes.CDLL(str(library))


def applied(functions, name, x):
    out = np.zeros_like(x)
    functions[f"each_{name}"](x.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(x.size))
    return out


@pytest.mark.parametrize("name, low, high, ulp", [("exp_nonpositive", -104, 0, 1.5), ("sigmoid", -80, 80, 3), ("tanh", -10, 10, 3),
                                                  ("tanh", -1e-3, 1e-3, 3), ("log_normal", 2, 1e30, 3)])
def test_errors(functions, name, low, high, ulp):
    x = np.linspace(low, high, 1 << 16, dtype=np.float32)
    exact = EXACT[name](x.astype(np.float64))
    unit = np.spacing(np.abs(exact.astype(np.float32))).astype(np.float64)
    assert np.max(np.abs(applied(functions, name, x) - exact) / unit) < ulp


def test_logarithms_of_doubles(functions):
    x = np.linspace(1e-3, 1e6, 1 << 12)
    np.testing.assert_allclose(applied(functions, "log_double", x), np.log(x), rtol=1e-14, atol=1e-15)


def test_limits(functions):
    x = np.array([-np.inf, np.inf, np.nan, -0.0, 0.0, -1e30, 1e30, -103.9] * 2, np.float32)
    assert applied(functions, "tanh", x).tolist()[:2] == [-1, 1] and applied(functions, "tanh", x).tolist()[3:7] == [0, 0, -1, 1]
    assert applied(functions, "sigmoid", x).tolist()[1] == 1 and applied(functions, "sigmoid", x).tolist()[3:5] == [0.5, 0.5]
    exp = applied(functions, "exp_nonpositive", x)
    assert exp[0] == 0 and exp[3] == exp[4] == 1 and exp[5] == 0 and 0 <= exp[7] < 1e-44
    assert all(np.isnan(applied(functions, name, x)[2]) for name in ("tanh", "sigmoid", "exp_nonpositive"))


def test_no_other_file_has_the_constants_of_such_functions():
    """Base-2 logarithms of e, and logarithms of 2: every exp and log by hand needs one."""
    found = [path.name for path in sorted((*libraries.FOLDER.glob("*/*.cpp"), *libraries.FOLDER.glob("*/*.h")))
             if re.search(r"1\.44269|0\.69314|0\.693359", path.read_text())]
    assert found == ["vector_math.h"]
