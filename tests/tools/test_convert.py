import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon.model_zoo import vision
from mxnet.tools import convert
from torch_checks import package


def images(size):
    return torch.linspace(-1, 1, 2 * 3 * size * size).reshape(2, 3, size, size)


def randomized(module):
    """The module with moving averages as after training."""
    generator = torch.Generator().manual_seed(4)
    for name, buffer in module.named_buffers():
        if buffer.dtype.is_floating_point:
            buffer.copy_(torch.rand(buffer.shape, generator=generator) * 0.2 + ("var" in name))
    return module.eval()


def test_layers_are_paired_in_order():
    theirs = {"a.weight": (2, 3), "a.bias": (2,), "n.weight": (2,), "n.bias": (2,), "n.running_mean": (2,), "n.num_batches_tracked": ()}
    ours = {"0.weight": (2, 3), "0.bias": (2,), "1.gamma": (2,), "1.beta": (2,), "1.running_mean": (2,)}
    assert convert.paired(theirs, ours) == {"a.weight": "0.weight", "a.bias": "0.bias", "n.weight": "1.gamma", "n.bias": "1.beta",
                                            "n.running_mean": "1.running_mean"}
    with pytest.raises(mx.MXNetError, match=r"a has \{'weight': \(2, 3\)\}, and 0, at the same place in MXNet's, \{'weight': \(3, 2\)\}"):
        convert.paired({"a.weight": (2, 3)}, {"0.weight": (3, 2)})
    with pytest.raises(mx.MXNetError, match="torchvision's has 1 layers with parameters, MXNet's 0"):
        convert.paired({"a.weight": (2, 3)}, {})


def test_weights_of_a_file_need_no_torchvision(tmp_path, capsys):
    """SqueezeNet's tensors, under torchvision's names."""
    net = vision.squeezenet1_1()
    net.initialize()
    net.infer_shape(mx.nd.zeros((1, 3, 224, 224)))
    names = [name for name in net._collect_params_with_prefix()]
    state = {f"layer{i // 2}.{name.rpartition('.')[2]}": torch.full(net._collect_params_with_prefix()[name].shape, float(i))
             for i, name in enumerate(names)}
    torch.save(state, tmp_path / "own.pth")
    output = str(tmp_path / "squeezed")
    assert convert.main(["--from", "torchvision:squeezenet1_1", "--to", "mxnet", "--weights", str(tmp_path / "own.pth"), "--output", output]) == 0
    assert capsys.readouterr().out == f"Wrote {output}.params\n"
    saved = mx.nd.load(f"{output}.params")
    assert [saved[name].asnumpy().flat[0] for name in names] == list(range(len(names)))


def test_errors(tmp_path, capsys):
    path = tmp_path / "bad.pth"
    path.write_bytes(b"nothing")
    assert convert.main(["--from", "torchvision:vgg11", "--to", "mxnet", "--weights", str(path)]) == 1
    assert "is no file of tensors that torch.load(weights_only=True) reads" in capsys.readouterr().err
    assert convert.main(["--from", "mxnet:resnet1", "--to", "torchvision", "--weights", str(path)]) == 1
    assert "There is no model 'resnet1'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        convert.main(["--from", "mxnet:vgg11", "--to", "mxnet"])
    assert "received --from mxnet:vgg11 --to mxnet" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        convert.main(["--help"])
    assert "resnet18 (resnet18_v1)" in capsys.readouterr().out


def test_what_torchvision_lacks_becomes_an_exported_program(tmp_path):
    net = vision.get_model("mobilenet0.25")
    net.initialize(mx.init.Xavier())
    x = images(224)
    expected = net(mx.nd.from_torch(x)).asnumpy()
    net.save_parameters(str(tmp_path / "own.params"))
    assert convert.to_torchvision("mobilenet0.25", str(tmp_path / "own.params"), str(tmp_path / "out")) == [str(tmp_path / "out.pt2")]
    program = torch.export.load(tmp_path / "out.pt2").module()
    np.testing.assert_allclose(program(x).detach().numpy(), expected, atol=1e-4)
    assert program(torch.cat([x, x])).shape == (4, 1000)


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_0", "densenet121"])
def test_the_same_networks_both_ways(name, tmp_path):
    models = package("torchvision").models
    torch.manual_seed(2)
    module = randomized(models.get_model(name))
    torch.save(module.state_dict(), tmp_path / "theirs.pth")
    convert.to_mxnet(name, str(tmp_path / "theirs.pth"), str(tmp_path / "ours"))
    net = vision.get_model(convert.SAME[name])
    net.load_parameters(str(tmp_path / "ours.params"))
    x = images(convert._size_of(name))
    with torch.no_grad():
        expected = module(x).numpy()
    np.testing.assert_allclose(net(mx.nd.from_torch(x)).asnumpy(), expected, rtol=1e-3, atol=1e-3 * abs(expected).max())
    assert convert.to_torchvision(convert.SAME[name], str(tmp_path / "ours.params"), str(tmp_path / "back")) == [str(tmp_path / "back.pth")]
    back, theirs = torch.load(tmp_path / "back.pth", weights_only=True), module.state_dict()
    assert list(back) == list(theirs) and all(torch.equal(back[key], theirs[key]) for key in theirs)


def test_other_networks_go_along(tmp_path):
    models = package("torchvision").models
    torch.manual_seed(2)
    module = randomized(models.get_model("mobilenet_v2"))
    torch.save(module.state_dict(), tmp_path / "theirs.pth")
    prefix = str(tmp_path / "ours")
    assert convert.to_mxnet("mobilenet_v2", str(tmp_path / "theirs.pth"), prefix) == [f"{prefix}-symbol.json", f"{prefix}-0000.params"]
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    x = images(224)
    with torch.no_grad():
        expected = module(x).numpy()
    np.testing.assert_allclose(net(mx.nd.from_torch(x)).asnumpy(), expected, rtol=1e-3, atol=1e-3 * abs(expected).max())


def test_files_of_other_networks_are_refused(tmp_path):
    models = package("torchvision").models
    state = models.squeezenet1_1().state_dict()
    path = str(tmp_path / "other.pth")
    torch.save(state, path)
    with pytest.raises(mx.MXNetError, match=r"does not fit shufflenet_v2_x0_5: it lacks \d+ parameters \(such as conv1.0.weight\), and has \d+"):
        convert.to_mxnet("shufflenet_v2_x0_5", path, str(tmp_path / "out"))
