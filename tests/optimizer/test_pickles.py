import base64
import json
import pathlib
import pickle
import resource

import numpy as np
import pytest

import mxnet as mx
from mxnet.optimizer import pickles


class Own(mx.lr_scheduler.LRScheduler):
    def __call__(self, num_update):
        return 7.0


class Stranger:
    pass


def test_what_is_ours_is_read():
    data = {"a": mx.nd.array([1, 2]), "b": (np.arange(3), 1.5, None, "text"), "c": mx.optimizer.SGD(lr_scheduler=Own()),
            "d": np.float32(2), "e": mx.cpu(1)}
    found = pickles.loads(pickle.dumps(data))
    assert found["a"].asnumpy().tolist() == [1, 2]
    assert found["b"][0].tolist() == [0, 1, 2] and found["b"][1:] == (1.5, None, "text")
    assert found["c"].learning_rate == 7.0
    assert found["d"] == np.float32(2) and found["e"] == mx.cpu(1)


@pytest.mark.parametrize("stranger, name", [(Stranger(), "Stranger"), (mx.optimizer.create, "Optimizer.create_optimizer"), (mx.nd.save, "save")])
def test_strangers_are_refused(stranger, name):
    with pytest.raises(mx.MXNetError, match=f"x.states is refused: it holds .*{name}"):
        pickles.loads(pickle.dumps(stranger), "x.states")


def test_modules_are_not_imported_for_a_file():
    import sys
    sys.modules.pop("this", None)
    with pytest.raises(mx.MXNetError, match="it holds this.c"):
        pickles.loads(b"cthis\nc\n.")
    assert "this" not in sys.modules


# -- what MXNet 1.9.1 wrote ------------------------------------------------------------------------------------------

WRITTEN = {name: base64.b64decode(text) for name, text in
           json.loads((pathlib.Path(__file__).parents[1] / "data" / "states-1.9.1.json").read_text()).items()}


@pytest.mark.parametrize("name", [n for n in WRITTEN if not n.startswith("values")])
def test_states_of_mxnet_load_and_training_goes_on(name):
    updater = mx.optimizer.get_updater(mx.optimizer.create(name.split("-")[0] if "protocol" not in name else "ftml", **(
        {"momentum": 0.9, "multi_precision": True} if name == "sgd-0" else {})))
    updater.set_states(WRITTEN[name])
    if name != "sgd-0":
        assert updater.optimizer.num_update == 1 and updater.optimizer.lr == pytest.approx(0.1)
    weight = mx.nd.array([1, 2], dtype="float16" if name.startswith("sgd") else "float32")
    updater(0, mx.nd.ones_like(weight), weight)
    assert np.isfinite(weight.asnumpy()).all() and (weight.asnumpy() != [1, 2]).any()


@pytest.mark.parametrize("name", ["values-0", "values-2", "values-4"])
def test_values_of_mxnet_in_every_protocol(name):
    floats, scalar, context, nothing, columns, bools, one, two, raw = pickles.loads(WRITTEN[name])[0]
    assert floats.tolist() == [0, 1, 2] and floats.dtype == np.float32 and scalar == 2.0 and context == mx.cpu() and nothing is None
    assert columns.shape == (2, 3) and columns.flags.f_contiguous and bools.tolist() == [True, False]
    assert (one, two, raw) == ({1}, frozenset([2]), b"\xff\x00")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_ours(protocol):
    values = [np.array([1, 2], ">i4"), np.zeros((0, 3)), np.float16(3), np.array(5), {(1, 2): 3}, bytearray(b"a"), 1j, np.float32, b"",
              mx.nd.ones((2, 3)), mx.np.ones((2,)), mx.nd.array([[1, 0], [0, 0]]).tostype("csr"), mx.nd.array([[1, 0], [0, 0]]).tostype("row_sparse")]
    for value, found in zip(values, pickles.loads(pickle.dumps(values, protocol))):
        assert type(found) is type(value)
        if isinstance(value, mx.nd.NDArray):
            value, found = value.asnumpy(), found.asnumpy()
        assert np.array_equal(found, value) and getattr(found, "dtype", None) == getattr(value, "dtype", None)


# -- forged ones -----------------------------------------------------------------------------------------------------

def forged(*instructions):
    return b"\x80\x04" + b"".join(instructions) + b"."


def name_of(module, name):
    return f"c{module}\n{name}\n".encode()


def text(value):
    return b"\x8c" + bytes([len(value)]) + value.encode()


DTYPE = name_of("numpy", "dtype") + text("f8") + b"\x89\x88\x87R"  # before its state
PLAIN = b"(K\x03" + text("<") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
EMPTY = name_of("numpy.core.multiarray", "_reconstruct") + name_of("numpy", "ndarray") + b"K\x00\x85C\x01b\x87R"
SGD = name_of("mxnet.optimizer.optimizer", "SGD") + b")\x81"
OBJECTS = name_of("numpy", "dtype") + text("O8") + b"\x89\x88\x87R"


@pytest.mark.parametrize("data, message", [
    # A type that says of itself that it holds no objects, and does.
    (forged(DTYPE, b"(K\x03", text("<"), b"N", text("a"), b"\x85}", text("a"), OBJECTS, b"K\x00\x86sK\x08K\x01K\x1btb"),
     "O8.* is no type of numbers"),
    (forged(DTYPE, b"(K\x03", text("<"), b"N", text("a"), b"\x85NK\x08K\x01K\x1btb"),
     "state of float64 is not that of a type of numbers, received a tuple"),
    (forged(OBJECTS), "no type of numbers"),
    # Bytes of the file as pointers.
    (forged(name_of("numpy.core.numeric", "_frombuffer"), b"(C\x08", b"A" * 8, OBJECTS, b"K\x01\x85", text("C"), b"tR"), "no type of numbers"),
    (forged(name_of("numpy.core.numeric", "_frombuffer"), b"(C\x08", b"A" * 8, DTYPE, b"K\x01\x85", text("C"), b"tR"),
     "an array has a type of numbers, received another value"),
    (forged(name_of("numpy.core.numeric", "_frombuffer"), b"(C\x08", b"A" * 8, DTYPE, PLAIN, b"K\x02\x85", text("C"), b"tR"),
     "does not have the bytes"),
    # More memory than the file has bytes.
    (forged(name_of("builtins", "bytearray"), b"\x8a\x05\x00\x00\x00\x00\x04\x85R"), "a bytearray is made of bytes"),
    (forged(name_of("builtins", "bytes"), b"\x8a\x05\x00\x00\x00\x00\x04\x85R"), "only empty bytes"),
    (forged(name_of("numpy", "ndarray"), b"\x8a\x06\x00\x00\x00\x00\x00\x01\x85\x85R"), "numpy.ndarray is not called"),
    (forged(name_of("numpy", "float64"), b"K\x01\x85R"), "float64 is not called"),
    (forged(EMPTY, b"(K\x01(\x8a\x06\x00\x00\x00\x00\x00\x01t", DTYPE, PLAIN, b"\x89C\x00tb"), "does not have the bytes"),
    (forged(b"](C\xff" + b"x" * 255 + b"\x94", (name_of("builtins", "bytearray") + b"h\x00\x85R") * 4000, b"e"), "more memory"),
    (forged(b"\x8b\x00\x00\x00\x7f", b"x"), "not enough data|expected"),
    (forged(b"r\xff\xff\xff\x7f"), "near byte"),
    (forged(b"Nr\xff\xff\xff\x7f"), None),  # Python's own unpickler would reserve 16 GB for its memo
    (forged(b"\x8e", (1 << 60).to_bytes(8, "little"), b"x"), "not enough data|expected"),
    # Arrays that are used before they are complete, or never are.
    (forged(EMPTY), "before its object is complete"),
    (forged(EMPTY, b"2\x86"), "before it is complete"),
    (forged(EMPTY, b"q\x00h\x00\x86"), "before it is complete"),
    (forged(name_of("numpy.core.multiarray", "_reconstruct"), name_of("mxnet.nd", "x")), "is refused: it holds mxnet.nd.x"),
    # Objects with a state that none of them has.
    (forged(SGD, b"}b"), "SGD's `rescale_grad` is missing"),
    (forged(SGD, b"}", text("update"), b"K\x01sb"), "'update' is no attribute"),
    (forged(SGD, b"}", text("__class__"), b"K\x01sb"), "'__class__' is no attribute"),
    (forged(SGD, b"}K\x01K\x01sb"), "1 is no attribute"),
    (forged(SGD, b"K\x01b"), "the state of a SGD is a dict"),
    (forged(SGD, b"N}", text("lr"), b"K\x01s\x86b"), "the state of a SGD is a dict"),
    (forged(name_of("mxnet.optimizer", "SGD"), b"K\x01\x85R"), "SGD is called with arguments"),
    (forged(name_of("mxnet.optimizer", "SGD"), b"K\x01\x85\x81"), "an object starts empty"),
    (forged(name_of("mxnet.lr_scheduler", "FactorScheduler"), b")\x81}b"), "FactorScheduler's `base_lr` is missing"),
    (forged(name_of("mxnet.ndarray", "NDArray"), b"K\x05\x85R"), "NDArray is called with arguments"),
    (forged(name_of("mxnet.ndarray", "NDArray"), b"N\x85R}b"), "the state of an array is a dict"),
    (forged(name_of("mxnet.ndarray", "NDArray"), b"N\x85R}", text("handle"), b"K\x01sb"), "the state of an array is a dict"),
    (forged(name_of("mxnet.ndarray", "NDArray"), b"N\x85R}", text("handle"), b"C\x04abcdsb"), "pickled NDArray: not a valid NDArray file"),
    (forged(name_of("mxnet.context", "Context"), text("moon"), b"\x85R"), "byte"),
    (forged(b"}}b"), "a dict has no state"),
    # The memo and the stack.
    (forged(b"0"), "near byte"), (forged(b"2"), "near byte"), (forged(b"h\x07"), "near byte"), (forged(b"e"), "near byte"),
    (forged(b"((\x86"), "a tuple of 2 items lacks some: 0 objects are there"),
    (forged(b"](e0"), "before its object is complete"), (forged(b"NN"), "before its object is complete"), (b"", "byte 0 of 0"),
    (b"\x80\x04N", "byte"),
    (forged(b"K\x01K\x02a"), "a list should stand here"), (forged(b"(K\x01u"), "a key has no value"),
    (forged(b"ccopyreg\n_reconstructor\ncmxnet.optimizer\nSGD\ncmxnet.optimizer\nAdam\nN\x87R"), "an object starts empty"),
    (forged(b"P1\n"), "instruction PERSID"), (forged(b"\x97"), "instruction NEXT_BUFFER"), (forged(b"\x82\x01"), "instruction EXT1"),
    # Lists that are small in the file, and large for whoever walks over them.
    (forged(b"]\x94h\x00a"), "a list that holds itself"),
    (forged(b")", b"\x85" * 40), "nested 33 deep, at most 32 are expected"),
    (forged(b")", b"\x85" * 100_000), "nested 33 deep, at most 32 are expected"),
    (forged(b")", b"2\x86" * 25), r"unfold to 131071 entries, more than a file of its length can hold \(65752\)"),
    (forged(b"}", b")" + b"2\x86" * 60, b"K\x01s"), "tuple stands where a name or number should"),
    (forged(b"}(", b"(" + b"K\x01" * 3000 + b"t\x94", b"Nh\x00" * 3000, b"Nu"), "more memory"),
    (forged(b"\x8b", (4000).to_bytes(4, "little"), b"\x7f" * 4000), "an integer has 31999 bits, at most 64 are expected"),
])
def test_forged_pickles_are_refused(data, message):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if message is None:
        assert pickles.loads(data) is None
    else:
        with pytest.raises(mx.MXNetError, match=message):
            pickles.loads(data, "x.states")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def state_of(optimizer, **changes):
    found = optimizer.__getstate__()
    found.update(changes)
    return forged(SGD, pickle.dumps(found, 4)[2:-1], b"b")


@pytest.mark.parametrize("changes, message", [
    ({"lr": "a"}, "`lr` is missing or of another type"), ({"lr_scheduler": 1}, "`lr_scheduler`"), ({"aggregate_num": "4"}, "`aggregate_num`"),
    ({"idx2name": [1]}, "`idx2name`"), ({"momentum": [1]}, "`momentum` is no number"), ({"lr_mult": {"a": "b"}}, "multipliers"),
    ({"_index_update_count": {0: "a"}}, "numbers of updates")])
def test_an_optimizer_of_other_types_is_refused(changes, message):
    good = mx.optimizer.SGD(momentum=0.9)
    assert pickles.loads(state_of(good)).momentum == 0.9
    with pytest.raises(mx.MXNetError, match=message):
        pickles.loads(state_of(good, **changes))


def test_only_bytes_are_read():
    with pytest.raises(mx.MXNetError, match="x must be bytes, received int"):
        pickles.loads(5, "x")
