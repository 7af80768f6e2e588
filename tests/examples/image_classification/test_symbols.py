import zlib
from importlib import import_module

import numpy as np
import pytest

import mxnet as mx

# From MXNet 1.9.1's own example networks with 10 classes: how many arguments and auxiliary states they have, and the CRC-32 of
# their names and shapes, for one image of that shape.
PARAMETERS = [
    ("mlp", "1,28,28", {}, (8, 0x7896bcac)),
    ("lenet", "1,28,28", {}, (10, 0x1a79b811)),
    ("lenet", "1,28,28", {"add_stn": True}, (16, 0x5952dbb3)),
    ("alexnet", "3,224,224", {}, (18, 0x79cbdc35)),
    ("googlenet", "3,224,224", {}, (118, 0x1768e7aa)),
    ("vgg", "3,224,224", {"num_layers": 11}, (24, 0x64abdd07)),
    ("vgg", "3,224,224", {"num_layers": 19, "batch_norm": True}, (104, 0x2fc86a4e)),
    ("inception-bn", "3,224,224", {}, (418, 0xfd724fb5)),
    ("inception-bn", "3,28,28", {}, (118, 0x43953a90)),
    ("inception-v3", "3,299,299", {}, (474, 0x77853d70)),
    ("inception-v4", "3,299,299", {}, (749, 0x2d42cb4a)),
    ("inception-resnet-v2", "3,299,299", {}, (1468, 0x75e22fe0)),
    ("mobilenet", "3,224,224", {}, (139, 0x7c784e5c)),
    ("mobilenet", "3,128,128", {"alpha": 0.5}, (139, 0xcacd1fb7)),
    ("mobilenetv2", "3,224,224", {}, (269, 0x20addc66)),
    ("mobilenetv2", "3,224,224", {"multiplier": 1.4}, (269, 0xf210d2f7)),
    ("resnet", "3,224,224", {"num_layers": 18}, (101, 0xa74a9e38)),
    ("resnet", "3,28,28", {"num_layers": 20}, (106, 0x10698873)),
    ("resnet", "3,224,224", {"num_layers": 50}, (261, 0x6b0aa50f)),
    ("resnet", "3,28,28", {"num_layers": 164}, (826, 0x44c5cbf7)),
    ("resnet", "3,32,32", {"num_layers": 18}, (97, 0x6ec39eaa)),
    ("resnet-v1", "3,224,224", {"num_layers": 18}, (109, 0x3ee23309)),
    ("resnet-v1", "3,28,28", {"num_layers": 20}, (114, 0x41f2c2cb)),
    ("resnet-v1", "3,224,224", {"num_layers": 50}, (269, 0x97f081be)),
    ("resnet-v1", "3,28,28", {"num_layers": 164}, (834, 0xde85bea1)),
    ("resnet-v1", "3,32,32", {"num_layers": 18}, (109, 0xfc09d148)),
    ("resnetv1", "3,224,224", {"num_layers": 18}, (109, 0x3ee23309)),
    ("resnetv1", "3,28,28", {"num_layers": 20}, (114, 0x41f2c2cb)),
    ("resnext", "3,224,224", {"num_layers": 18}, (113, 0xe76da601)),
    ("resnext", "3,28,28", {"num_layers": 20}, (114, 0xa873419f)),
    ("resnext", "3,224,224", {"num_layers": 50}, (273, 0x845b1831)),
    ("resnext", "3,28,28", {"num_layers": 164}, (834, 0xc8d786f5)),
    ("resnext", "3,32,32", {"num_layers": 20}, (114, 0x4aea7d2f)),
    ("resnet", "3,224,224", {"num_layers": 50, "dtype": "float16"}, (261, 0x6b0aa50f)),
    ("inception-v3", "3,299,299", {"dtype": "float16"}, (474, 0x77853d70)),
]

# From MXNet 1.9.1, with parameters from `value`: the probabilities of 4 classes.
PROBABILITIES = [
    ("mlp", "1,28,28", {}, [0.1431, 0.05814, 0.7334, 0.06531]),
    ("lenet", "1,28,28", {}, [0.1831, 0.1454, 0.09625, 0.5752]),
    ("lenet", "1,28,28", {"add_stn": True}, [0.2601, 0.1424, 0.09135, 0.5062]),
    ("inception-bn", "3,28,28", {}, [0.4554, 0.006282, 0.4259, 0.1123]),
    ("mobilenet", "3,64,64", {"alpha": 0.25}, [0.2542, 0.2287, 0.2689, 0.2482]),
    ("mobilenetv2", "3,64,64", {"multiplier": 0.5}, [0.04509, 0.0497, 0.01404, 0.8912]),
    ("resnet", "3,28,28", {"num_layers": 20}, [0.0001145, 9.172e-06, 0.3825, 0.6173]),
    ("resnet-v1", "3,28,28", {"num_layers": 20}, [8.783e-12, 6.171e-09, 0.02746, 0.9725]),
    ("resnext", "3,28,28", {"num_layers": 20}, [2.465e-05, 1.151e-05, 0.1052, 0.8948]),
    ("resnet", "3,64,64", {"num_layers": 50}, [0.9974, 0.001751, 0.0004245, 0.0004438]),
    ("googlenet", "3,64,64", {}, [0.02988, 0.005715, 0.9256, 0.03882]),
    ("vgg", "3,32,32", {"num_layers": 11, "batch_norm": True}, [0.8528, 0.03867, 0.04367, 0.06488]),
    ("inception-v3", "3,299,299", {}, [0.8536, 0.002361, 0.04326, 0.1008]),
]


def value(name, shape):
    draw = np.random.RandomState(zlib.crc32(name.encode()))
    if name.endswith(("gamma", "var")):
        return draw.uniform(0.5, 1.5, shape)
    return draw.normal(0, 1, shape) / np.sqrt(max(1, np.prod(shape[1:])))


def build(network, image_shape, options, num_classes):
    with mx.name.NameManager():
        symbol = import_module(f"symbols.{network}").get_symbol(num_classes=num_classes, image_shape=image_shape, **options)
    shape = (1, *map(int, image_shape.split(",")))
    arguments, outputs, states = symbol.infer_shape(data=shape)
    return symbol, shape, dict(zip(symbol.list_arguments(), arguments)), dict(zip(symbol.list_auxiliary_states(), states)), outputs


@pytest.mark.parametrize(("network", "image_shape", "options", "expected"), PARAMETERS)
def test_parameters_are_those_of_published_checkpoints(network, image_shape, options, expected):
    _, _, arguments, states, outputs = build(network, image_shape, options, 10)
    lines = [f"{name} {tuple(shape)}" for name, shape in [*arguments.items(), *states.items()]]
    assert (len(lines), zlib.crc32("\n".join(lines).encode())) == expected
    assert outputs == [(1, 10)]


@pytest.mark.parametrize(("network", "image_shape", "options", "expected"), PROBABILITIES)
def test_probabilities(network, image_shape, options, expected):
    symbol, shape, arguments, states, _ = build(network, image_shape, options, 4)
    arguments = {name: mx.nd.array(value(name, size)) for name, size in arguments.items()}
    arguments["data"] = mx.nd.array(np.random.RandomState(0).uniform(-1, 1, shape))
    states = {name: mx.nd.array(value(name, size)) for name, size in states.items()}
    executor = symbol.bind(mx.cpu(), arguments, aux_states=states, grad_req="null")
    assert executor.forward(is_train=False)[0].asnumpy()[0] == pytest.approx(expected, rel=2e-3, abs=2e-4)


@pytest.mark.parametrize(("network", "options", "text"), [
    ("resnet", {"num_layers": 51, "image_shape": "3,224,224"}, r"must be one of \[18, 34, 50, 101, 152, 200, 269\] .*, received 51"),
    ("resnet", {"num_layers": 21, "image_shape": "3,28,28"}, "must be 6n.2 and below 164, or 9n.2 from 164 on, .*received 21"),
    ("resnext", {"num_layers": 18, "image_shape": "3,32,32"}, "received 18"),
    ("resnet", {"num_layers": 18, "image_shape": "224"}, "image_shape must be 'channels,height,width' such as '3,224,224', received '224'"),
    ("vgg", {"num_layers": 12}, r"num_layers must be one of \[11, 13, 16, 19\], received 12"),
    ("mobilenet", {"alpha": 2}, "alpha must be one of"),
    ("mobilenet", {"resolution": 100}, "multiple of 32, received 100"),
])
def test_errors(network, options, text):
    with pytest.raises(ValueError, match=text):
        import_module(f"symbols.{network}").get_symbol(num_classes=10, **options)


@pytest.mark.parametrize("network", ["mlp", "lenet", "googlenet", "inception-resnet-v2", "mobilenetv2"])
def test_float16_networks_give_float32(network):
    shape = "1,28,28" if network in ("mlp", "lenet") else "3,224,224"
    symbol = import_module(f"symbols.{network}").get_symbol(num_classes=10, image_shape=shape, dtype="float16")
    arguments, outputs, _ = symbol.infer_type(data="float32")
    types = dict(zip(symbol.list_arguments(), arguments))
    assert outputs == [np.float32]
    assert {types[name] for name in types if name.endswith("weight")} == {np.float16}
