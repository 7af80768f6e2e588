"""Datasets of images, and transforms of them."""
from . import datasets, transforms
from .datasets import *  # noqa: F403
