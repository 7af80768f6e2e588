"""NumPy arrays as people have them, and what takes arrays. `record_numpy_inputs.py` runs these with MXNet 1.9.1, `test_numpy_inputs.py` here."""
import numpy as np

import mxnet as mx


def grid():
    return np.arange(12, dtype="f4").reshape(3, 4)


def read_only(array):
    array.setflags(write=False)
    return array


def field():
    records = np.zeros((3, 4), [("other", "u1"), ("wanted", "f4")])
    records["wanted"] = grid()
    return records["wanted"]


SOURCES = {
    "plain": grid, "negative": lambda: grid()[:, ::-1], "flip": lambda: np.flip(grid()), "rot90": lambda: np.rot90(grid().reshape(4, 3)),
    "transposed": lambda: grid().reshape(4, 3).T, "strided": lambda: np.arange(24, dtype="f4").reshape(3, 8)[:, ::2],
    "broadcast": lambda: np.broadcast_to(np.arange(4, dtype="f4"), (3, 4)), "read-only": lambda: read_only(grid()),
    "read-only negative": lambda: read_only(grid()[::-1]), "big negative": lambda: grid().astype(">f4")[:, ::-1],
    "big read-only": lambda: np.frombuffer(grid().astype(">f4").tobytes(), ">f4").reshape(3, 4),
    "longdouble": lambda: grid().astype(np.longdouble), "longdouble negative": lambda: grid().astype(np.longdouble)[::-1],
    "unaligned": lambda: np.ndarray((3, 4), "f4", b"x" + grid().tobytes(), 1), "field": field, "masked": lambda: np.ma.masked_greater(grid(), 5),
    "bool negative": lambda: (grid() > 5)[:, ::-1], "u1 negative": lambda: grid().astype("u1")[:, ::-1],
    "object": lambda: grid().astype(object), "structured": lambda: np.zeros((3, 4), [("a", "u1"), ("b", "f4")]),
    "no rows": lambda: np.zeros((0, 4), "f4"), "no rows, big": lambda: np.zeros((0, 4), ">f4")[::-1], "no columns": lambda: np.zeros((3, 0), "f4"),
    "one element": lambda: np.array([[3.5]], ">f8")[::-1, ::-1],
    **{kind: lambda kind=kind: grid().astype(kind) for kind in (">f2", ">f4", ">f8", ">i2", ">u2", ">i4", ">u4", ">i8", ">u8", "f2", "f8", "?", "i1",
    "i8")},
    **{f"no axes {kind}": lambda kind=kind: np.array(3, kind) for kind in ("f4", ">f4", "f8", "i4", "longdouble", "?")},
    **{f"number {np.dtype(kind).name}": lambda kind=kind: kind(3) for kind in (np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32,
    np.int64, np.bool_)},
}


def written(key, dtype="float32", create=mx.nd.zeros, shape=(3, 4)):
    def take(values):
        array = create(shape, dtype=dtype)
        array[key] = values
        return array
    return take


def executor():
    return (mx.sym.Variable("x") * 2).bind(mx.cpu(), {"x": mx.nd.zeros((3, 4))})


def by_arg_dict(values):
    bound = executor()
    bound.arg_dict["x"][:] = values
    return bound.forward()[0]


def by_set_data(values):
    parameter = mx.gluon.Parameter("p", shape=(3, 4))
    parameter.initialize()
    parameter.set_data(values)
    return parameter.data()


def by_initializer(values):
    parameter = mx.gluon.Parameter("p", shape=(3, 4), init=mx.init.Constant(values))
    parameter.initialize()
    return parameter.data()


def by_load(values):
    array = mx.nd.zeros((3, 4))
    mx.init.Load({"p_weight": values})(mx.init.InitDesc("p_weight"), array)
    return array


def by_constant(values):
    constant = mx.gluon.Constant("c", values)
    constant.initialize()
    return constant.data()


def by_assign(values):
    array = mx.nd.ones((3, 4))
    mx.operator.CustomOp().assign(array, "write", values)
    return array


def by_sparse(stype):
    def take(values):
        array = mx.nd.sparse.zeros(stype, (3, 4))
        array[:] = values
        return array
    return take


def first_batch(*arrays, **settings):
    return next(iter(mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(*arrays), 2, **settings)))


CONSUMERS = {
    "nd.array": mx.nd.array, "nd.array int32": lambda x: mx.nd.array(x, dtype="int32"), "nd.array own": lambda x: mx.nd.array(x, dtype=x.dtype),
    "nd.array of two": lambda x: mx.nd.array([x, x]), "np.array": mx.np.array, "np.array int32": lambda x: mx.np.array(x, dtype="int32"),
    "from_numpy": lambda x: mx.nd.from_numpy(x, zero_copy=False),
    "all": written(slice(None)), "all int32": written(slice(None), "int32"), "all float64": written(slice(None), "float64"),
    "rows": written(slice(1, 4), shape=(5, 4)), "strided": written(slice(None, None, 2), shape=(6, 4)), "reversed": written(slice(None, None, -1)),
    "advanced": written([2, 1, 0]), "one": written(1, shape=(2, 3, 4)), "np all": written(slice(None), create=mx.np.zeros),
    "np reversed": written(slice(None, None, -1), create=mx.np.zeros), "np advanced": written([2, 1, 0], create=mx.np.zeros),
    "index": lambda x: mx.nd.arange(24).reshape((12, 2))[x], "np index": lambda x: mx.np.arange(24).reshape((12, 2))[x],
    "np mask": lambda x: mx.np.arange(12).reshape((3, 4))[x], "full": lambda x: mx.nd.full((3, 4), x),
    "csr": mx.nd.sparse.csr_matrix, "csr parts": lambda x: mx.nd.sparse.csr_matrix((x[0][:3], [0, 1, 2], [0, 1, 2, 3]), shape=(3, 4)),
    "csr coordinates": lambda x: mx.nd.sparse.csr_matrix((x[0], (x[0], [0, 1, 2, 3])), shape=(12, 4)),
    "row_sparse": lambda x: mx.nd.sparse.row_sparse_array((x, [0, 2, 4]), shape=(5, 4)), "csr all": by_sparse("csr"),
    "row_sparse all": by_sparse("row_sparse"),
    "arg_dict": by_arg_dict, "forward": lambda x: executor().forward(x=x)[0], "NDArrayIter": lambda x: next(mx.io.NDArrayIter(x,
    batch_size=2)).data[0],
    "set_data": by_set_data, "initializer": by_initializer, "Load": by_load, "Constant": by_constant, "assign": by_assign,
    "DataLoader": first_batch, "DataLoader of threads": lambda x: first_batch(x, num_workers=1, thread_pool=True),
    "batchify": lambda x: mx.gluon.data.dataloader.default_mp_batchify_fn([x, x]),
    "split_and_load": lambda x: mx.nd.concat(*mx.gluon.utils.split_and_load(x, [mx.cpu(0), mx.cpu(0)], even_split=False), dim=0),
    "ColorNormalizeAug": lambda x: mx.image.ColorNormalizeAug(x, None)(mx.nd.ones((3, 4))),
    "concatenate": lambda x: mx.nd.concatenate([mx.nd.ones((3, 4)), x]),
}


def described(result):
    """The class, type, shape and values of a result."""
    return [type(result).__name__, np.dtype(result.dtype).name, list(result.shape), result.asnumpy().tolist()]
