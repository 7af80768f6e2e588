"""Move a network with its weights between MXNet's model zoo and torchvision's.

``python -m mxnet.tools.convert --from torchvision:vgg16 --to mxnet`` writes ``vgg16.params`` for ``mx.gluon.model_zoo.vision.vgg16()``;
``--from mxnet:vgg16 --to torchvision`` writes ``vgg16.pth`` for ``torchvision.models.vgg16()``. Where the two zoos have different networks under one
name (the bottlenecks of ResNet-50 stride elsewhere, MobileNetV2's output layer has a bias in one of them), or only one has the network at all, the
network goes along: ``resnet50-symbol.json`` and ``resnet50-0000.params`` for `SymbolBlock.imports` and `Module`, or ``resnet50_v1.pt2`` for
`torch.export.load`.
"""
import argparse
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .. import ndarray
from ..base import MXNetError
from ..files import atomic_write
from ..suggestions import did_you_mean
from .command import command, parser

# Networks that are the same in both zoos, by torchvision's names: those of MXNet.
SAME = {"alexnet": "alexnet", "densenet121": "densenet121", "densenet161": "densenet161", "densenet169": "densenet169", "densenet201": "densenet201",
        "inception_v3": "inceptionv3", "resnet18": "resnet18_v1", "resnet34": "resnet34_v1", "squeezenet1_0": "squeezenet1.0",
        "squeezenet1_1": "squeezenet1.1", **{f"vgg{depth}{bn}": f"vgg{depth}{bn}" for depth in (11, 13, 16, 19) for bn in ("", "_bn")}}
_COUNTER = "num_batches_tracked"  # which MXNet's batch norms don't have
_ROLES = {"gamma": "weight", "beta": "bias"}  # of MXNet's names, where torch's differ


def paired(theirs: Mapping[str, Sequence[int]], ours: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Pair the parameters of two networks with the same layers in the same order.

    Parameters
    ----------
    theirs, ours : dict of str to shape
        In the order of the layers; torch's names, and those of ``net.save_parameters``.

    Returns
    -------
    dict of str to str
        MXNet's names by torch's.

    Raises
    ------
    MXNetError
        If the layers differ.

    Example
    -------
    >>> from mxnet.tools import convert
    >>> convert.paired({'fc.weight': (2, 3), 'fc.bias': (2,)}, {'output.weight': (2, 3), 'output.bias': (2,)})
    {'fc.weight': 'output.weight', 'fc.bias': 'output.bias'}
    """
    first, second = _layers(theirs), _layers(ours)
    if len(first) != len(second):
        raise MXNetError(f"convert: the networks differ: torchvision's has {len(first)} layers with parameters, MXNet's {len(second)}")
    pairs = {}
    for (name, roles), (own, own_roles) in zip(first.items(), second.items()):
        shapes, own_shapes = ({role: tuple(names[full]) for role, full in given.items()} for given, names in ((roles, theirs), (own_roles, ours)))
        if shapes != own_shapes:
            raise MXNetError(f"convert: the networks differ: {name} has {shapes}, and {own}, at the same place in MXNet's, {own_shapes}")
        pairs.update({roles[role]: own_roles[role] for role in roles})
    return pairs


def _layers(names: Mapping[str, Sequence[int]]) -> dict[str, dict[str, str]]:
    """The parameters by layer, and in it by torch's name of their role."""
    layers: dict[str, dict[str, str]] = {}
    for full in names:
        layer, _, role = full.rpartition(".")
        if role != _COUNTER and not full.startswith("AuxLogits."):  # an output for training, which MXNet's Inception does not have
            layers.setdefault(layer, {})[_ROLES.get(role, role)] = full
    return layers


# -- the two zoos ------------------------------------------------------------------------------------------------------------------

def _torchvision() -> Any:
    try:
        import torchvision
    except ImportError:
        raise MXNetError("convert: this needs torchvision's network, and the package torchvision is not installed; a file with --weights and a "
                         f"network that both zoos have ({', '.join(SAME)}) need none on the way to MXNet") from None
    except Exception as error:  # its library is that of another torch
        raise MXNetError(f"convert: torchvision cannot be imported: {error}; take the one that belongs to torch {torch.__version__}") from error
    return torchvision


def _torchvision_network(name: str, state: Mapping[str, torch.Tensor] | None, pretrained: bool) -> Any:
    models = _torchvision().models
    if name not in models.list_models():
        raise MXNetError(f"convert: torchvision has no network {name!r}{did_you_mean(name, models.list_models())}")
    options = {"init_weights": False} if name in ("inception_v3", "googlenet") and not pretrained else {}
    network = models.get_model(name, weights="DEFAULT" if pretrained else None, **options)
    if state is not None:
        try:
            missing, unexpected = network.load_state_dict(state, strict=False)
        except RuntimeError as error:  # shapes differ
            raise MXNetError(f"convert: the file does not fit {name}: {error}") from None
        missing = [key for key in missing if not key.endswith(_COUNTER) and not key.startswith("AuxLogits.")]
        if missing or unexpected:
            raise MXNetError(f"convert: the file does not fit {name}: it lacks {len(missing)} parameters{_first(missing)}, and has "
                             f"{len(unexpected)} that the network has not{_first(unexpected)}; take the file of this network")
    return network.eval()


def _first(names: Sequence[str]) -> str:
    return f" (such as {names[0]})" if names else ""


def _size_of(name: str) -> int:
    return 299 if name.startswith("inception") else 224


def _mxnet_network(name: str) -> Any:
    from ..gluon.model_zoo import vision
    try:
        net = vision.get_model(name)
    except ValueError as error:
        raise MXNetError(f"convert: {error}") from None
    net.initialize()
    size = _size_of(name)
    net.infer_shape(ndarray.zeros((1, 3, size, size)))
    return net


def _state_of(path: str) -> dict[str, torch.Tensor]:
    """The tensors of a file of torchvision's, or of safetensors."""
    if path.endswith(".safetensors"):
        loaded = ndarray.load(path)
        return {name: array.as_torch() for name, array in loaded.items()}
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)  # which executes nothing
    except Exception as error:
        raise MXNetError(f"convert: {path} is no file of tensors that torch.load(weights_only=True) reads: {error}") from None
    if not isinstance(state, Mapping) or not all(isinstance(t, torch.Tensor) for t in state.values()):
        raise MXNetError(f"convert: {path} holds no dict of names and tensors")
    return dict(state)


# -- the two ways ------------------------------------------------------------------------------------------------------------------

def to_mxnet(name: str, weights: str | None, output: str) -> list[str]:
    """Write a network of torchvision's for MXNet; the names of the files.

    Parameters
    ----------
    name : str
        Such as ``'resnet50'``.
    weights : str or None
        A ``.pth`` or ``.safetensors`` file with its ``state_dict()``; None takes torchvision's trained weights, which it downloads.
    output : str
        How the names of the files begin.

    Raises
    ------
    MXNetError
        If there is no such network, torchvision is needed and missing, or the file does not fit.
    """
    state = _state_of(weights) if weights else None
    if name not in SAME:
        from ..gluon import from_torch
        size = _size_of(name)
        block = from_torch(_torchvision_network(name, state, state is None), torch.zeros(2, 3, size, size))
        return list(filter(None, block.export(output)))
    if state is None:
        state = _torchvision_network(name, None, True).state_dict()
    if name.startswith("densenet"):  # files of the first years call layers norm.1
        state = {re.sub(r"(norm|conv)\.([12])\.", r"\1\2.", key): tensor for key, tensor in state.items()}
    net = _mxnet_network(SAME[name])
    ours = net._collect_params_with_prefix()
    pairs = paired({key: tuple(t.shape) for key, t in state.items()}, {key: p.shape for key, p in ours.items()})
    for theirs, own in pairs.items():
        ours[own]._load_init(ndarray.from_torch(state[theirs].detach().float().contiguous()), None)
    net.save_parameters(f"{output}.params")
    return [f"{output}.params"]


def to_torchvision(name: str, weights: str | None, output: str) -> list[str]:
    """Write a network of MXNet's zoo for torchvision, or, where that has none like it, for torch; the names of the files.

    Parameters
    ----------
    name : str
        Such as ``'resnet18_v1'``.
    weights : str or None
        A file of ``save_parameters``; None takes the trained weights of the zoo.
    output : str
        How the names of the files begin.

    Raises
    ------
    MXNetError
        If there is no such network, torchvision is needed and missing, or the file does not fit.
    """
    net = _mxnet_network(name)
    if weights is None:
        from ..gluon.model_zoo import vision
        net = vision.get_model(name, pretrained=True)
    else:
        net.load_parameters(weights)
    counterpart = next((theirs for theirs, own in SAME.items() if own == name), None)
    if counterpart is None:
        size = _size_of(name)
        example = torch.zeros(2, 3, size, size)
        module = net.as_torch(example).eval()
        module.to(memory_format=torch.contiguous_format)  # torch warns of files with tensors in another order
        program = torch.export.export(module, (example,), dynamic_shapes=(({0: torch.export.Dim.AUTO},),))
        torch.export.save(program, f"{output}.pt2")
        return [f"{output}.pt2"]
    expected = _torchvision_network(counterpart, None, False).state_dict()
    ours = net._collect_params_with_prefix()
    pairs = paired({key: tuple(t.shape) for key, t in expected.items()}, {key: p.shape for key, p in ours.items()})
    state = {key: ours[pairs[key]].data().as_torch() if key in pairs else torch.zeros_like(tensor) for key, tensor in expected.items()
             if not key.startswith("AuxLogits.")}
    with atomic_write(f"{output}.pth") as file:
        torch.save(state, file)
    return [f"{output}.pth"]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    same = ", ".join(theirs if theirs == ours else f"{theirs} ({ours})" for theirs, ours in SAME.items())
    p = parser("convert", "\n".join(textwrap.wrap(
        f"Both zoos have {same} (MXNet's names in parentheses): a file of weights is written, NAME.params for load_parameters or NAME.pth for "
        "load_state_dict. Of others the network is written, too: NAME-symbol.json and NAME-0000.params for SymbolBlock.imports and Module, or "
        "NAME.pt2 for torch.export.load.", 110)))
    p.add_argument("--from", dest="source", required=True, metavar="ZOO:NAME", help="torchvision:resnet50, mxnet:resnet18_v1, ...")
    p.add_argument("--to", required=True, choices=("mxnet", "torchvision"), help="the other zoo")
    p.add_argument("--weights", metavar="FILE", help="the weights (.pth, .safetensors or .params); by default those that the zoo offers")
    p.add_argument("--output", metavar="PREFIX", help="how the names of the files begin; by default the network's name")
    return p


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    p = build_parser()
    args = p.parse_args(argv)
    zoo, _, name = args.source.partition(":")
    if zoo not in ("mxnet", "torchvision") or not name or zoo == args.to:
        p.error(f"--from torchvision:NAME --to mxnet, or --from mxnet:NAME --to torchvision; received --from {args.source} --to {args.to}")
    try:
        written = (to_mxnet if zoo == "torchvision" else to_torchvision)(name, args.weights, args.output or name)
    except (MXNetError, OSError) as error:
        print(str(error) if str(error).startswith("convert: ") else f"convert: {error}", file=sys.stderr)
        return 1
    print("Wrote " + " and ".join(written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
