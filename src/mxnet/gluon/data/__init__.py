"""Datasets, samplers and data loaders."""
from .dataloader import *  # noqa: F403
from .dataset import *  # noqa: F403
from .sampler import *  # noqa: F403

from . import batchify, vision  # noqa: E402  isort: skip  its datasets stand on the names above
