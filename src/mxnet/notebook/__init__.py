"""Watching a training run from a notebook."""
from . import callback
