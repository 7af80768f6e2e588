"""Convolutions that may still change."""
from .conv_layers import *  # noqa: F403
