import numpy as np

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.model_zoo.vision import _blocks


def test_a_classifier_scores_what_its_features_make():
    net = _blocks.Classifier()
    net.features, net.output = nn.HybridLambda(lambda F, x: x * 2), nn.HybridLambda(lambda F, x: x + 1)
    for hybridize in (False, True):
        net.hybridize(hybridize)
        assert net(mx.nd.array([1, 2])).asnumpy().tolist() == [3, 5]


def test_branches_are_joined_along_the_channels():
    block = _blocks.side_by_side(nn.HybridLambda(lambda F, x: x), _blocks.chain(nn.HybridLambda(lambda F, x: -x), _blocks.relu()))
    assert block(mx.nd.array([[1, -2]])).asnumpy().tolist() == [[1, -2, 0, 2]]


def test_activations_of_both_kinds_of_arrays():
    assert _blocks.activate(mx.nd, mx.nd.array([-1, 2])).asnumpy().tolist() == [0, 2]
    with mx.util.np_array(True):
        found = _blocks.activate(mx, mx.np.array([-1, 2]))
    assert type(found) is mx.np.ndarray and found.asnumpy().tolist() == [0, 2]


def test_parts_share_the_names_of_what_is_around_them():
    with mx.name.NameManager():
        chain = _blocks.chain(nn.Dense(1), nn.Dense(2))
        assert [p.name for p in chain.collect_params().values()][:2] == ["dense0_weight", "dense0_bias"]


def test_convolutions_keep_the_size_but_for_the_stride():
    for stride, size in ((1, 6), (2, 3)):
        layer = _blocks.conv3x3(4, stride, 2)
        layer.initialize()
        assert layer(mx.nd.ones((1, 2, 6, 6))).shape == (1, 4, size, size) and layer.bias is None


def test_constructors_fix_some_arguments():
    def get_thing(layers, width, classes=1, norm=False):
        return layers, width, classes, norm

    made = _blocks.named("thing18", "A thing", get_thing, 18, 2, norm=True)
    assert made(classes=5) == (18, 2, 5, True) and made(norm=False) == (18, 2, 1, True)
    assert made.__name__ == "thing18" and made.__doc__.startswith("A thing; see `get_thing` for the parameters.\n\n    Example\n")


def test_nothing_is_drawn_while_networks_are_built():
    mx.random.seed(3)
    first = mx.nd.random.uniform(shape=(2,)).asnumpy()
    mx.random.seed(3)
    _blocks.conv3x3(4, 1, 2)
    np.testing.assert_array_equal(mx.nd.random.uniform(shape=(2,)).asnumpy(), first)
