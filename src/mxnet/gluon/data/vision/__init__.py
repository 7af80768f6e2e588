"""Datasets of images, and transforms of them."""
from . import datasets, transforms  # noqa: F401
from .datasets import *  # noqa: F403
