"""Train the last layer, and gently the others, of a pretrained network on other classes.

    python fine_tune.py --pretrained-model imagenet1k-resnet-50 --num-classes 20 --num-examples 9000 \\
        --data-train train.rec --data-val val.rec
"""
import argparse
import logging
import os

from common import data, fit, modelzoo
from common.util import get_network

import mxnet as mx


def get_fine_tune_model(symbol, arg_params, num_classes, layer_name, dtype="float32"):
    """The network with a new last layer, and the parameters it keeps.

    Parameters
    ----------
    symbol : Symbol
    arg_params : dict
    num_classes : int
        Outputs of the new layer.
    layer_name : str
        The layer before the last fully connected one.
    dtype : str
        float16 computes the softmax in float32 still.

    Raises
    ------
    ValueError
        If there is no such layer.
    """
    layers = symbol.get_internals()
    if f"{layer_name}_output" not in layers.list_outputs():
        near = [name[:-len("_output")] for name in layers.list_outputs() if name.endswith("_output")][-6:]
        raise ValueError(f"--layer-before-fullc {layer_name}: the network has no such layer; its last ones are {', '.join(near)}")
    net = mx.sym.FullyConnected(layers[f"{layer_name}_output"], num_hidden=num_classes, name="fc")
    if dtype == "float16":
        net = mx.sym.Cast(net, dtype="float32")
    return mx.sym.SoftmaxOutput(net, name="softmax"), {name: value for name, value in arg_params.items() if "fc" not in name}


def main(argv=None):
    """Parse the options and train; the trained Module."""
    parser = argparse.ArgumentParser(description="fine-tune a dataset", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    fit.add_fit_args(parser)
    data.add_data_args(parser)
    data.add_data_aug_args(parser)
    parser.add_argument("--pretrained-model", type=str, help="prefix of a local checkpoint, or a name that common/modelzoo.py knows")
    parser.add_argument("--layer-before-fullc", type=str, default="flatten0", help="the layer before the last fully connected one")
    # A small learning rate and no regularization: the network is good already.
    parser.set_defaults(image_shape="3,224,224", num_epochs=30, lr=0.01, lr_step_epochs="20", wd=0, mom=0)
    args = parser.parse_args(argv)

    folder = os.path.join(os.path.dirname(os.path.realpath(__file__)), "model")
    prefix, epoch = modelzoo.download_model(args.pretrained_model, folder)
    if prefix is None:
        prefix, epoch = args.pretrained_model, args.load_epoch or 0
    symbol, arg_params, aux_params = mx.model.load_checkpoint(prefix, epoch)
    if args.dtype != "float32":
        # The stored network computes in float32; the one built anew casts its input.
        symbol = get_network(args)
    network, pretrained = get_fine_tune_model(symbol, arg_params, args.num_classes, args.layer_before_fullc, args.dtype)
    return fit.fit(args, network, data.get_rec_iter, arg_params=pretrained, aux_params=aux_params)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    main()
