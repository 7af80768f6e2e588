"""Recurrent layers and cells."""
from .container_cells import BidirectionalCell, HybridSequentialRNNCell, SequentialRNNCell
from .modifier_cells import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell
from .rnn_cell import GRUCell, HybridRecurrentCell, LSTMCell, RecurrentCell, RNNCell
from .rnn_layer import *  # noqa: F403
