"""Files that say how far data are, and checkpoints that keep them."""
import base64
import json
import random

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.base import MXNetError


def shuffled(size=12):
    return mx.io.NDArrayIter(np.arange(size, dtype=np.float32), batch_size=2, shuffle=True)


def values(it):
    return [batch.data[0].asnumpy().tolist() for batch in it]


def test_the_rest_of_an_epoch_and_the_next_one_are_those_of_a_run_without_a_break(tmp_path):
    np.random.seed(3)
    whole = shuffled()
    whole.next()
    mx.io.save_position(tmp_path / "a.data", whole)
    expected = values(whole)
    whole.reset()
    expected += values(whole)
    np.random.seed(4)
    resumed = shuffled()
    mx.io.load_position(tmp_path / "a.data", resumed)
    found = values(resumed)
    resumed.reset()
    assert found + values(resumed) == expected and len(expected) == 5 + 6


def test_after_an_epoch_the_next_one_follows(tmp_path):
    np.random.seed(3)
    whole = shuffled()
    whole.next()
    mx.io.save_position(tmp_path / "a.data", whole, epoch_over=True)
    whole.reset()
    np.random.seed(4)
    resumed = shuffled()
    mx.io.load_position(tmp_path / "a.data", resumed)
    assert values(resumed) == values(whole)


def test_random_numbers_go_on(tmp_path):
    def drawn():
        uniform, order = mx.nd.random.uniform(shape=2), mx.nd.random.shuffle(mx.nd.arange(9))
        return np.random.rand(), random.random(), uniform.asnumpy().tolist(), order.asnumpy().tolist()
    it = shuffled()
    mx.random.seed(5)
    mx.nd.random.uniform(shape=3)
    mx.io.save_position(tmp_path / "a.data", it)
    expected = drawn()
    mx.random.seed(6)
    mx.io.load_position(tmp_path / "a.data", it)
    assert drawn() == expected


def test_iterators_of_files_and_around_others(tmp_path):
    np.savetxt(tmp_path / "a.csv", np.arange(10))

    def made():
        return mx.io.ResizeIter(mx.io.CSVIter(data_csv=str(tmp_path / "a.csv"), data_shape=(1,), batch_size=2), 7)
    it = made()
    for _ in range(6):  # into the second pass over the file
        it.next()
    mx.io.save_position(tmp_path / "a.data", it)
    again = made()
    mx.io.load_position(tmp_path / "a.data", again)
    assert again.next().data[0].asnumpy().ravel().tolist() == it.next().data[0].asnumpy().ravel().tolist() == [2, 3]
    assert not again.iter_next()
    with pytest.raises(MXNetError, match="a.data belongs to other data, or to other arguments of a MXDataIter: load_state: "):
        mx.io.load_position(tmp_path / "a.data", made().data_iter)


def test_what_has_no_state_is_refused(tmp_path):
    with pytest.raises(MXNetError, match=r"an iterator with state\(\) and load_state\(\) expected, received PrefetchingIter; NDArrayIter"):
        mx.io.save_position(tmp_path / "a.data", mx.io.PrefetchingIter(shuffled()))

    class Odd:
        def state(self):
            return {"array": np.arange(2)}

        load_state = state
    with pytest.raises(MXNetError, match=r"state\(\) of a Odd is not of dicts, lists, texts, numbers and None: Object of type ndarray"):
        mx.io.save_position(tmp_path / "a.data", Odd())
    assert not (tmp_path / "a.data").exists()


def far_off(state):
    """The state of our generators, whose single one is behind its last word."""
    words = np.frombuffer(base64.b64decode(state), np.uint32).copy()
    words[-2 * 640 + 624] = 2**32 - 1
    return base64.b64encode(words.tobytes()).decode()


@pytest.mark.parametrize("change", [
    lambda c: [], lambda c: {**c, "format": "another"}, lambda c: {"format": c["format"]}, lambda c: {**c, "generators": {}},
    lambda c: {**c, "generators": {**c["generators"], "cpu": "00"}},
    lambda c: {**c, "generators": {**c["generators"], "cpu": c["generators"]["cpu"][:5000]}},
    lambda c: {**c, "generators": {**c["generators"], "numpy": ["MT19937", "", 0, 0, 0.0]}},
    lambda c: {**c, "generators": {**c["generators"], "python": [3, [1, 2], None]}},
    # Positions beside the 624 words of a generator, from which NumPy would read on.
    lambda c: {**c, "generators": {**c["generators"], "numpy": [*c["generators"]["numpy"][:2], 2**31 - 1, 0, 0.0]}},
    lambda c: {**c, "generators": {**c["generators"], "numpy": [*c["generators"]["numpy"][:2], -1, 0, 0.0]}},
    lambda c: {**c, "generators": {**c["generators"], "cpu": far_off(c["generators"]["cpu"])}},
])
def test_other_contents_are_refused_and_change_nothing(tmp_path, change):
    it = shuffled()
    mx.io.save_position(tmp_path / "a.data", it)
    content = json.loads((tmp_path / "a.data").read_text())
    (tmp_path / "a.data").write_text(json.dumps(change(content)))
    it.next()
    np.random.seed(2)
    before, state = random.getstate(), it.state()
    with pytest.raises(MXNetError, match=r"a.data is not a file of mx.io.save_position: "):
        mx.io.load_position(tmp_path / "a.data", it)
    assert random.getstate() == before and it.state() == state and np.random.randint(1000) == 168


def test_damaged_and_missing_files(tmp_path):
    (tmp_path / "a.data").write_bytes(b"\xff{")
    with pytest.raises(MXNetError, match=r"a.data is not a file of mx.io.save_position: "):
        mx.io.load_position(tmp_path / "a.data", shuffled())
    with pytest.raises(MXNetError, match="absent.data"):
        mx.io.load_position(tmp_path / "absent.data", shuffled())
    mx.io.save_position(tmp_path / "a.data", shuffled(6))
    with pytest.raises(MXNetError, match="a.data belongs to other data, or to other arguments of a NDArrayIter: load_state: "):
        mx.io.load_position(tmp_path / "a.data", shuffled())


@pytest.mark.filterwarnings("ignore:init_params has no effect")
def test_a_module_resumed_from_a_checkpoint_sees_what_it_would_have_seen(tmp_path):
    net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc"), name="softmax")
    options = {"initializer": mx.init.One(), "optimizer_params": {"learning_rate": 0.01, "momentum": 0.9}, "kvstore": None}

    def data():
        x = np.random.RandomState(1).rand(12, 2).astype(np.float32)
        return mx.io.NDArrayIter(x, x.sum(1) ** 2, 4, shuffle=True)
    np.random.seed(3)
    whole, train = mx.mod.Module(net), data()
    prefix = str(tmp_path / "net")
    whole.fit(train, num_epoch=4, epoch_end_callback=mx.callback.module_checkpoint(whole, prefix, 2, True, data=train), **options)
    np.random.seed(4)
    resumed, train = mx.mod.Module.load(prefix, 2, load_optimizer_states=True), data()
    mx.io.load_position(f"{prefix}-0002.data", train)
    resumed.fit(train, begin_epoch=2, num_epoch=4, **options)
    assert (resumed.get_params()[0]["fc_weight"] == whole.get_params()[0]["fc_weight"]).asnumpy().all()
    assert sorted(p.name for p in tmp_path.glob("*.data")) == ["net-0002.data", "net-0004.data"]


def test_a_loader_broken_off_goes_on_or_begins_anew(tmp_path):
    def made():
        return gluon.data.DataLoader(list(range(8)), 2, shuffle=True, last_batch="rollover")
    np.random.seed(3)
    loader = made()
    for _ in loader:
        mx.io.save_position(tmp_path / "rest.data", loader)
        mx.io.save_position(tmp_path / "next.data", loader, epoch_over=True)
        break
    state = loader.state()
    for name, count in (("rest", 3), ("next", 4)):
        other = made()
        mx.io.load_position(tmp_path / f"{name}.data", other)
        batches = [batch.asnumpy().tolist() for batch in other]
        assert len(batches) == count and (batches == state["batches"]) == (name == "rest")


@pytest.mark.parametrize("change", [
    {"cursor": "0"}, {"cursor": True}, {"cursor": -10**6}, {"rest": [99]}, {"rest": [[1]]}, {"rest": None}, {"rest": [0, 1, 2]}, {"idx": [0] * 12},
    {"order": [None] * 12}])
def test_an_iterator_refuses_what_was_never_its_state(change):
    it = shuffled()
    state = it.state()
    with pytest.raises(MXNetError, match="load_state: what `state\\(\\)` of an NDArrayIter over 12 examples with shuffle=True returned is expected"):
        it.load_state({**state, **change})
    assert it.state() == state


@pytest.mark.parametrize("change", [{"begun": "x"}, {"begun": -1}, {"last": [0, 0]}, {"last": [0, 0, 1e9]}, {"taken": 1 << 70}, {"taken": None}])
def test_iterators_of_files_refuse_what_was_never_their_state(tmp_path, change):
    with mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "w") as records:
        for i in range(4):
            records.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, i, i, 0), np.zeros((4, 4, 3), np.uint8)))
    np.savetxt(tmp_path / "a.csv", np.arange(10))
    for it in (mx.io.ImageRecordIter(path_imgrec=str(tmp_path / "a.rec"), data_shape=(3, 4, 4), batch_size=2),
               mx.io.CSVIter(data_csv=str(tmp_path / "a.csv"), data_shape=(1,), batch_size=2)):
        with pytest.raises(MXNetError, match="load_state: what `state\\(\\)` of such an iterator returned is expected"):
            it.load_state({**it.state(), **change})
        assert it.next().label[0].shape == (2,)


@pytest.mark.parametrize("state", [{"batches": [3], "rolled_over": []}, {"batches": None, "rolled_over": 3}, {"batches": "01", "rolled_over": []}])
def test_a_loader_refuses_what_was_never_its_state(state):
    with pytest.raises(MXNetError, match="load_state: what `state\\(\\)` of a DataLoader returned is expected"):
        gluon.data.DataLoader(list(range(6)), batch_size=2).load_state(state)


def test_files_of_the_first_format_are_read(tmp_path):
    data = mx.io.NDArrayIter(mx.nd.arange(6), batch_size=2)
    mx.random.seed(3)
    mx.nd.random.uniform(shape=(5000,))
    data.next()
    mx.io.save_position(tmp_path / "a", data)
    expected = mx.nd.random.uniform(shape=(3,)).asnumpy()
    content = json.loads((tmp_path / "a").read_text())
    assert content["format"] == "remex data position 2"
    content["format"] = "remex data position 1"
    generators = content["generators"]
    generators["numpy"][1], generators["cpu"] = (base64.b85encode(base64.b64decode(text)).decode() for text in (
        generators["numpy"][1], generators["cpu"]))
    (tmp_path / "a").write_text(json.dumps(content))
    mx.io.load_position(tmp_path / "a", data)
    assert (mx.nd.random.uniform(shape=(3,)).asnumpy() == expected).all()
