import numpy as np
import pytest
import torch

import mxnet as mx
from torch_checks import check, package, real


class Residual(torch.nn.Module):
    """What torchvision's ResNets are made of."""

    def __init__(self, channels, stride):
        super().__init__()
        nn = torch.nn
        self.conv1, self.bn1 = nn.Conv2d(channels, 2 * channels, 3, stride, 1, bias=False), nn.BatchNorm2d(2 * channels)
        self.conv2, self.bn2 = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, bias=False), nn.BatchNorm2d(2 * channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(nn.Conv2d(channels, 2 * channels, 1, stride, bias=False), nn.BatchNorm2d(2 * channels))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += self.downsample(x)
        return self.relu(out)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        # Not fewer channels: 1x1 convolutions with steps corrupt the memory of torch 2.13 on some processors where few channels come last.
        self.blocks = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), Residual(16, 2), Residual(32, 1))
        self.pool, self.fc = torch.nn.AdaptiveAvgPool2d((1, 1)), torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.blocks(x)), 1))


X = real(4, 3, 12, 12)


def test_a_block_trains_the_memory_of_the_module():
    torch.manual_seed(1)
    module = Network()
    block = mx.gluon.from_torch(module, X)
    block.hybridize()
    assert sorted(block.collect_params().keys()) == sorted(name for name in module.state_dict() if not name.endswith("num_batches_tracked"))
    before = {name: t.clone() for name, t in module.state_dict().items()}
    trainer, loss = mx.gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 0.1}), mx.gluon.loss.SoftmaxCrossEntropyLoss()
    errors = []
    for _ in range(8):
        with mx.autograd.record():
            error = loss(block(mx.nd.from_torch(X)), mx.nd.array([0, 1, 2, 3]))
        error.backward()
        trainer.step(4)
        errors.append(error.mean().asscalar())
    assert errors[-1] < errors[0] / 2
    after = module.state_dict()
    assert all(not torch.equal(after[name], before[name]) for name in before if not name.endswith("num_batches_tracked"))
    with torch.no_grad():
        np.testing.assert_allclose(block(mx.nd.from_torch(X)).asnumpy(), module.eval()(X).numpy(), rtol=1e-3, atol=1e-4)


def test_files(tmp_path):
    module = Network().eval()
    block = mx.gluon.from_torch(module, X)
    block.save_parameters(str(tmp_path / "net.params"))
    saved = mx.nd.load(str(tmp_path / "net.params"))
    assert sorted(saved) == sorted(name for name in module.state_dict() if not name.endswith("num_batches_tracked"))
    other = mx.gluon.from_torch(Network(), X)
    other.load_parameters(str(tmp_path / "net.params"))
    np.testing.assert_allclose(other(mx.nd.from_torch(X)).asnumpy(), block(mx.nd.from_torch(X)).asnumpy(), atol=1e-6)
    names = block.export(str(tmp_path / "net"))
    trained = mx.mod.Module(mx.sym.load(names[0]), label_names=None)
    trained.bind([("data", (4, 3, 12, 12))], for_training=False)
    symbol, arguments, aux = mx.model.load_checkpoint(str(tmp_path / "net"), 0)
    trained.set_params(arguments, aux)
    trained.forward(mx.io.DataBatch([mx.nd.from_torch(X)]), is_train=False)
    np.testing.assert_allclose(trained.get_outputs()[0].asnumpy(), module(X).detach().numpy(), rtol=1e-3, atol=1e-4)


def test_there_and_back():
    module = Network().eval()
    back = mx.gluon.from_torch(module, X).as_torch().eval()
    assert sorted(back.state_dict()) == sorted(name for name in module.state_dict() if not name.endswith("num_batches_tracked"))
    with torch.no_grad():
        module.fc.bias.add_(1)
        np.testing.assert_allclose(back(X).numpy(), module(X).numpy(), rtol=1e-3, atol=1e-4)


def test_a_module_is_expected():
    with pytest.raises(mx.MXNetError, match="from_torch: a torch.nn.Module expected, received function"):
        mx.gluon.from_torch(lambda x: x, X)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit"])
def test_networks_of_torchvision(name):
    models = package("torchvision").models
    torch.manual_seed(1)
    if name == "vit":
        module = models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=10)
        torch.nn.init.normal_(module.heads.head.weight)  # zeros until it is trained
    else:
        module = models.get_model(name, num_classes=10)
    check(module.eval(), real(2, 3, 32, 32), gradient=name == "vit")


def test_bert():
    transformers = package("transformers")
    torch.manual_seed(1)
    config = transformers.BertConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, vocab_size=50)
    model = transformers.BertModel(config).eval()
    ids = torch.randint(0, 50, (2, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    check(model, ids, gradient=False)
    check(model, ids, kwargs={"attention_mask": mask}, gradient=False)
