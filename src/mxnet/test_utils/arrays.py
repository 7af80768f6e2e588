"""Random and special arrays, dense and sparse, all from numpy's generator (``np.random.seed``)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.random as rnd

from .. import ndarray as nd
from .compare import default_dtype
from .system import default_context

if TYPE_CHECKING:
    from ..context import Context
    from ..ndarray import NDArray


def random_arrays(*shapes: tuple[int, ...]) -> Any:
    """Return a normally distributed float32 array for each shape, in a list; for one shape the array itself.

    Example
    -------
    >>> [x.shape for x in mx.test_utils.random_arrays((2, 3), (4,))]
    [(2, 3), (4,)]
    """
    arrays = [np.asarray(rnd.randn(*shape), dtype=default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: tuple[int, ...], **kwargs: Any) -> list[np.ndarray]:
    """Return a list of arrays with values from `low` (0) to `high` (1), of type `dtype` (float32).

    Example
    -------
    >>> x, = mx.test_utils.random_uniform_arrays((2, 3), low=1, high=2)
    >>> bool(x.min() >= 1)
    True
    """
    low, high, dtype = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0), kwargs.pop("dtype", default_dtype())
    if kwargs:
        raise TypeError(f"Got unexpected argument/s : {', '.join(kwargs)}")
    return [np.asarray(rnd.uniform(low, high, size=shape)).astype(dtype) for shape in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """Return `k` different elements of a list, in random order.

    Example
    -------
    >>> sorted(mx.test_utils.random_sample([3, 1, 2], 3))
    [1, 2, 3]
    """
    if not 0 <= k <= len(population):
        raise ValueError(f"random_sample: {k} elements can't be taken from {len(population)}")
    shuffled = population[:]
    rnd.shuffle(shuffled)
    return shuffled[:k]


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """Return a random shape with `num_dim` axes of at most `dim` each.

    Example
    -------
    >>> len(mx.test_utils.rand_shape_nd(5, dim=3))
    5
    """
    return tuple(int(s) for s in rnd.randint(0 if allow_zero_size else 1, dim + 1, size=num_dim))


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """Return a random shape of two axes, at most `dim0` and `dim1`.

    Example
    -------
    >>> rows, columns = mx.test_utils.rand_shape_2d(3, 4)
    >>> bool(1 <= rows <= 3), bool(1 <= columns <= 4)
    (True, True)
    """
    return tuple(rand_shape_nd(1, dim, allow_zero_size)[0] for dim in (dim0, dim1))


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """Return a random shape of three axes, at most `dim0`, `dim1` and `dim2`.

    Example
    -------
    >>> len(mx.test_utils.rand_shape_3d())
    3
    """
    return tuple(rand_shape_nd(1, dim, allow_zero_size)[0] for dim in (dim0, dim1, dim2))


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """Return a random pair of integers; the upper bounds are exclusive.

    Example
    -------
    >>> x, y = mx.test_utils.rand_coord_2d(0, 5, 10, 15)
    >>> bool(0 <= x < 5), bool(10 <= y < 15)
    (True, True)
    """
    return rnd.randint(x_low, x_high, dtype=np.int64), rnd.randint(y_low, y_high, dtype=np.int64)


def assign_each(the_input: np.ndarray, function: Callable[[float], float] | None) -> np.ndarray:
    """Apply `function` to each element, and return a float64 array; a copy if the function is None.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.assign_each(np.array([1.0, 2.0]), lambda x: x * 10)
    array([10., 20.])
    """
    if function is None:
        return np.array(the_input)
    return np.vectorize(function, otypes=[np.float64])(the_input) if np.size(the_input) else np.zeros(np.shape(the_input))


def assign_each2(input1: np.ndarray, input2: np.ndarray, function: Callable[[float, float], float] | None) -> np.ndarray:
    """Apply `function` to each pair of elements, and return a float64 array; a copy of the first if the function is None.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.assign_each2(np.array([1.0, 2.0]), np.array([3.0, 4.0]), lambda x, y: x * y)
    array([3., 8.])
    """
    if function is None:
        return np.array(input1)
    if input1.shape != input2.shape:
        raise ValueError(f"assign_each2: expected arrays of one shape, received {input1.shape} and {input2.shape}")
    return np.vectorize(function, otypes=[np.float64])(input1, input2) if input1.size else np.zeros(input1.shape)


def np_reduce(dat: np.ndarray, axis: int | Sequence[int] | None, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> np.ndarray:
    """Reduce an array along several axes with a numpy function that takes one `axis`.

    Parameters
    ----------
    dat : numpy.ndarray
    axis : int, sequence of int or None
        None for all axes.
    keepdims : bool
    numpy_reduce_func : callable

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.np_reduce(np.ones((2, 3)), axis=1, keepdims=True, numpy_reduce_func=np.sum)
    array([[3.],
           [3.]])
    """
    axes = [axis] if isinstance(axis, int) else range(dat.ndim) if axis is None else list(axis)
    result = dat
    for i in sorted(axes, reverse=True):
        result = numpy_reduce_func(result, axis=i)
    return result.reshape([1 if i in axes else s for i, s in enumerate(dat.shape)]) if keepdims else result


def collapse_sum_like(a: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Sum an array over the axes along which `shape` would be broadcast to its shape: the gradient of broadcasting.

    Example
    -------
    >>> import numpy as np
    >>> mx.test_utils.collapse_sum_like(np.ones((2, 3)), (1, 3))
    array([[2., 2., 2.]])
    """
    extra = a.ndim - len(shape)
    if extra < 0:
        raise ValueError(f"collapse_sum_like: shape {shape} has more axes than the array, {a.shape}")
    if 0 in shape or a.size == 0:
        return np.zeros(shape, dtype=a.dtype)
    axes = [i for i in range(a.ndim) if i < extra or shape[i - extra] != a.shape[i]]
    if any(i >= extra and shape[i - extra] != 1 for i in axes):
        raise ValueError(f"collapse_sum_like: shape {shape} can't be broadcast to {a.shape}")
    return np.sum(a, axis=tuple(axes)).reshape(shape)


# -- NDArrays ------------------------------------------------------------------------------------------------------------

def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """Return an NDArray (rows, columns) whose values are the numbers of their rows.

    Example
    -------
    >>> mx.test_utils.create_2d_tensor(2, 3).asnumpy()
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    return nd.broadcast_to(create_vector(rows, dtype).reshape((rows, 1)), shape=(rows, columns))


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """Return the integers from 0 to `size` - 1.

    Example
    -------
    >>> mx.test_utils.create_vector(3).asnumpy()
    array([0, 1, 2])
    """
    return nd.arange(0, size, dtype=dtype)


def get_identity_mat(size: int) -> NDArray:
    """Return an identity matrix.

    Example
    -------
    >>> mx.test_utils.get_identity_mat(2).asnumpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return nd.eye(size)


def get_identity_mat_batch(size: int) -> NDArray:
    """Return two identity matrices, (2, size, size).

    Example
    -------
    >>> mx.test_utils.get_identity_mat_batch(2).shape
    (2, 2, 2)
    """
    return nd.array([np.eye(size)] * 2)


def rand_ndarray(shape: Sequence[int], stype: str = "default", density: float | None = None, dtype: Any = None,
                 modifier_func: Callable[[float], float] | None = None, shuffle_csr_indices: bool = False, distribution: str | None = None,
                 ctx: Context | None = None) -> Any:
    """Return a random NDArray: normally distributed if it is dense; see `rand_sparse_ndarray` for the others.

    Example
    -------
    >>> mx.test_utils.rand_ndarray((2, 3), 'csr', density=0.5).stype
    'csr'
    """
    if stype == "default":
        return nd.array(random_arrays(shape), dtype=dtype, ctx=ctx or default_context())
    return rand_sparse_ndarray(shape, stype, density=density, modifier_func=modifier_func, dtype=dtype,
                               shuffle_csr_indices=shuffle_csr_indices, distribution=distribution, ctx=ctx)[0]


def rand_sparse_ndarray(shape: Sequence[int], stype: str, density: float | None = None, dtype: Any = None, distribution: str | None = None,
                        data_init: float | None = None, rsp_indices: Any = None, modifier_func: Callable[[float], float] | None = None,
                        shuffle_csr_indices: bool = False, ctx: Context | None = None) -> tuple[Any, Any]:
    """Return a random sparse NDArray.

    Parameters
    ----------
    shape : tuple of int
    stype : str
        ``'row_sparse'`` or ``'csr'`` (two axes).
    density : float, optional
        The fraction of rows, or of values, that are stored; random by default.
    dtype : str or type, optional
        float32 by default.
    distribution : str, optional
        The distribution of stored values in a csr matrix: ``'uniform'``, or ``'powerlaw'``, in which their number doubles from row to row.
    data_init : float, optional
        A constant for all stored values, instead of random ones.
    rsp_indices : array, optional
        The rows to store.
    modifier_func : callable, optional
        A function applied to each value of a row sparse array.
    shuffle_csr_indices : bool
        Leave the columns of each row unsorted.
    ctx : Context, optional

    Returns
    -------
    array : RowSparseNDArray or CSRNDArray
    parts : tuple
        (values, indices) in numpy, or (indptr, indices, values) as NDArrays.

    Example
    -------
    >>> array, parts = mx.test_utils.rand_sparse_ndarray((4, 3), 'row_sparse', density=0.5)
    >>> array.stype, array.shape
    ('row_sparse', (4, 3))
    """
    ctx = ctx or default_context()
    density = rnd.rand() if density is None else density
    dtype = default_dtype() if dtype is None else dtype
    distribution = distribution or "uniform"
    if stype == "row_sparse":
        if distribution != "uniform":
            raise ValueError(f"rand_sparse_ndarray: distribution {distribution!r} is not supported for row_sparse")
        return _random_rows(shape, density, dtype, data_init, rsp_indices, modifier_func, ctx)
    if stype != "csr":
        raise ValueError(f"rand_sparse_ndarray: unknown storage type {stype!r}; expected 'row_sparse' or 'csr'")
    if len(shape) != 2:
        raise ValueError(f"rand_sparse_ndarray: a csr matrix has two axes, received shape {shape}")
    if not 0 <= density <= 1 or min(shape) <= 0:
        raise ValueError(f"density has to be between 0 and 1 and the shape positive, received {density} and {shape}")
    if distribution == "uniform":
        matrix = _random_csr(shape, density, dtype, data_init, shuffle_csr_indices, ctx)
    elif distribution == "powerlaw":
        matrix = nd.array(_powerlaw(*shape, density, dtype), ctx=ctx, dtype=dtype).tostype("csr")
    else:
        raise ValueError(f"rand_sparse_ndarray: distribution {distribution!r} is not supported; expected 'uniform' or 'powerlaw'")
    return matrix, (matrix.indptr, matrix.indices, matrix.data)


def _random_rows(shape, density, dtype, data_init, indices, modifier_func, ctx):
    if indices is None:
        indices = np.flatnonzero(rnd.rand(shape[0]) < density)
    elif len(indices) > shape[0]:
        raise ValueError(f"rand_sparse_ndarray: {len(indices)} rows were given for an array of {shape[0]}")
    if len(indices) == 0:
        return nd.zeros(shape, ctx=ctx, dtype=dtype, stype="row_sparse"), (np.array([], dtype=dtype), np.array([]))
    values = rnd.rand(len(indices), *shape[1:]).astype(dtype)
    if data_init is not None:
        values.fill(data_init)
    if modifier_func is not None:
        values = assign_each(values, modifier_func)
    return nd.sparse.row_sparse_array((values, indices), shape=shape, dtype=dtype, ctx=ctx), (values, indices)


def _random_csr(shape, density, dtype, data_init, shuffle, ctx):
    count = int(round(density * shape[0] * shape[1]))
    flat = np.sort(rnd.choice(shape[0] * shape[1], count, replace=False))
    rows, columns = flat // shape[1], flat % shape[1]
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1))
    values = rnd.rand(count).astype(dtype)
    if data_init is not None:
        values.fill(data_init)
    if shuffle:
        for start, end in zip(indptr, indptr[1:]):
            rnd.shuffle(columns[start:end])
    return nd.sparse.csr_matrix((values, columns, indptr), shape=shape, dtype=dtype, ctx=ctx)


def _validate_csr_generation_inputs(num_rows, num_cols, density, distribution="uniform"):
    """Raise a ValueError if no csr matrix can have that shape and density."""
    if not 0 <= density <= 1:
        raise ValueError(f"density must be from 0 to 1, received {density}")
    if num_rows <= 0 or num_cols <= 0:
        raise ValueError(f"a matrix of one row and column at least expected, received ({num_rows}, {num_cols})")
    if distribution == "powerlaw" and int(num_rows * num_cols * density) < 2 * num_rows:
        raise ValueError(f"not supported for this density: {density} for this shape ({num_rows}, {num_cols}); "
                         "rows * columns * density must be at least 2 * rows")


def _get_uniform_dataset_csr(num_rows, num_cols, density=0.1, dtype=None, data_init=None, shuffle_csr_indices=False):
    """Return a csr matrix with values at random positions."""
    _validate_csr_generation_inputs(num_rows, num_cols, density)
    return _random_csr((num_rows, num_cols), density, dtype or "float32", data_init, shuffle_csr_indices, None)


def _get_powerlaw_dataset_csr(num_rows, num_cols, density=0.1, dtype=None):
    """Return a csr matrix in which the number of values doubles from row to row."""
    return nd.array(_powerlaw(num_rows, num_cols, density, dtype or "float32"), dtype=dtype).tostype("csr")


def _powerlaw(rows, columns, density, dtype):
    """Return a matrix with 2 values in the first row, 4 in the second, ... up to the density, and one at the start of each remaining row."""
    _validate_csr_generation_inputs(rows, columns, density, "powerlaw")
    left = int(rows * columns * density)
    matrix = np.zeros((rows, columns), dtype=dtype)
    matrix[:, 0] = 1 + rnd.uniform(0.001, 2, rows)
    left -= rows
    width = 2
    for row in range(rows):
        count = min(min(width, columns) - 1, left)
        matrix[row, 1:1 + count] = 1 + rnd.uniform(0.001, 2, count)
        left -= count
        if left <= 0:
            return matrix
        width = min(2 * width, columns)
    raise ValueError(f"not supported for this density: {density} for this shape ({rows},{columns})")


def shuffle_csr_column_indices(csr: Any) -> None:
    """Shuffle the column indices within each row of a SciPy csr matrix, in place; the values keep their order.

    Example
    -------
    >>> import scipy.sparse
    >>> matrix = scipy.sparse.csr_matrix([[1, 1, 1]])
    >>> mx.test_utils.shuffle_csr_column_indices(matrix)
    >>> sorted(matrix.indices.tolist())
    [0, 1, 2]
    """
    for start, end in zip(csr.indptr, csr.indptr[1:]):
        rnd.shuffle(csr.indices[start:end])


def create_sparse_array(shape: Sequence[int], stype: str, data_init: float | None = None, rsp_indices: Any = None, dtype: Any = None,
                        modifier_func: Callable[[float], float] | None = None, density: float | None = 0.5, shuffle_csr_indices: bool = False) -> Any:
    """Return a random sparse NDArray; see `rand_sparse_ndarray`.

    Example
    -------
    >>> mx.test_utils.create_sparse_array((3, 2), 'row_sparse', data_init=1, rsp_indices=[1]).asnumpy()
    array([[0., 0.],
           [1., 1.],
           [0., 0.]], dtype=float32)
    """
    if rsp_indices is not None:
        rsp_indices = np.sort(np.asarray(rsp_indices))
    return rand_sparse_ndarray(shape, stype, density=density, data_init=data_init, rsp_indices=rsp_indices if stype == "row_sparse" else None,
                               dtype=dtype, modifier_func=modifier_func, shuffle_csr_indices=shuffle_csr_indices)[0]


def create_sparse_array_zd(shape: Sequence[int], stype: str, density: float | None, data_init: float | None = None, rsp_indices: Any = None,
                           dtype: Any = None, modifier_func: Callable[[float], float] | None = None, shuffle_csr_indices: bool = False) -> Any:
    """Do the same as `create_sparse_array`, except that a row sparse array stores only the rows in `rsp_indices`.

    Example
    -------
    >>> mx.test_utils.create_sparse_array_zd((3, 2), 'csr', density=0).asnumpy()
    array([[0., 0.],
           [0., 0.],
           [0., 0.]], dtype=float32)
    """
    if stype == "row_sparse":
        density = 0.0
    return create_sparse_array(shape, stype, data_init=data_init, rsp_indices=rsp_indices, dtype=dtype, modifier_func=modifier_func,
                               density=density, shuffle_csr_indices=shuffle_csr_indices)


# -- matrices ------------------------------------------------------------------------------------------------------------

def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random n x n matrix whose eigenvalues are real.

    Example
    -------
    >>> import numpy as np
    >>> bool(np.isreal(np.linalg.eigvals(mx.test_utils.new_matrix_with_real_eigvals_2d(3))).all())
    True
    """
    while True:
        v = rnd.uniform(-1.0, 1.0, (n, 1))
        v /= np.linalg.norm(v)
        q = (np.eye(n) - 2 * v @ v.T) @ np.diag(rnd.uniform(-1.0, 1.0, n))
        if np.linalg.cond(q, 2) < 3:
            return np.linalg.inv(q) @ np.diag(rnd.uniform(-10.0, 10.0, n)) @ q


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Return random matrices with real eigenvalues, along the last two axes.

    Example
    -------
    >>> mx.test_utils.new_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _stacked(new_matrix_with_real_eigvals_2d, shape)


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """Return a random n x n matrix with orthonormal columns.

    Example
    -------
    >>> import numpy as np
    >>> m = mx.test_utils.new_orthonormal_matrix_2d(3)
    >>> bool(np.allclose(m @ m.T, np.eye(3)))
    True
    """
    x = rnd.randn(n, n)
    return np.linalg.qr(x.T @ x)[0]


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random symmetric n x n matrix.

    Example
    -------
    >>> import numpy as np
    >>> m = mx.test_utils.new_sym_matrix_with_real_eigvals_2d(3)
    >>> bool(np.allclose(m, m.T))
    True
    """
    q = new_orthonormal_matrix_2d(n)
    return q.T @ np.diag(rnd.uniform(-10.0, 10.0, n)) @ q


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Return random symmetric matrices, along the last two axes.

    Example
    -------
    >>> mx.test_utils.new_sym_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _stacked(new_sym_matrix_with_real_eigvals_2d, shape)


def _stacked(make, shape):
    return np.array([make(shape[-1]) for _ in range(int(np.prod(shape[:-2])))]).reshape(shape)
