import pytest

from mxnet.gluon.model_zoo import vision

NAMES = [
    "alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "inceptionv3", "mobilenet0.25",
    "mobilenet0.5", "mobilenet0.75", "mobilenet1.0", "mobilenetv2_0.25", "mobilenetv2_0.5", "mobilenetv2_0.75", "mobilenetv2_1.0",
    "resnet101_v1", "resnet101_v2", "resnet152_v1", "resnet152_v2", "resnet18_v1", "resnet18_v2", "resnet34_v1",
    "resnet34_v2", "resnet50_v1", "resnet50_v2", "squeezenet1.0", "squeezenet1.1", "vgg11", "vgg11_bn",
    "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]


def test_get_model_lists_what_there_is():
    with pytest.raises(ValueError, match=r"no model 'lenet'; did you mean 'alexnet'\? The names are\n\talexnet\n\tdensenet121\n") as caught:
        vision.get_model("LeNet")
    assert str(caught.value).split("\n\t")[1:] == NAMES
    assert isinstance(vision.get_model("ResNet18_V1", thumbnail=True), vision.ResNetV1)
