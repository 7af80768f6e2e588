"""Recurrent cells that may still change."""
from .conv_rnn_cell import *  # noqa: F403
from .rnn_cell import *  # noqa: F403
