"""Layers that may still change."""
from .basic_layers import *  # noqa: F403
