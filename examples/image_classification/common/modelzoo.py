"""Pretrained checkpoints that MXNet's project published."""
import os

from .util import download_file

_BASE_URL = "http://data.mxnet.io/models/"
# Name to the checkpoint's prefix and epoch on the server.
_MODELS = {
    "imagenet1k-inception-bn": ("imagenet/inception-bn/Inception-BN", 126),
    **{f"imagenet1k-resnet-{n}": (f"imagenet/resnet/{n}-layers/resnet-{n}", 0) for n in (18, 34, 50, 101, 152)},
    **{f"imagenet1k-resnext-{n}": (f"imagenet/resnext/{n}-layers/resnext-{n}", 0) for n in (50, 101)},
    "imagenet1k-resnext-101-64x4d": ("imagenet/resnext/101-layers/resnext-101-64x4d", 0),
    "imagenet11k-resnet-152": ("imagenet-11k/resnet-152/resnet-152", 0),
    **{f"imagenet11k-place365ch-resnet-{n}": (f"imagenet-11k-place365-ch/resnet-{n}", 0) for n in (50, 152)},
}
_default_model_info = {
    name: {"symbol": f"{_BASE_URL}{prefix}-symbol.json", "params": f"{_BASE_URL}{prefix}-{epoch:04d}.params"}
    for name, (prefix, epoch) in _MODELS.items()
}


def download_model(model_name, dst_dir="./", meta_info=None):
    """Fetch a published checkpoint unless it is there.

    Parameters
    ----------
    model_name : str
    dst_dir : str
        The folder to put it into.
    meta_info : dict, optional
        Name to a dict of the addresses ``symbol`` and ``params``, instead of those known here.

    Returns
    -------
    tuple
        The prefix of the local checkpoint and its epoch; (None, 0) if no such model is known.
    """
    known = _default_model_info if meta_info is None else meta_info
    if model_name not in known:
        return None, 0
    missing = {"symbol", "params"} - set(known[model_name])
    if missing:
        raise ValueError(f"download_model: {model_name} lacks the address of its {' and '.join(sorted(missing))}")
    prefix = os.path.join(dst_dir, model_name)
    download_file(known[model_name]["symbol"], f"{prefix}-symbol.json")
    download_file(known[model_name]["params"], f"{prefix}-0000.params")
    return prefix, 0
