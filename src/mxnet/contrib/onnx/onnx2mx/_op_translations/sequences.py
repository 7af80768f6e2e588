"""Sequences of arrays and optional values: they are lists during the import and do not occur in the network."""
import numpy as np

from .....base import MXNetError
from ..registry import translates
from ..values import Value
from .slicing import nothing

_MOST = 1 << 12  # elements of a sequence


def _place(sequence, position, beyond=0):
    """A position in a sequence, counted from the front."""
    place = len(sequence) if position is None else int(position.number("position"))
    if not -len(sequence) <= place < len(sequence) + beyond:
        raise MXNetError(f"position {place} of a sequence of {len(sequence)} elements")
    return place + len(sequence) if place < 0 else place


@translates("SequenceConstruct")
def sequence_construct(g, *data):
    """A sequence of these values."""
    return Value("", sequence=list(data))


@translates("SequenceEmpty")
def sequence_empty(g, *, dtype=1):
    """A sequence without elements."""
    return Value("", sequence=[])


@translates("SequenceAt")
def sequence_at(g, data, position):
    """One element of a sequence."""
    elements = data.elements("input_sequence")
    return elements[_place(elements, position)]


@translates("SequenceInsert")
def sequence_insert(g, data, tensor, position=None):
    """A sequence with one more element, before a position or at the end."""
    elements = list(data.elements("input_sequence"))
    elements.insert(_place(elements, position, 1), tensor)
    return Value("", sequence=elements)


@translates("SequenceErase")
def sequence_erase(g, data, position=None):
    """A sequence without one of its elements: the last one, unless a position is given."""
    elements = list(data.elements("input_sequence"))
    if not elements:
        raise MXNetError("a sequence with an element to take out expected, received an empty one")
    del elements[len(elements) - 1 if position is None else _place(elements, position)]
    return Value("", sequence=elements)


@translates("SequenceLength")
def sequence_length(g, data):
    """The number of elements of a sequence."""
    return g.array(np.array(len(data.elements("input_sequence")), "int64"))


@translates("ConcatFromSequence")
def concat_from_sequence(g, data, *, axis, new_axis=0):
    """The elements of a sequence joined along an axis, which may be a new one."""
    elements = data.elements("input_sequence")
    if not elements:
        raise MXNetError("a sequence with elements to join expected, received an empty one")
    for value in elements:
        g.entry(value)
    axis = g.axis(elements[0], axis, int(bool(new_axis)))
    if new_axis:
        return g.op("stack", *elements, axis=axis)
    return g.op("Concat", *elements, dim=axis)


@translates("SplitToSequence")
def split_to_sequence(g, data, split=None, *, axis=0, keepdims=1):
    """A value cut along an axis: into single ones, into parts of one size, or of the given ones."""
    g.entry(data)
    axis = g.axis(data, axis)
    total = g.size(data, axis, "SplitToSequence")
    if total > _MOST and (split is None or split.constant("split").ndim == 0):
        raise MXNetError(f"an axis of size {total} is to be cut; expected at most {_MOST}")
    if split is None:
        sizes = (1,) * total
    elif split.constant("split").ndim == 0:
        each = int(split.number("split"))
        if each < 1:
            raise MXNetError(f"parts of size {each}")
        sizes = [min(each, total - start) for start in range(0, total, each)]
    else:
        sizes = split.integers("split")
    if sum(sizes) != total or min(sizes, default=0) < 0:
        raise MXNetError(f"parts of sizes {list(sizes)[:10]} do not make up an axis of size {total}")
    ends = np.cumsum(sizes).tolist()
    parts = [g.op("slice_axis", data, axis=axis, begin=end - n, end=end) if n else nothing(g, data, axis) for n, end in zip(sizes, ends)]
    if split is None and not keepdims:
        parts = [g.op("Reshape", part, shape=(1,), is_scalar=True) if g.rank(part) == 1 else g.op("squeeze", part, axis=axis) for part in parts]
    return Value("", sequence=parts)


@translates("SequenceMap")
def sequence_map(g, data, *others, body):
    """A graph applied to each element of a sequence, and the sequences of its results."""
    given = [data, *others]
    count = len(data.elements("input_sequence"))
    if any(value.sequence is not None and len(value.sequence) != count for value in others):
        raise MXNetError(f"sequences of one length expected, received {[count, *(len(v.sequence) for v in others if v.sequence is not None)]!r:.80}")
    rows = []
    for i in range(count):
        g.iterate()
        rows.append(g.branch(body, [value if value.sequence is None else value.sequence[i] for value in given]))
    return [Value("", sequence=[row[i] for row in rows]) for i in range(len(body.output))]


@translates("Optional")
def optional(g, data=None, *, type=None):
    """An optional value: a sequence of one element, or of none."""
    return Value("", sequence=[] if data is None else [data])


@translates("OptionalGetElement")
def optional_get_element(g, data):
    """The content of an optional value."""
    if data.sequence is None:
        return data
    if not data.sequence:
        raise MXNetError("an optional value with content expected, received an empty one")
    return data.sequence[0]


@translates("OptionalHasElement")
def optional_has_element(g, data=None):
    """True if an optional value is not empty."""
    return g.array(np.array(data is not None and (data.sequence is None or bool(data.sequence))))
