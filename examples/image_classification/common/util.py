"""Small helpers of the programs."""
from importlib import import_module

import mxnet as mx
from mxnet.gluon.utils import download


def download_file(url, local_fname=None, force_write=False):
    """Download a file unless it is there; the path of it.

    Raises
    ------
    MXNetError
        If it is neither there nor to be had; the text names both places.
    """
    path = local_fname or url.split("/")[-1]
    try:
        return download(url, path=path, overwrite=force_write)
    except Exception as error:
        raise mx.MXNetError(f"{path} is missing and cannot be downloaded from {url} ({error}); put the file there yourself") from error


def get_gpus():
    """The numbers of the GPUs there are."""
    return range(mx.util.get_gpu_count())


def devices(gpus):
    """The contexts that ``--gpus 0,2`` names; the CPU if it names none."""
    return [mx.gpu(int(i)) for i in gpus.split(",")] if gpus else mx.cpu()


def get_network(args):
    """The Symbol of ``--network``, which is a module in ``symbols/``.

    Raises
    ------
    ValueError
        If there is no such module.
    """
    name = f"symbols.{args.network}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ValueError(f"--network {args.network}: there is no symbols/{args.network}.py") from None
    with mx.name.NameManager():  # names of layers count from 0, as they did when a checkpoint was written
        return module.get_symbol(**vars(args))
