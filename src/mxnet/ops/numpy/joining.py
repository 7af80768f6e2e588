"""NumPy operators that join arrays or split one."""
import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..docstrings import with_example
from ..registry import get, op
from ..schema import Optional, Shape
from ..shapes import known, product, unify
from .common import InvalidValueError, require_one_type, shape_of_inputs


@op("_npi_concatenate", key_var_num_args="num_args", complete_rule="shape")
def concatenate(*data, axis: Optional[int] = 0, dim: Optional[int] = None):
    """The arrays one after another along `axis`; flattened ones if it is None.

    Raises
    ------
    MXNetError
        If types differ, or sizes do outside of `axis`.

    Example
    -------
    >>> mx.np.concatenate([mx.np.array([[1, 2]]), mx.np.array([[3, 4]])], axis=0)
    array([[1., 2.],
           [3., 4.]])
    """
    if not data:
        raise MXNetError("_npi_concatenate: need at least one array to concatenate, received none")
    require_one_type("_npi_concatenate", *data)
    axis = axis if dim is None else dim
    if axis is None:
        return torch.cat([t.reshape(-1) for t in data])
    if not data[0].dim():
        raise MXNetError(f"_npi_concatenate: arrays without axes cannot be concatenated along axis {axis}; use stack, or axis=None")
    return torch.cat(data, axis) if len(data) > 1 else data[0].clone()


@concatenate.shape_rule
def _(in_shapes, out_shapes, *, axis, dim, **_):
    axis = axis if dim is None else dim
    if any(shape is None for shape in in_shapes):
        return in_shapes, out_shapes
    if axis is None:
        return in_shapes, [unify(out_shapes[0], (sum(map(product, in_shapes)) if all(map(known, in_shapes)) else -1,))]
    if not in_shapes[0]:
        raise MXNetError(f"_npi_concatenate: arrays without axes cannot be concatenated along axis {axis}; use stack, or axis=None")
    return in_shapes, [unify(out_shapes[0], _joined("_npi_concatenate", in_shapes, axis))]


def _joined(operator, shapes, axis):
    """The partial shape of arrays one after another."""
    axis = normalize_axis(operator, axis, len(shapes[0]))
    others = (-1,) * len(shapes[0])
    for shape in shapes:
        if len(shape) != len(others):
            raise MXNetError(f"{operator}: arrays of {len(others)} axes expected, received shape {shape}")
        others = unify(others, (*shape[:axis], -1, *shape[axis + 1:]))
    sizes = [shape[axis] for shape in shapes]
    return (*others[:axis], -1 if min(sizes) < 0 else sum(sizes), *others[axis + 1:])


def _stacking(name, function, least, axis, doc, shapes, result):
    """Register ``function(arrays)``: with the axes that ``least(shape)`` gives to an array of few, one after another along `axis`."""
    full = f"_npi_{name}"

    def require_arrays(data):
        if not data:
            raise MXNetError(f"{full}: need at least one array, received none")

    def fn(*data, dim: int = 1):
        require_arrays(data)
        require_one_type(full, *data)
        return function(data).clone() if len(data) == 1 else function(data)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_example(doc, f"mx.np.{name}([mx.np.zeros(shape) for shape in {shapes}]).shape -> {result}")
    operator = op(full, key_var_num_args="num_args", complete_rule="shape")(fn)

    @operator.shape_rule
    @shape_of_inputs
    def _(*shapes, dim):
        require_arrays(shapes)
        raised = [least(shape) for shape in shapes]
        return _joined(full, raised, min(axis, len(raised[0]) - 1)) if len(set(map(len, raised))) == 1 else None


def _as_column(shape):
    return shape if len(shape) > 1 else (*shape, 1, 1)[:2]


def _with_depth(shape):
    rows = shape if len(shape) > 1 else (1, 1, *shape)[-2:]
    return rows if len(rows) > 2 else (*rows, 1)


_stacking("column_stack", torch.column_stack, _as_column, 1, "Vectors as the columns of a matrix; matrices side by side.",
          "[(3,), (3, 2)]", "(3, 3)")
_stacking("hstack", torch.hstack, lambda shape: shape or (1,), 1, "The arrays one after another along the second axis; vectors along their only one.",
          "[(3, 1), (3, 2)]", "(3, 3)")
_stacking("vstack", torch.vstack, lambda shape: shape if len(shape) > 1 else (1, 1, *shape)[-2:], 0,
          "The arrays one below the other; vectors count as rows.", "[(3,), (2, 3)]", "(3, 3)")
_stacking("dstack", torch.dstack, _with_depth, 2, "The arrays one behind the other, along the third axis.", "[(2, 3), (2, 3)]", "(2, 3, 2)")

_split = get("_split_v2").fn


def _splitting(name, axes, axis_of, doc, example):
    def fn(data, *, indices: Shape, axis: int = 1, squeeze_axis: bool = False, sections: int = 0):
        if data.dim() < axes:
            raise InvalidValueError(f"_npi_{name}: only works on arrays of {axes} or more dimensions, received shape {tuple(data.shape)}")
        return _split(data, indices=indices, axis=axis_of(data), squeeze_axis=squeeze_axis, sections=sections)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_example(f"""{doc} into `sections` pieces of equal size, or where the pieces start (`indices`, the first is 0).

    Raises
    ------
    MXNetError
        If there are fewer than {axes} axes, or the starts do not rise.""", example)
    op(f"_npi_{name}", num_outputs=lambda attributes: attributes["sections"] or len(attributes["indices"]))(fn)


_splitting("hsplit", 1, lambda data: 0 if data.dim() == 1 else 1, "Cut the second axis, of vectors the only one,",
           "mx.np.hsplit(mx.np.array([1, 2, 3, 4]), 2) -> [array([1., 2.]), array([3., 4.])]")
_splitting("dsplit", 3, lambda data: 2, "Cut the third axis",
           "[piece.shape for piece in mx.np.dsplit(mx.np.zeros((2, 3, 4)), (1,))] -> [(2, 3, 1), (2, 3, 3)]")
