"""The softmax loss over split classes: margins, gradients, sampled classes and predictions. Training on ranks: `test_sharded_checkpoint`."""
import math

import numpy as np
import pytest
import torch

import mxnet as mx
from job_checks import outputs
from mxnet.gluon.sharded_softmax import sample
from mxnet.gluon.utils import UsageError

NUMBERS = np.random.RandomState(0)
X, LABELS = NUMBERS.uniform(-1, 1, (6, 4)), [0, 6, 3, 3, 2, 5]
W = NUMBERS.uniform(-1, 1, (7, 4))
# The angle of sample 0 to its class is beyond pi - 0.5, and that of sample 1 is small.
X[0], X[1] = -W[0] + 0.1, W[6] + 0.1


def _layer(contexts=2, **options):
    layer = mx.gluon.nn.ShardedDense(7, in_units=4, use_bias=False, normalize=True, dtype="float64", **options)
    layer.initialize(ctx=[mx.cpu(i) for i in range(contexts)])
    layer.weight.set_data(mx.nd.array(W, dtype="float64"))
    return layer


def _expected(scale, angular, cosine):
    """Loss and gradients by torch, from the papers' formulas."""
    x, w = torch.tensor(X, requires_grad=True), torch.tensor(W, requires_grad=True)
    cos = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(w).t()
    own = cos[range(6), LABELS]
    turned = torch.where(own > math.cos(math.pi - angular), torch.cos(own.arccos() + angular), own - angular * math.sin(angular)) if angular else own
    logits = cos.clone()
    logits[range(6), LABELS] = turned - cosine
    loss = torch.nn.functional.cross_entropy(scale * logits, torch.tensor(LABELS), reduction="none")
    (loss * torch.arange(1, 7)).sum().backward()
    return loss.detach().numpy(), x.grad.numpy(), w.grad.numpy()


@pytest.mark.parametrize("contexts", [1, 2])
@pytest.mark.parametrize("scale, angular, cosine", [(1, 0, 0), (64, 0.5, 0), (64, 0, 0.35), (10, 0.3, 0.2)])
def test_margins(contexts, scale, angular, cosine):
    layer, x = _layer(contexts), mx.nd.array(X, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        loss = mx.gluon.loss.ShardedSoftmaxCELoss(scale, angular, cosine)(layer(x), mx.nd.array(LABELS))
    loss.backward(mx.nd.arange(1, 7, dtype="float64"))
    expected = _expected(scale, angular, cosine)
    found = loss, x.grad, mx.nd.concat(*layer.weight.list_grad(), dim=0)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-9, atol=1e-9)


def test_arcface_of_known_angles():
    layer = mx.gluon.nn.ShardedDense(2, in_units=2, use_bias=False, normalize=True)
    layer.initialize()
    layer.weight.set_data(mx.nd.array([[3, 0], [0, 2]]))
    logits = layer(mx.nd.array([[math.cos(math.pi / 6), math.sin(math.pi / 6)]]))
    # Angles of 30 and 60 degrees; with the margin 60 each.
    loss = mx.gluon.loss.ShardedSoftmaxCELoss(scale=64, angular_margin=math.pi / 6)(logits, mx.nd.array([0]))
    assert abs(loss.asscalar() - math.log(2)) < 1e-4
    assert logits.gather().asnumpy().round(4).tolist() == [[np.float32(0.866).item(), 0.5]]


def test_gradients_take_the_memory_of_the_last_ones():
    layer, x, loss = _layer(1), mx.nd.array(X, dtype="float64"), mx.gluon.loss.ShardedSoftmaxCELoss()
    where, gradients = [], []
    for times in 1, 1, 2:  # twice in one computation, too: the gradients add up
        with mx.autograd.record():
            losses = sum(loss(layer(x), mx.nd.array(LABELS)) for _ in range(times))
        losses.backward()
        where.append(torch.from_dlpack(layer.weight.grad().to_dlpack_for_read()).data_ptr())
        gradients.append(layer.weight.grad().asnumpy().copy())
    assert where[0] == where[1]
    np.testing.assert_array_equal(gradients[1], gradients[0])
    np.testing.assert_allclose(gradients[2], 2 * gradients[0])
    kept = layer.weight.grad()[1:3]  # somebody has a part of the last one, which stays
    with mx.autograd.record():
        losses = loss(layer(x), mx.nd.array(LABELS))
    np.testing.assert_allclose(mx.autograd.grad(losses, layer.weight.list_data(), retain_graph=False)[0].asnumpy(), gradients[0])
    np.testing.assert_array_equal(layer.weight.grad().asnumpy(), gradients[2])
    with mx.autograd.record():
        losses = loss(layer(x), mx.nd.array(LABELS))
    losses.backward()
    np.testing.assert_array_equal(layer.weight.grad().asnumpy(), gradients[0])
    assert kept.shape == (2, 4)


def test_batches_of_several_parts_and_a_bias():
    layer = mx.gluon.nn.ShardedDense(7, in_units=4)
    layer.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    layer.weight.set_data(mx.nd.array(W))
    layer.bias.set_data(mx.nd.arange(7) / 10)
    parts, labels = [mx.nd.array(X[:2], ctx=mx.cpu(0)), mx.nd.array(X[2:], ctx=mx.cpu(1))], mx.nd.array(LABELS)
    logits = layer(parts)
    with mx.autograd.record():
        losses = mx.gluon.loss.ShardedSoftmaxCELoss(weight=2)(layer(parts), [labels[:2], labels[2:]])
    mx.autograd.backward(losses)
    dense = torch.tensor(X @ W.T + np.arange(7) / 10, requires_grad=True)
    expected = 2 * torch.nn.functional.cross_entropy(dense, torch.tensor(LABELS), reduction="none")
    expected.sum().backward()
    assert [(loss.shape, loss.ctx) for loss in losses] == [((2,), mx.cpu(0)), ((4,), mx.cpu(1))]
    np.testing.assert_allclose(np.concatenate([loss.asnumpy() for loss in losses]), expected.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(np.concatenate([g.asnumpy() for g in layer.bias.list_grad()]), dense.grad.sum(0).numpy(), rtol=1e-4, atol=1e-6)
    assert [part.asnumpy().tolist() for part in logits.argmax()] == [dense[:2].argmax(1).tolist(), dense[2:].argmax(1).tolist()]
    values, classes = logits.topk(7)
    assert classes[1].asnumpy().tolist() == dense[2:].argsort(1, descending=True).tolist()
    np.testing.assert_allclose(values[1].asnumpy(), dense[2:].detach().sort(1, descending=True).values.numpy(), rtol=1e-5)


def test_sixteen_bit_features():
    layer = mx.gluon.nn.ShardedDense(7, in_units=4, dtype="float16")
    layer.initialize()
    layer.weight.set_data(mx.nd.array(W, dtype="float16"))
    with mx.autograd.record():
        loss = mx.gluon.loss.ShardedSoftmaxCELoss()(layer(mx.nd.array(X, dtype="float16")), mx.nd.array(LABELS))
    loss.backward()
    expected = torch.nn.functional.cross_entropy(torch.tensor(X @ W.T), torch.tensor(LABELS), reduction="none")
    assert loss.dtype is layer.weight.grad().dtype is np.float16
    np.testing.assert_allclose(loss.asnumpy(), expected.numpy(), rtol=5e-3)


@pytest.mark.parametrize("np_arrays", [False, True])
def test_float16_samples_and_classes_of_zeros_have_finite_gradients(np_arrays):
    layer = mx.gluon.nn.ShardedDense(7, in_units=4, use_bias=False, normalize=True, dtype="float16")
    layer.initialize()
    with mx.util.np_shape(np_arrays), mx.util.np_array(np_arrays):
        values = mx.np if np_arrays else mx.nd
        layer.weight.set_data(values.array(np.where(np.arange(7)[:, None] == 5, 0, W), dtype="float16"))
        x = values.array(np.where(np.arange(6)[:, None] == 2, 0, X), dtype="float16")
        x.attach_grad()
        with mx.autograd.record():
            loss = mx.gluon.loss.ShardedSoftmaxCELoss(scale=16)(layer(x), values.array(LABELS))
        loss.backward()
        assert np.isfinite(x.grad.asnumpy()).all() and np.isfinite(layer.weight.grad().asnumpy()).all()
        rows = torch.tensor(X[3:], requires_grad=True)
        weight = torch.nn.functional.normalize(torch.tensor(np.where(np.arange(7)[:, None] == 5, 0, W)))
        logits = 16 * torch.nn.functional.normalize(rows) @ weight.t()
        expected = torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS[3:]), reduction="none")
        expected.sum().backward()
        np.testing.assert_allclose(loss.asnumpy()[3:], expected.detach().numpy(), rtol=2e-2)
        np.testing.assert_allclose(x.grad.asnumpy()[3:], rows.grad.numpy(), rtol=5e-2, atol=5e-2)


def test_sample_weights():
    layer, x, loss = _layer(), mx.nd.array(X, dtype="float64"), mx.gluon.loss.ShardedSoftmaxCELoss(weight=2)
    labels, factors = mx.nd.array(LABELS), mx.nd.arange(6, dtype="float64")
    expected = loss(layer(x), labels).asnumpy() * np.arange(6)
    factors.attach_grad()
    for weights in factors, factors.reshape((6, 1)), [factors]:
        np.testing.assert_allclose(loss(layer(x), labels, weights).asnumpy(), expected)
    with mx.autograd.record():
        out = loss(layer(x), labels, factors.reshape((6, 1)))
    out.backward()
    np.testing.assert_allclose(factors.grad.asnumpy()[1:], (expected / np.arange(6).clip(1))[1:])
    np.testing.assert_allclose(loss(layer(x), labels, mx.nd.array([[3]], dtype="float64")).asnumpy()[1:], 3 * (expected / np.arange(6).clip(1))[1:])
    parts, labels = [x[:2], x[2:]], [labels[:2], labels[2:]]
    outs = loss(layer(parts), labels, [None, factors[2:].reshape((4, 1))])
    np.testing.assert_allclose(outs[1].asnumpy(), expected[2:])
    assert [out.shape for out in outs] == [(2,), (4,)]
    one = mx.nd.ones(1, dtype="float64")
    assert [out.shape for out in loss(layer(parts), labels, one)] == [(2,), (4,)]
    for weights, text in (([one], "a sample_weight for each of 2 parts of the batch expected, received 1"),
                        (factors, "a sample_weight for each of 2 parts of the batch expected, received 1"),
                        ([one, one, one], "a sample_weight for each of 2 parts of the batch expected, received 3"),
                        ([one, factors], r"sample_weight of shape \(4,\) or \(4, 1\) expected, received \(6,\)"),
                        ([one, mx.nd.ones(4)], "sample_weight of the features' type float64 expected, received float32; convert it with astype"),
                        (2, "sample_weight is an NDArray, or a list of them, received 2"),
                        ([one, np.ones(4)], "sample_weight is an NDArray, or a list of them, received an array of shape")):
        with pytest.raises(UsageError, match=text):
            loss(layer(parts), labels, weights)


# -- sampled classes -----------------------------------------------------------------------------------------------------------------


def test_samples_have_all_labels_and_no_class_twice():
    mx.random.seed(1)
    for _ in range(20):
        chosen = sample(100, 0.1, torch.tensor([99, 0, 7, 7])).tolist()
        assert len(set(chosen)) == 10 and chosen == sorted(chosen) and {0, 7, 99} <= set(chosen) <= set(range(100))
    assert sample(10, 0.1, torch.tensor([1, 3, 2])).tolist() == [1, 2, 3]
    counts = torch.zeros(50)
    for _ in range(400):
        counts[sample(50, 0.2, torch.tensor([0]))] += 1
    assert counts[0] == 400 and 40 < counts[1:].min() and counts[1:].max() < 115  # 73 expected


def _sampled_step(seed, momentum=0.9):
    mx.random.seed(seed)
    layer = _layer(2, sampled=0.4)
    trainer = mx.gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": momentum})
    before = layer.weight._reduce().asnumpy()
    rows = []
    for _ in range(2):
        with mx.autograd.record():
            loss = mx.gluon.loss.ShardedSoftmaxCELoss(scale=8)(layer(mx.nd.array(X[:2], dtype="float64")), mx.nd.array([0, 6]))
        loss.backward()
        rows.append([grad.indices.asnumpy().tolist() for grad in layer.weight.list_grad()])
        trainer.step(2)
    return rows, before, layer.weight._reduce().asnumpy(), loss.asnumpy()


def test_sampled_steps_are_repeatable_and_change_only_these_rows():
    rows, before, after, _ = _sampled_step(3)
    assert all(len(first) == 2 and 0 in first and len(second) == 2 and 3 in second for first, second in rows)
    drawn = {row for first, _ in rows for row in first} | {3 + row for _, second in rows for row in second}
    assert {row for row in range(7) if (before[row] != after[row]).any()} == drawn and len(drawn) < 7
    assert [_sampled_step(3)[0], (_sampled_step(3)[2] == after).all()] == [rows, True]
    assert any(_sampled_step(seed)[0] != rows for seed in range(4, 8))


def test_the_loss_of_sampled_classes_is_that_of_these_alone():
    mx.random.seed(3)
    layer = _layer(1, sampled=0.5)
    with mx.autograd.record():
        loss = mx.gluon.loss.ShardedSoftmaxCELoss()(layer(mx.nd.array(X, dtype="float64")[:2]), mx.nd.array([0, 6]))
    loss.backward()
    chosen = layer.weight.grad().indices.asnumpy().tolist()
    x, w = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (X[:2], W))
    expected = torch.nn.functional.cross_entropy(torch.tensor(x @ w[chosen].T), torch.tensor([chosen.index(0), chosen.index(6)]), reduction="none")
    np.testing.assert_allclose(loss.asnumpy(), expected.numpy(), rtol=1e-9)
    assert len(chosen) == 4
    whole = mx.gluon.loss.ShardedSoftmaxCELoss()(layer(mx.nd.array(X, dtype="float64")[:2]), mx.nd.array([0, 6]))  # not in training
    np.testing.assert_allclose(whole.asnumpy(), torch.nn.functional.cross_entropy(torch.tensor(x @ w.T), torch.tensor([0, 6]),
                                                                                 reduction="none").numpy(), rtol=1e-9)


def test_sampling_on_two_ranks():
    found = outputs("""
        from mxnet import gluon, nd
        def run(seed):
            mx.random.seed(seed)
            layer = gluon.nn.ShardedDense(40, in_units=3, use_bias=False, normalize=True, sampled=0.2)
            layer.initialize()
            trainer = gluon.Trainer(layer.collect_params(), 'sgd', {'learning_rate': 0.1}, kvstore='dist_sync')
            labels = [[1, 22], [3, 38]][kv.rank]
            with mx.autograd.record():
                loss = gluon.loss.ShardedSoftmaxCELoss(scale=16, angular_margin=0.5)(layer(nd.ones((2, 3)) * (1 + kv.rank)), nd.array(labels))
            loss.backward()
            trainer.step(4)
            return layer.weight.grad().indices.asnumpy().tolist()
        rows = run(5)
        print(len(rows), set([[1, 3], [2, 18]][kv.rank]) <= set(rows), run(5) == rows, run(6) == rows)
        try:
            layer = gluon.nn.ShardedDense(40, in_units=3)
            layer.initialize()
            gluon.loss.ShardedSoftmaxCELoss()(layer(nd.ones((1, 3))), nd.array([40 + kv.rank if kv.rank else 0]))
        except mx.MXNetError as error:
            print(str(error).split(': ')[1])
    """, kind="dist_sync")
    assert found == [["4 True True False", "labels are classes from 0 to 39, received 41"]] * 2


# -- errors --------------------------------------------------------------------------------------------------------------------------


def test_errors():
    layer, x, loss = _layer(), mx.nd.array(X, dtype="float64"), mx.gluon.loss.ShardedSoftmaxCELoss
    with pytest.raises(UsageError, match="labels are classes from 0 to 6, received -1"):
        loss()(layer(x), mx.nd.array([0, 1, 2, 3, 4, -1]))
    with pytest.raises(UsageError, match=r"a label for each of \[6\] samples expected, received arrays of shape \[\(2,\)\]"):
        loss()(layer(x), mx.nd.array([0, 1]))
    with pytest.raises(UsageError, match="the result of a ShardedDense expected, received NDArray; SoftmaxCELoss is for arrays"):
        loss()(x, mx.nd.array(LABELS))
    plain = mx.gluon.nn.ShardedDense(7, in_units=4, dtype="float64")
    plain.initialize()
    with pytest.raises(UsageError, match="margins are for cosines; make the ShardedDense with normalize=True"):
        loss(cosine_margin=0.1)(plain(x), mx.nd.array(LABELS))
    for options, text in (({"scale": 0}, "scale is a number above 0, received 0"), ({"angular_margin": 4}, "angular_margin is a number from 0 to pi"),
                          ({"cosine_margin": -1}, "cosine_margin is a number from 0 on, received -1"), ({"scale": "a"}, "scale is a number"),
                          ({"cosine_margin": None}, "cosine_margin is a number from 0 on, received None"),
                          ({"weight": "x"}, "weight is a number, or None, received 'x'")):
        with pytest.raises(UsageError, match=text):
            loss(**options)
    for labels, number in ([0, 1, math.nan, 3, 4, 5], "nan"), ([0, 1, 2, 3, math.inf, 5], "inf"):
        with pytest.raises(UsageError, match=f"labels are classes from 0 to 6, received {number}"):
            loss()(layer(x), mx.nd.array(labels))
    for labels in np.array(LABELS), [], LABELS:
        with pytest.raises(UsageError, match="labels of a ShardedSoftmaxCELoss: an NDArray expected, or a list of them"):
            loss()(layer(x), labels)
    with pytest.raises(UsageError, match="topk: k must be from 1 to 7, the number of classes, received 8"):
        layer(x).topk(8)
    with mx.autograd.record():
        with pytest.raises(mx.MXNetError, match="gather has no gradient: call it outside of autograd.record()"):
            layer(x).gather()
        found = loss()(layer(x), mx.nd.array(LABELS))
    found.backward(retain_graph=True)
    with pytest.raises(mx.MXNetError, match="it is computed once, in the memory of the logits"):
        found.backward()


def test_differences_between_ranks_are_errors_on_all_of_them():
    """Without the check Gloo ends a rank with SIGABRT, or the ranks compute different losses."""
    found = outputs("""
        from mxnet import gluon, nd
        second, Loss = kv.rank == 1, gluon.loss.ShardedSoftmaxCELoss
        def call(loss=Loss(), units=7, width=3, dtype='float32', features=None, labels=(1, 2), weights=None, predict=None, **options):
            layer = gluon.nn.ShardedDense(units, dtype=dtype, prefix='head_', **options)
            x = nd.ones((2, width), dtype=features or dtype)
            try:
                layer.initialize()
                with mx.autograd.pause() if predict else mx.autograd.record():
                    logits = layer(x)
                    loss(logits, nd.array(labels), weights) if not predict else logits.topk(predict)
            except mx.MXNetError as error:
                text = str(error)
                print(type(error).__name__, text[text.find('same: ') + 6 if 'same: ' in text else 0:].removesuffix(
                    '. All ranks make the same calls in the same order, with the same arguments'))
            else:
                print('no error')
        call(dtype='float16' if second else 'float32')
        call(width=4 if second else 3)
        call(units=8 if second else 7)
        call(use_bias=False, normalize=second)
        call(sampled=0.5 if second else 1)
        call(Loss(scale=2 if second else 1))
        call(Loss(cosine_margin=0.5 if second else 0), use_bias=False, normalize=True)
        call(predict=1 + second)
        call(features='float64' if second else None)
        call(features='float64' if second else None, in_units=3)
        call(width=4 if second else 3, in_units=3)
        call(weights=nd.ones(3) if second else nd.ones(2))
        call(labels=(1, 2, 3) if second else (1, 2))
        call(labels=(1, float('nan')) if second else (1, 2))
    """, kind="dist_sync")
    differences = [("dtype", "float32", "float16"), ("shape", [7, 3], [7, 4]), ("shape", [7], [8]), ("normalize", False, True),
                   ("sampled (1 outside of training)", 1.0, 0.5), ("scale", 1.0, 2.0), ("cosine_margin", 0.0, 0.5), ("k", 1, 2)]
    convert = "dense features of the layer's type float32 expected, received float64; convert them with astype, or the layer with cast"
    failures = [("initialize of head_weight", f"head: {convert}"), ("the loss of head_weight", f"head: {convert}"),
                ("the loss of head_weight", "head: features of shape (batch, 3) expected, received (2, 4)"),
                ("the loss of head_weight", "ShardedSoftmaxCELoss: sample_weight of shape (2,) or (2, 1) expected, received (3,)"),
                ("the loss of head_weight", "ShardedSoftmaxCELoss: a label for each of [2] samples expected, received arrays of shape [(3,)]")]
    label = "the loss of head_weight: labels are classes from 0 to 6, received nan"
    for rank, lines in enumerate(found):
        assert lines[:8] == [f"MXNetError {name} is {(a, b)[rank]} on worker {rank} and {(b, a)[rank]} on worker {1 - rank}"
                             for name, a, b in differences]
        assert lines[8:13] == [f"UsageError {text}" if rank else f"MXNetError {doing}: worker 1 has failed with the error: {text}"
                               for doing, text in failures]
        assert lines[13:] == [f"UsageError {label}"]
