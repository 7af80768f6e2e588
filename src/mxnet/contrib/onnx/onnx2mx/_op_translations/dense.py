"""Products of matrices and convolutions."""
import numpy as np

from .....base import MXNetError
from .....suggestions import shortened
from ..reading import UnknownValue
from ..registry import translates
from ..reshaping import reshape
from .elemwise import arithmetic, binary, with_number
from .slicing import padded


@translates("MatMul")
def matmul(g, a, b):
    """The product of matrices in the last two axes, repeated along the others."""
    g.entry(a)
    ranks = g.rank(a), g.rank(b)
    kind = g.dtype(a)
    if b.array is not None and ranks[1] == 2 and ranks[0] >= 2 and b.array.dtype.kind == "f":
        weight = g.array(np.ascontiguousarray(b.array.T), b.name and f"{b.name}_transposed")
        return g.op("FullyConnected", a, weight, num_hidden=b.array.shape[1], no_bias=True, flatten=False)
    if kind is None or kind.kind == "f":
        if max(ranks) == 2 and min(ranks) == 2:
            return g.op("dot", a, b)
        shapes = g.known_shapes(a), g.known_shapes(b)
        if min(ranks) == max(ranks) == 3 and None not in shapes and [s[0] for s in shapes[0]] == [s[0] for s in shapes[1]]:
            return g.op("batch_dot", a, b)
        if min(ranks) == max(ranks) > 3 and None not in shapes and [s[:-2] for s in shapes[0]] == [s[:-2] for s in shapes[1]]:
            return g.op("_linalg_gemm2", a, b)
    if ranks == (1, 1):
        return g.op("dot", a, b, is_scalar=True)
    return g.op("_npi_matmul", a, b)


@translates("Gemm", "FC")
def gemm(g, a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=None, axis=None, axis_w=None, broadcast=1):
    """``alpha * a @ b + beta * c``, with either matrix turned over before."""
    g.entry(a)
    if transB is None:
        transB = int(g.node_type == "FC")  # which has an output in each row
    if transA:
        a = g.op("transpose", a, axes=(1, 0))
    bias = c is not None and c.array is not None and c.array.ndim in (1, 2) and beta == 1 and alpha == 1
    known = b.array is not None and b.array.ndim == 2 and b.array.dtype.kind == "f"
    if known:
        weight = b if transB else g.array(np.ascontiguousarray(b.array.T), b.name and f"{b.name}_transposed")
        units = weight.array.shape[0]
        if bias and c.array.size == units and c.array.shape[-1] == units:
            c = c if c.array.ndim == 1 else g.array(c.array.reshape(-1), c.name)
            return g.op("FullyConnected", a, weight, c, num_hidden=units, flatten=False)
        product = g.op("FullyConnected", a, weight, num_hidden=units, no_bias=True, flatten=False)
    else:
        product = g.op("dot", a, b, transpose_b=bool(transB))
    product = product if alpha == 1 else with_number(g, "_mul_scalar", product, alpha)
    if c is None or beta == 0:
        return product
    if beta != 1:
        c = g.array((c.array * beta).astype(c.array.dtype), c.name and f"{c.name}_scaled") if c.array is not None else with_number(
            g, "_mul_scalar", c, beta)
    return arithmetic(g, "Add", product, c)


@translates("Einsum")
def einsum(g, *data, equation):
    """Sums of products by the letters of their axes."""
    letters = equation.replace(" ", "")
    terms = letters.split("->")[0].split(",")
    scalars = [value.scalar and not term for value, term in zip(data, terms)]
    if any(scalars):  # a factor without axes
        factors = [value for value, scalar in zip(data, scalars) if scalar]
        rest = [(value, term) for value, term, scalar in zip(data, terms, scalars) if not scalar]
        if not rest:
            result = factors.pop()
        else:
            result = einsum(g, *(value for value, _ in rest), equation=",".join(term for _, term in rest) + letters[letters.find("->"):]
                            if "->" in letters else ",".join(term for _, term in rest))
        for factor in factors:
            result = binary(g, "broadcast_mul", result, factor)
        return result
    result = g.op("_npi_einsum", *data, subscripts=letters)
    return g.op("Reshape", result, shape=(1,), is_scalar=True) if letters.endswith("->") else result


@translates("Det")
def det(g, data):
    """The determinants of matrices."""
    return g.op("_linalg_det", data, is_scalar=g.rank(data) == 2)


# -- convolutions --------------------------------------------------------------------------------------------------------

def window(g, data, kernel, strides, pads, dilations, auto_pad, ceil=False):
    """The strides, dilations and padding of windows over the spatial axes, from ONNX's attributes.

    Returns
    -------
    strides, dilations : tuple of int
    pads : list of (int, int)
        Before and behind each spatial axis.

    Raises
    ------
    MXNetError
        If they are not as many as the spatial axes.
    """
    axes = len(kernel)
    strides, dilations = tuple(strides or (1,) * axes), tuple(dilations or (1,) * axes)
    pads = tuple(pads or (0,) * 2 * axes)
    if len(strides) != axes or len(dilations) != axes or len(pads) != 2 * axes or axes not in (1, 2, 3) or g.rank(data) != axes + 2:
        raise MXNetError(f"windows of size {tuple(kernel)} over data of {g.rank(data)} axes: expected 1 to 3 spatial axes, as many strides "
                         f"{strides} and dilations {dilations}, and twice as many pads {pads}")
    if min(kernel) < 1 or min(strides) < 1 or min(dilations) < 1:
        raise MXNetError(f"windows of size {tuple(kernel)}, strides {strides} and dilations {dilations} must be 1 or more")
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        widths = []
        for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations)):
            reach = (k - 1) * d + 1
            size = g.sizes(data)[axis + 2] if s > 1 else 0
            if size is None:
                raise UnknownValue(f"auto_pad={auto_pad} with strides {strides} over an axis whose size the file leaves open")
            total = max((-(-size // s) - 1) * s + reach - size, 0) if s > 1 else reach - 1
            less, more = total // 2, total - total // 2
            widths.append((less, more) if auto_pad == "SAME_UPPER" else (more, less))
        return strides, dilations, widths
    if auto_pad not in ("NOTSET", "VALID", ""):
        raise MXNetError(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, received {shortened(auto_pad)}")
    return strides, dilations, [(0, 0)] * axes if auto_pad == "VALID" else list(zip(pads[:axes], pads[axes:]))


@translates("Conv")
def conv(g, data, weight, bias=None, *, kernel_shape=None, strides=None, pads=None, dilations=None, group=1, auto_pad="NOTSET"):
    """A convolution over one to three spatial axes."""
    sizes = g.sizes(weight)
    kernel = tuple(kernel_shape or sizes[2:])
    strides, dilations, widths = window(g, data, kernel, strides, pads, dilations, auto_pad)
    if any(before != behind or before < 0 for before, behind in widths):
        data = padded(g, data, [(0, 0), (0, 0), *widths])
        widths = [(0, 0)] * len(kernel)
    inputs = [data, weight] if bias is None else [data, weight, bias]
    return g.op("Convolution", *inputs, kernel=kernel, stride=strides, dilate=dilations, pad=tuple(w[0] for w in widths), num_filter=sizes[0],
                num_group=group, no_bias=bias is None)


@translates("ConvTranspose")
def deconv(g, data, weight, bias=None, *, kernel_shape=None, strides=None, pads=None, dilations=None, group=1, auto_pad="NOTSET",
           output_padding=None, output_shape=None):
    """The transposed convolution over one to three spatial axes."""
    sizes = g.sizes(weight)
    kernel = tuple(kernel_shape or sizes[2:])
    axes = len(kernel)
    extra = tuple(output_padding or (0,) * axes)
    strides, dilations, widths = window(g, data, kernel, strides, pads, dilations, "VALID" if auto_pad.startswith("SAME") else auto_pad)
    if output_shape or auto_pad.startswith("SAME"):
        inner = [g.size(data, axis + 2, "the size of the result") for axis in range(axes)]
        wanted = tuple(output_shape)[-axes:] if output_shape else tuple(n * s for n, s in zip(inner, strides))
        widths = []
        for axis in range(axes):
            total = strides[axis] * (inner[axis] - 1) + extra[axis] + (kernel[axis] - 1) * dilations[axis] + 1 - wanted[axis]
            extra = (*extra[:axis], extra[axis] - min(total, 0), *extra[axis + 1:])
            half = max(total, 0) // 2
            widths.append((half, max(total, 0) - half) if auto_pad == "SAME_UPPER" else (max(total, 0) - half, half))
    attributes = dict(kernel=kernel, stride=strides, dilate=dilations, num_filter=sizes[1] * group, num_group=group, no_bias=bias is None)
    inputs = [data, weight] if bias is None else [data, weight, bias]
    alike = all(before == behind >= 0 for before, behind in widths) and all(e < s for e, s in zip(extra, strides))
    if alike:
        return g.op("Deconvolution", *inputs, pad=tuple(w[0] for w in widths), adj=extra, **attributes)
    if bias is not None:
        inputs, attributes["no_bias"] = inputs[:2], True
    full = g.op("Deconvolution", *inputs, **attributes)
    result = padded(g, full, [(0, 0), (0, 0), *((-before, e - behind) for (before, behind), e in zip(widths, extra))])
    if bias is None:
        return result
    return g.op("broadcast_add", result, reshape(g, bias, [(1, -1, *[1] * axes)] * len(g.shapes(bias))))
