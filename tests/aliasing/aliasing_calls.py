"""Calls of every function and method with arguments that fit some of them; see `aliasing_cases`.

`record_aliasing.py` tries each pattern with each name and keeps what MXNet 1.9.1 accepts, `test_aliasing.py` makes the same calls here.
"""
import contextlib
import re

import numpy as np
from aliasing_cases import flat, named, relations, sequence

import mxnet as mx

# The arrays that a pattern may name.
ARRAYS = {
    "x": sequence(2, 3), "x2": sequence(2, 3) + 9, "r": sequence(1, 3), "c": sequence(2, 1), "v": sequence(4), "v2": sequence(4) + 9,
    "m": sequence(2, 2), "o": sequence(1),
    "i": sequence(2, 3, dtype="int32"), "q": sequence(1, 1, 2, 2), "t": sequence(2, 2, 3), "k": np.array([0, 1], "int32"),
    "s": np.array(3.0, "float32"),
    "b": np.array([[True, False, True], [False, True, True]]),
}
METHODS = """
x.{}|r.{}|v.{}|s.{}|b.{}|x.{}()|r.{}()|c.{}()|v.{}()|m.{}()|i.{}()|o.{}()|q.{}()|s.{}()|b.{}()|x.{}(x2)|x.{}(x)|m.{}(m)|v.{}(v2)|x.{}(0)|x.{}(1)
x.{}(-1)|x.{}(2)|x.{}(1.0)|r.{}(0)|c.{}(1)|x.{}(0, 0)|x.{}(0, 1)|r.{}(0, 1)|t.{}(0, 1)|t.{}(0, 2, 1)|t.{}(0, 1, 2)|x.{}(2, 3)|x.{}(3, 2)|x.{}(6)
x.{}((2, 3))|x.{}((3, 2))|x.{}((1, 2, 3))|x.{}((0, 1))|x.{}((1, 0))|x.{}(shape=(2, 3))|x.{}(shape=(-1,))|r.{}((2, 3))|x.{}('float32')
x.{}('float32', copy=False)|x.{}('default')|x.{}(mx.cpu())|x.{}(mx.cpu(1))|x.{}(None)|x.{}((0, 0), (2, 3))|x.{}(axis=0, begin=0, end=2)
x.{}(axis=0, begin=0, end=1)|x.{}(num_outputs=1)|x.{}(num_outputs=1, axis=0, squeeze_axis=False)|x.{}(reps=(1, 1))|x.{}(repeats=1)|q.{}(1)
x.{}(0, 99)|x.{}(k)|v.{}(k)|x.{}(axis=0)|x.{}(axis=1)|r.{}(axis=0)|c.{}(axis=1)|x.{}(inplace=True)|r.{}(inplace=True)|x.{}(0, inplace=True)
x.{}(-1, inplace=True)
"""
FUNCTIONS = """
{}(x)|{}(r)|{}(c)|{}(v)|{}(m)|{}(i)|{}(o)|{}(q)|{}(t)|{}(s)|{}(b)|{}(x, x2)|{}(m, m)|{}(v, v2)|{}(x, x2, x)|{}(x, 0)|{}(x, 1)|{}(x, -1)|{}(m, -1)
{}(x, 1.0)|{}(r, 0)|{}(c, 1)|{}(x, 0, 0)|{}(x, 0, 1)|{}(x, 1, 0)|{}(r, 0, 1)|{}(x, 2, 0)|{}(x, 3, 1)|{}(t, 0)|{}(t, 1)|{}(t, 2, 0)
{}(t, (0, 1, 2))|{}(x, 4)|{}(x, (2, 3))|{}(x, (3, 2))|{}(x, (-1,))|{}(x, (1, 2, 3))|{}(x, (0, 1))|{}(x, (1, 0))|{}(x, 'float32')|{}(x, None)
{}([x])|{}((x,))|{}([x, x2])|{}((x, x2))|{}([v, v2])|{}([x, x2], 0)|{}([m])|{}(x, k)|{}(x, k, 0)|{}(x, k, axis=0)|{}(v, k)|{}(x, axis=0)
{}(x, axis=1)|{}(r, axis=0)|{}(t, axis=2)|{}(x, axis=None)|{}(x, dtype='float32')|{}(x, dtype=None)|{}(x, copy=False)|{}(x, [1], 1)
{}(q, block_size=1)|{}(x, shape=(2, 3))|{}(x, shape=(-1,))|{}(x, axis=0, begin=0, end=2)|{}(x, begin=(0, 0), end=(2, 3))|{}(x, num_outputs=1)
{}(x, num_outputs=1, axis=0)|{}(x, num_args=1)|{}(x, 0.0, 99.0)|{}(x, ((0, 0), (0, 0)))|{}(x, b)|{}(b, x, x2)|{}('ij->ij', x)|{}('ij->ji', x)
{}('ij', x)|{}('ii->i', m)|{}(x, ctx=mx.cpu())|{}(lambda d, s: (d, s), x, r)|{}(lambda d, s: (d, s), x, [r])|{}(lambda a: a, x)
"""
# For each namespace its patterns, how a name in it begins, and whether its arrays are those of mx.np.
NAMESPACES = {
    "NDArray": (METHODS, "", False), "ndarray": (METHODS, "", True), "mx.nd": (FUNCTIONS, "mx.nd.", False),
    "mx.nd.contrib": (FUNCTIONS, "mx.nd.contrib.", False),
    "mx.nd.linalg": (FUNCTIONS, "mx.nd.linalg.", False), "mx.nd.image": (FUNCTIONS, "mx.nd.image.", False),
    "mx.nd.random": (FUNCTIONS, "mx.nd.random.", False),
    "mx.nd.sparse": (FUNCTIONS, "mx.nd.sparse.", False), "mx.np": (FUNCTIONS, "mx.np.", True), "mx.np.linalg": (FUNCTIONS, "mx.np.linalg.", True),
    "mx.np.random": (FUNCTIONS, "mx.np.random.", True), "mx.npx": (FUNCTIONS, "mx.npx.", True), "mx.npx.random": (FUNCTIONS, "mx.npx.random.", True),
    "numpy": (FUNCTIONS, "np.", True), "mx.image": (FUNCTIONS, "mx.image.", False),
}
# What reads or writes files, changes settings, waits for input, or is no function of arrays.
OTHERS = set("""save savez load waitall imdecode set_np reset_np wait_to_read wait_to_write from_file imread genfromtxt loadtxt savetxt fromfile
cvimread seed test custom Custom set_printoptions get_printoptions array2string array_repr array_str handle to_dlpack_for_write
asfortranarray indexing_key_expand_implicit_axes get_oshape_of_gather_nd_op get_indexing_dispatch_code alltrue sometrue __dlpack__""".split())
SPECIAL = "__getitem__ __add__ __iadd__ __isub__ __imul__ __itruediv__ __imod__ __neg__ __abs__ __copy__ __pow__ __matmul__ __imatmul__".split()
JOINING = set("concatenate stack vstack hstack dstack column_stack row_stack broadcast_arrays meshgrid atleast_1d atleast_2d atleast_3d".split())


def patterns(namespace):
    return re.split(r"[|\n]", NAMESPACES[namespace][0].strip())


def expression(namespace, pattern, name):
    return pattern.format(NAMESPACES[namespace][1] + name)


def fits(namespace, pattern, name):
    """Return whether the call is worth a try: NumPy's own functions take sequences of arrays apart, unless they join them."""
    return namespace != "numpy" or name in JOINING or not re.search(r"\(([\[(]|lambda)", pattern)


def names(namespace):
    """The public names in a namespace."""
    owner = {"NDArray": mx.nd.NDArray, "ndarray": mx.np.ndarray, "numpy": np}.get(namespace) or eval(namespace)
    methods = namespace in ("NDArray", "ndarray")
    found = [n for n in dir(owner) if n not in OTHERS and (not n.startswith("_") or methods and n in SPECIAL)]
    return sorted(n for n in found if methods or callable(getattr(owner, n)) and not isinstance(getattr(owner, n), type))


def call(namespace, text):
    """The relations of the arrays in a call and its results; None if there are no arrays among the results."""
    numpy = NAMESPACES[namespace][2]
    make = mx.np.array if numpy else mx.nd.array
    with contextlib.ExitStack() as stack:
        if numpy:
            stack.enter_context(mx.util.np_shape(True))
            stack.enter_context(mx.util.np_array(True))
        used = {n: make(ARRAYS[n], dtype=ARRAYS[n].dtype) for n in set(re.findall(r"\b[a-z]2?\b", text)) & set(ARRAYS)}
        if not numpy and any(not a.ndim for a in used.values()):
            return None
        results = flat(eval(text, {"mx": mx, "np": np, **used}))
        mx.nd.waitall()
        return relations({**{n: used[n] for n in sorted(used)}, **named("y", results)}) if results else None
