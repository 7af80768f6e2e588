import subprocess

import pytest

import mxnet as mx
from forked import python

FUNCTIONS = """__array_namespace_info__ abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool broadcast_arrays broadcast_to can_cast ceil
clip complex128 complex64 concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide e empty empty_like equal
exp expand_dims expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag
inf int16 int32 int64 int8 isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not
logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan negative newaxis nextafter
nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal remainder repeat reshape result_type roll round
searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu
trunc uint16 uint32 uint64 uint8 unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like""".split()
LINALG = """cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr
slogdet solve svd svdvals
tensordot trace vecdot vector_norm""".split()
FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift".split()


def test_the_standards_names_are_here():
    xp = mx.np.array_api
    assert [n for n in FUNCTIONS if not hasattr(xp, n)] == [] and [n for n in LINALG if not hasattr(xp.linalg, n)] == []
    assert [n for n in FFT if not hasattr(xp.fft, n)] == [] and xp.__array_api_version__ == "2024.12"
    assert set(xp.__all__) >= set(FUNCTIONS) - {"__array_namespace_info__"}


def test_arrays_name_the_namespace():
    x = mx.np.ones(2)
    assert x.__array_namespace__() is mx.np.array_api is x.__array_namespace__(api_version="2024.12") is x.__array_namespace__("2021.10")
    with pytest.raises(ValueError, match="api_version must be '2024.12' or an earlier version, received '1999.1'"):
        x.__array_namespace__(api_version="1999.1")


def test_it_is_imported_on_demand():
    code = "import mxnet as mx, sys; x = mx.np.ones(2); assert 'mxnet.numpy.array_api' not in sys.modules; x.__array_namespace__()"
    subprocess.run([*python(), "-c", code], check=True, timeout=120)
