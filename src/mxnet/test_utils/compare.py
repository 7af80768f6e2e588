"""Tolerances, and assertions on arrays."""
from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import util
from ..ndarray import NDArray
from ..ops.dtypes import BFLOAT16_BITS

_INTEGERS = [np.dtype(t) for t in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")]
_HALF, _SINGLE, _DOUBLE = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
_BRAIN = BFLOAT16_BITS  # the NumPy type of bfloat16's bits


def default_dtype() -> type[np.floating[Any]]:
    """Return the type of random test arrays.

    Example
    -------
    >>> mx.test_utils.default_dtype()
    <class 'numpy.float32'>
    """
    return np.float32


def default_rtols() -> dict[Any, float]:
    """Return relative tolerances by type.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.default_rtols()[np.dtype('float32')]
    0.0001
    """
    return {_BRAIN: 1e-2, _HALF: 1e-2, _SINGLE: 1e-4, _DOUBLE: 1e-5, **dict.fromkeys(_INTEGERS, 0)}


def default_atols() -> dict[Any, float]:
    """Return absolute tolerances by type.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.default_atols()[np.dtype('float32')]
    0.001
    """
    return {_BRAIN: 1e-1, _HALF: 1e-1, _SINGLE: 1e-3, _DOUBLE: 1e-20, **dict.fromkeys(_INTEGERS, 0)}


def default_numeric_eps() -> dict[Any, float]:
    """Return the steps of finite differences by type: powers of 2, so that adding them is exact.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.default_numeric_eps()[np.dtype('float32')]
    0.001953125
    """
    return {_HALF: 2.0 ** -6, _SINGLE: 2.0 ** -9, _DOUBLE: 2.0 ** -14}


def effective_dtype(dat: Any) -> np.dtype[Any]:
    """Return the type with the precision of an array's computation: float16 for float32 on a GPU that may use TF32.

    Example
    -------
    >>> mx.test_utils.effective_dtype(mx.nd.ones(2, dtype='float16'))
    dtype('float16')
    """
    dtype = np.dtype(dat.dtype)
    ctx = getattr(dat, "ctx", None)
    if dtype == _SINGLE and getattr(ctx, "device_type", None) == "gpu" and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0" \
            and util.get_cuda_compute_capability(ctx) >= 80:
        return _HALF
    return dtype


def get_tolerance(dat: Any, tol: Any, default_tol: Mapping[Any, float]) -> Any:
    """Return `tol` if it is a number; else its entry, or that of `default_tol`, for the type of `dat`.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.get_tolerance(np.ones(2, np.float32), None, {np.dtype('float32'): 1e-3})
    0.001
    """
    if isinstance(tol, numbers.Number):
        return tol
    dtype = effective_dtype(dat)
    return tol[dtype] if tol and dtype in tol else default_tol[dtype]


def get_tols(x: Any, y: Any, rtol: Any, atol: Any) -> tuple[Any, Any]:
    """Return the relative and absolute tolerance for comparing `x` and `y`: those of the less precise of them.

    Example
    -------
    >>> rtol, atol = mx.test_utils.get_tols(mx.nd.ones(2), mx.nd.ones(2, dtype='float16'), None, None)
    >>> rtol >= 1e-3
    True
    """
    x, y = (np.array(v) if isinstance(v, numbers.Number) else v for v in (x, y))
    rtols, atols = default_rtols(), default_atols()
    return (max(get_tolerance(x, rtol, rtols), get_tolerance(y, rtol, rtols)),
            max(get_tolerance(x, atol, atols), get_tolerance(y, atol, atols)))


def get_atol(atol: float | None = None, dtype: Any = _DOUBLE) -> float:
    """Return `atol`, or the default of a type.

    Example
    -------
    >>> mx.test_utils.get_atol(0.5)
    0.5
    """
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_rtol(rtol: float | None = None, dtype: Any = _DOUBLE) -> float:
    """Return `rtol`, or the default of a type.

    Example
    -------
    >>> mx.test_utils.get_rtol(0.5)
    0.5
    """
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_etol(etol: float | None = None) -> float:
    """Return the fraction of elements that may be wrong: `etol`, or 0.

    Example
    -------
    >>> mx.test_utils.get_etol(), mx.test_utils.get_etol(0.1)
    (0, 0.1)
    """
    return 0 if etol is None else etol


def _numpy(array):
    if not isinstance(array, NDArray):
        return array
    return (array.astype("float32") if np.dtype(array.dtype) == _BRAIN else array).asnumpy()


def same(a: Any, b: Any) -> bool:
    """Return True if both arrays agree exactly in shape and values.

    Example
    -------
    >>> mx.test_utils.same(mx.nd.ones(2), mx.nd.ones(2))
    True
    """
    return np.array_equal(_numpy(a), _numpy(b))


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Return True if two NDArrays share their memory, by writing to the first and reading the second.

    Example
    -------
    >>> x = mx.nd.ones((2, 2))
    >>> mx.test_utils.same_array(x, x.reshape((4,)).reshape((2, 2))), mx.test_utils.same_array(x, x.copy())
    (True, False)
    """
    array1[:] += 1
    shared = same(array1, array2)
    array1[:] -= 1
    return shared and same(array1, array2)


def checkShapes(a: Any, b: Any) -> None:
    """Raise an AssertionError unless both have the same shape.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.checkShapes(np.ones(2), np.zeros(2))
    """
    if a.shape != b.shape:
        raise AssertionError(np.testing.build_err_msg([_numpy(a), _numpy(b)],
                                                      err_msg=f"arrays of one shape expected, received {a.shape} and {b.shape}"))


def almost_equal(a: Any, b: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False, use_broadcast: bool = True) -> bool:
    """Return True if all values agree: ``|a - b| <= atol + rtol * |b|``.

    Example
    -------
    >>> mx.test_utils.almost_equal(mx.nd.ones(2), mx.nd.ones(2) + 1e-7)
    True
    """
    if not use_broadcast:
        checkShapes(a, b)
    return np.allclose(_numpy(a), _numpy(b), rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan)


def locationError(a: Any, b: Any, index: tuple[int, ...], names: Sequence[str], maxError: bool = False) -> str:
    """Return a text with the values at `index`.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.locationError(np.array([1.0, 2.0]), np.array([1.0, 3.0]), (1,), ('a', 'b'))
    'Location of error: (1,), a=2.00000000, b=3.00000000'
    """
    return f"Location of {'maximum ' if maxError else ''}error: {index}, {names[0]}={a[index]:.8f}, {names[1]}={b[index]:.8f}"


def _violations(a, b, rtol, atol):
    """Return each difference divided by its tolerance; equal infinities don't differ."""
    a, b = np.broadcast_arrays(a, b)
    with np.errstate(invalid="ignore", over="ignore"):
        a, b = (v.astype(np.float64) if v.dtype.kind != "c" else v for v in (a, b))
        difference = np.where(a == b, 0, np.abs(a - b))
        return a, b, difference / (atol + rtol * np.abs(b) + 1e-20)


def _find_max_violation(a, b, rtol, atol):
    """Return the index of the largest difference relative to its tolerance, and this ratio."""
    violation = _violations(a, b, rtol, atol)[-1]
    return np.unravel_index(np.argmax(violation), violation.shape), violation.max()


def _describe(a, b, rtol, atol, names, equal_nan, mismatches):
    """Return the message of a failed comparison, and print the largest differences."""
    a, b, violation = _violations(a, b, rtol, atol)
    wrong = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    # A NaN on one side counts as an infinite difference.
    violation = np.where(wrong, np.nan_to_num(violation, nan=np.inf), 0)
    worst = np.unravel_index(np.argmax(violation), violation.shape)
    head = f"Error {violation[worst]:f} exceeds tolerance rtol={rtol:e}, atol={atol:e}"
    if a.ndim == 0:
        message = head + ".\n"
    else:
        print(f"\n*** Maximum errors for vector of size {a.size}:  rtol={rtol}, atol={atol}\n")
        order = np.argsort(-violation, axis=None)[:min(mismatches[0], int(wrong.sum()))]
        for i, flat in enumerate(order, 1):
            place = np.unravel_index(flat, violation.shape)
            print(f"{i:3d}: Error {violation[place]:f}  {locationError(a, b, tuple(map(int, place)), names)}")
        count, limit = int(wrong.sum()), mismatches[1]
        share = f"at least {100 * (limit + 1) / a.size:f}%" if 0 < limit < count else f"{100 * count / a.size:f}%"
        message = f"{head} (mismatch {share}).\n{locationError(a, b, tuple(map(int, worst)), names, maxError=True)}"
    with np.printoptions(threshold=4, suppress=True):
        return np.testing.build_err_msg([a, b], err_msg=message)


def assert_almost_equal(a: Any, b: Any, rtol: Any = None, atol: Any = None, names: tuple[str, str] = ("a", "b"), equal_nan: bool = False,
                        use_broadcast: bool = True, mismatches: tuple[int, int] = (10, 10)) -> None:
    """Raise an AssertionError unless all values agree: ``|a - b| <= atol + rtol * |b|``.

    Parameters
    ----------
    a, b : NDArray, numpy array or number
    rtol, atol : float or dict of dtype to float, optional
        Tolerances; by default by the type of the less precise array (1e-4 and 1e-3 for float32).
    names : tuple of str
        The names of the two arrays in the message.
    equal_nan : bool
        Treat NaNs as equal.
    use_broadcast : bool
        Compare arrays of different shapes if they can be broadcast.
    mismatches : tuple of int
        The maximal numbers of differences to print, and to count; 0 for the second counts all.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.test_utils.assert_almost_equal(mx.nd.array([1, 2]), mx.nd.array([1, 2.00001]))
    """
    if not use_broadcast:
        checkShapes(a, b)
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = np.asarray(_numpy(a)), np.asarray(_numpy(b))
    if a.dtype == np.bool_ and b.dtype == np.bool_:
        np.testing.assert_equal(a, b)
    elif not almost_equal(a, b, rtol, atol, equal_nan=equal_nan):
        raise AssertionError(_describe(a, b, rtol, atol, names, equal_nan, mismatches))


def assert_allclose(a: Any, b: Any, rtol: float | None = 1e-07, atol: float | None = 0, equal_nan: bool = True) -> None:
    """Compare as `assert_almost_equal` does, with NumPy's tolerances.

    Example
    -------
    >>> mx.test_utils.assert_allclose(mx.nd.ones(2), [1, 1])
    """
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(a: Any, b: Any, rtol: float | None = None, atol: float | None = None, etol: float | None = None,
                                 names: tuple[str, str] = ("a", "b"), equal_nan: bool = False, mismatches: tuple[int, int] = (10, 10)) -> None:
    """Compare as `assert_almost_equal` does; a fraction `etol` of the values may be wrong.

    Example
    -------
    >>> mx.test_utils.assert_almost_equal_with_err(mx.nd.array([1, 2, 3, 4]), mx.nd.array([1, 2, 3, 9]), etol=0.3)
    """
    etol = get_etol(etol)
    if etol <= 0:
        assert_almost_equal(a, b, rtol=rtol, atol=atol, names=names, equal_nan=equal_nan, mismatches=mismatches)
        return
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = _numpy(a), _numpy(b)
    if 1 - np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan).mean() > etol:
        raise AssertionError(_describe(a, b, rtol, atol, names, equal_nan, mismatches))


def assert_almost_equal_ignore_nan(a: Any, b: Any, rtol: float | None = None, atol: float | None = None, names: tuple[str, str] = ("a", "b")) -> None:
    """Compare as `assert_almost_equal` does, without the elements that are NaN in one of the arrays.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.assert_almost_equal_ignore_nan(np.array([1, np.nan]), np.array([1, 5]))
    """
    a, b = np.copy(_numpy(a)), np.copy(_numpy(b))
    unknown = np.isnan(a) | np.isnan(b)
    a[unknown] = b[unknown] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def assert_exception(f: Callable[..., Any], exception_type: type[BaseException] | tuple[type[BaseException], ...], *args: Any, **kwargs: Any) -> None:
    """Raise an AssertionError unless ``f(*args, **kwargs)`` raises an exception of that type.

    Example
    -------
    >>> mx.test_utils.assert_exception(int, ValueError, 'x')
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} did not raise {exception_type.__name__}")
