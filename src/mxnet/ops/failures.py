"""Explanations of failed operator calls in MXNet's terms. Nothing here runs for a call that succeeds.

Torch's messages name its own functions and arguments, which users of an operator don't know. The explanation comes from the operator's list
of inputs, else from its shape rule, else from the kind of error that torch raised. Torch's error stays the cause, which a traceback shows.
"""
import dis
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..base import MXNetError
from . import dtypes
from .shapes import known, unify

Partial = tuple[int, ...] | None
_PACKAGES = os.path.dirname(os.path.dirname(np.__file__))
# Where the code of operators is, and of what they call; the last is code that torch.fx generates.
_INTERNAL = (os.path.dirname(os.path.dirname(__file__)) + os.sep, os.path.dirname(torch.__file__) + os.sep, os.path.dirname(np.__file__) + os.sep,
             os.path.join(_PACKAGES, "cv2"), "<eval_with_key>")

_RAISE = dis.opmap["RAISE_VARARGS"]
_TYPES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Int": "int32", "Long": "int64", "Byte": "uint8",
          "Char": "int8", "Short": "int16", "Bool": "bool"}


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text; the name of its class where it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def reason(op: Any, error: Exception, shapes: Sequence[Partial], types: Sequence[torch.dtype | None], attributes: Mapping[str, Any]) -> str:
    """Return why a call failed.

    Parameters
    ----------
    op : Operator
        Or what stands for one in texts.
    error : Exception
        What was raised.
    shapes, types : list
        Those of the inputs, None for an input that was left out.
    attributes : dict
        Parsed attributes.
    """
    if isinstance(error, MXNetError):
        return str(error)
    if not _is_internal(error):
        return first_line(error)
    given = [(n, s, t) for n, s, t in zip(_names(op, len(shapes)), shapes, types) if s is not None]
    return _missing_inputs(op, shapes, attributes) or _broken_rule(op, shapes, attributes) or in_words(error, given)


def _names(op: Any, count: int) -> Sequence[str]:
    if not op.variadic:
        return op.inputs
    fixed = op.inputs[:-1]
    return [*fixed, *(f"input {i}" for i in range(count - len(fixed)))]


def _missing_inputs(op: Any, shapes: Sequence[Partial], attributes: Mapping[str, Any]) -> str:
    if not hasattr(op, "input_names"):
        return ""
    if op.variadic:
        absent = [f"input {i}" for i, s in enumerate(shapes) if s is None]
        return f"{' and '.join(absent)} must be an array, received None" if absent else "needs at least one input" if not shapes else ""
    if len(shapes) > len(op.inputs):
        return f"takes {len(op.inputs)} inputs ({', '.join(op.inputs)}), received {len(shapes)}"
    try:
        wanted = op.input_names({k: v for k, v in attributes.items() if k in op.attributes})
    except Exception:
        wanted = tuple(n for n in op.inputs if n not in op.optional_inputs)
    absent = [n for n in wanted if n in op.inputs and (op.inputs.index(n) >= len(shapes) or shapes[op.inputs.index(n)] is None)]
    if absent:
        return f"needs the inputs {', '.join(wanted)}; missing: {', '.join(absent)}"
    return ""


def _broken_rule(op: Any, shapes: Sequence[Partial], attributes: Mapping[str, Any]) -> str:
    """Return what the operator's shape rule says against these shapes, or nothing."""
    rule = getattr(op, "shape_inference", None)
    if rule is None or not all(map(known, shapes)):
        return ""
    try:
        own = op.with_defaults({k: v for k, v in attributes.items() if k in op.attributes})
        ins, _ = rule(list(shapes), [None] * op.outputs(own), **own)
        for given, wanted in zip(shapes, ins):
            unify(given, wanted)
    except MXNetError as error:
        text = str(error)
        return text.removeprefix(f"{op.name}: ")
    except Exception:
        return ""
    return ""


def in_words(error: BaseException, given: Sequence[tuple[str, Partial, torch.dtype | None]] = ()) -> str:
    """Return what an error of torch or Python means for a user's arrays: ``(name, shape, type)`` of each are in `given`."""
    if isinstance(error, MXNetError):
        return str(error)
    if not _is_internal(error):
        return first_line(error)
    text = str(error)
    for pattern, words in _MEANINGS:
        match = re.search(pattern, text)
        if match is not None:
            return words(match, given)
    if isinstance(error, IndexError):
        return _axis(None, given)
    if isinstance(error, (OverflowError, ZeroDivisionError)):
        return f"an attribute is out of range for inputs of {_shapes(given)}" if given else "an attribute is out of range"
    return f"the shapes or types of the inputs ({_shapes(given)}), or the attributes, do not fit together" if given else \
        "the attributes do not fit together"


def _is_internal(error: BaseException) -> bool:
    """Return whether an error has words that are not for users: it came from below, and not by way of code that a program has defined."""
    trace = error.__traceback__
    if trace is None:
        return True
    while True:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_INTERNAL):
            return False
        if trace.tb_next is None:
            break
        trace = trace.tb_next
    return not (code.co_filename.startswith(_INTERNAL[0]) and code.co_code[trace.tb_lasti] == _RAISE)  # raised here, in words chosen here


def _shapes(given: Any) -> str:
    return "shapes " + ", ".join(f"{n} {s}" for n, s, _ in given) if len(given) > 1 else f"shape {given[0][1]}" if given else "these shapes"


def _listed_types(given: Any) -> str:
    return ", ".join(f"{n} {dtypes.name_of(t)}" for n, _, t in given if t is not None)


def _type(match: Any, given: Any) -> str:
    """Types that differ, or that the operator does not compute with."""
    types = [t for _, _, t in given if t is not None]
    floating = {t for t in types if t.is_floating_point}
    if len(floating) > 1:
        return f"the inputs must have one type, received {_listed_types(given)}; convert with astype()"
    others = [n for n, _, t in given if t is not None and not t.is_floating_point]
    if others:
        names = sorted({dtypes.name_of(t) for t in types if not t.is_floating_point})
        which = f" as {', '.join(others)}" if floating else ""
        return f"{' and '.join(names)} is not supported{which}; convert with astype('float32')"
    if floating:
        return f"{dtypes.name_of(next(iter(floating)))} is not supported for these inputs and attributes; convert with astype('float32')"
    return "the type is not supported; convert with astype('float32')"


def _unsupported(match: Any, given: Any) -> str:
    name = _TYPES.get(match[1])
    return f"{name} is not supported; convert with astype('float32')" if name else _type(match, given)


def _written(match: Any, given: Any) -> str:
    return ("an array that a recorded computation needs was written to; write to a copy, or outside of autograd.record()")


def _broadcast(match: Any, given: Any) -> str:
    sizes = f" (sizes {match[1]} and {match[2]} on axis {match[3]})" if match.re.groups == 3 else ""
    if len(given) > 1:
        return f"operands could not be broadcast together with shapes {' '.join(str(s) for _, s, _ in given)}{sizes}"
    return f"the attributes do not fit an input of {_shapes(given)}{sizes}"


def _product(match: Any, given: Any) -> str:
    return f"shape error: {' X '.join(str(s) for _, s, _ in given)}: the axes that are summed over differ in size"


def _joined(match: Any, given: Any) -> str:
    return f"the inputs must have equal shapes except along the axis on which they are joined, received {', '.join(str(s) for _, s, _ in given)}"


def _stacked(match: Any, given: Any) -> str:
    return f"the inputs must have equal shapes, received {', '.join(str(s) for _, s, _ in given)}"


def _axis(match: Any, given: Any) -> str:
    return f"an axis or an index is out of range for {_shapes(given)}"


def _index(match: Any, given: Any) -> str:
    return f"index {match[1]} is out of bounds for axis {match[2]} with size {match[3]}"


def _axes(match: Any, given: Any) -> str:
    return f"the axes do not fit an input of {_shapes(given)}: each is to be named once, and be one that the input has"


def _reshaped(match: Any, given: Any) -> str:
    return f"cannot reshape array of size {match[2]} into shape ({match[1]})"


def _open_reshape(match: Any, given: Any) -> str:
    return f"cannot reshape array of size 0 into shape ({match[1]}): the size of -1 could be any"


def _elements(match: Any, given: Any) -> str:
    return f"{match[1].replace('running', 'moving')} must have {match[2]} elements, received {match[3]}"


def _kernel(match: Any, given: Any) -> str:
    return f"kernel size ({match[2]}) exceeds the padded input ({match[1]})"


def _channels(match: Any, given: Any) -> str:
    return f"the number of channels does not fit the weight for {_shapes(given)}: data needs {match[1]} channels, it has {match[2]}"


def _rank(match: Any, given: Any) -> str:
    return f"the inputs have the wrong number of axes: {_shapes(given)}"


def _memory(match: Any, given: Any) -> str:
    return f"out of memory: the result, or what computing it needs, is too large for inputs of {_shapes(given)}" if given else \
        "out of memory: the result, or what computing it needs, is too large"


def _gpu(match: Any, given: Any) -> str:
    return (f"the GPU reports: {match[1].strip()}. An earlier call may have failed, and the process cannot use this GPU any more: start it anew "
            "with CUDA_LAUNCH_BLOCKING=1 to learn which call it was")


def _negative(match: Any, given: Any) -> str:
    return f"a size of the result would be negative for {_shapes(given)}" if given else "a size of the result would be negative"


def _gradient_shape(match: Any, given: Any) -> str:
    return f"a gradient has shape ({match[1]}), the array that it belongs to has ({match[2]})"


def _square(match: Any, given: Any) -> str:
    return f"square matrices are needed, received {_shapes(given)}"


def _singular(match: Any, given: Any) -> str:
    return "a matrix is singular, or not positive-definite"


# What torch (and NumPy, and OpenCV) say, and what it means: the first that matches.
_MEANINGS: list[tuple[str, Any]] = [
    (r"re-initialize CUDA in forked", lambda match, given: "a forked process can't use a GPU that its parent has used: let workers of a DataLoader "
     "make arrays of the CPU, or use thread_pool=True"),
    (r"(?:CUDA|CUBLAS|CUDNN|cuDNN|NCCL) error: ([^\n]*)", _gpu),
    (r"not implemented for '(\w+)'", _unsupported),
    (r"leaf Variable that requires grad|modified by an inplace operation|a view of a leaf|mark_dirty|requires grad\. Use", _written),
    (r"memory|Storage size|integer multiplication overflow|Integer overflow|too large|Maximum allowed (?:size|dimension)", _memory),
    (r"[Dd]imension size must be non-negative|negative dimension|must be non-negative|output size is too small|negative (?:output )?size", _negative),
    (r"singular|positive.definite|not invertible|did not converge", _singular),
    (r"square matri|must be batches of", _square),
    (r"shape '\[(.*?)\]' is invalid for input of size (\d+)", _reshaped),
    (r"cannot reshape array of size (?P<size>\d+)", lambda m, given: f"cannot reshape array of size {m['size']} into the shape that is asked for"),
    (r"cannot reshape tensor of 0 elements into shape \[(.*?)\]", _open_reshape),
    (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", _broadcast),
    (r"broadcast|expanded size of the tensor|must match the existing size|shape mismatch|could not be broadcast", _broadcast),
    (r"mat1 and mat2 shapes|batch[12]|multiplied|inconsistent tensor size|matmul:|Incompatible matrix|incompatible for .*product|size mismatch|"
     r"einsum", _product),
    (r"stack expects each tensor", _stacked),
    (r"Sizes of tensors must match|same number of dimensions: got|cannot be concatenated", _joined),
    (r"got \[(.*?)\] but expected shape compatible with \[(.*?)\]", _gradient_shape),
    (r"(running_mean|running_var|weight|bias|gamma|beta) should contain (\d+) elements not (\d+)", _elements),
    (r"padded input size per channel: \((.*?)\)\. Kernel size: \((.*?)\)", _kernel),
    (r"to have (\d+) channels, but got (\d+) channels", _channels),
    (r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", _index),
    (r"Dimension out of range|index out of range|out of bounds|out of range|too many indices|INDICES element|no larger than self", _axis),
    (r"permute|movedim|appears multiple times|repeated dim|diagonal dimensions|rotation dims|duplicate|unique dims|dims?\b.* must be", _axes),
    (r"scalar type|same d?type|same data ?type|share same datatype|mixed dtype|[Ii]nput type|result type|result dtype|can't be cast|dtype|"
     r"data type|floating[ -]point|complex|[Bb]ool|integral|Long|Low precision|is not supported for (?:bool|int)|ufunc|finfo|derivative for", _type),
    (r"expected \d+D|\d+-dimensional|dims but tensor has|number of dimensions|at least \w+ dimension|non-empty|1D or 2D|\d-D|dimensions", _rank),
]
