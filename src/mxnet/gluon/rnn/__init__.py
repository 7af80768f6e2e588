"""Recurrent layers and cells."""
from .rnn_cell import *  # noqa: F403
from .rnn_layer import *  # noqa: F403
