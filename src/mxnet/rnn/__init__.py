"""Recurrent networks as Symbols: cells, bucketed text iterators, checkpoints. New programs use ``mx.gluon.rnn``."""
from . import checkpoint, conv_cell, io, modifier_cell, rnn_cell
from .checkpoint import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from .conv_cell import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from .fused_cell import FusedRNNCell
from .io import BucketSentenceIter, encode_sentences
from .modifier_cell import BidirectionalCell, DropoutCell, ModifierCell, ResidualCell, SequentialRNNCell, ZoneoutCell
from .rnn_cell import BaseRNNCell, GRUCell, LSTMCell, RNNCell, RNNParams

__all__ = ["BaseConvRNNCell", "BaseRNNCell", "BidirectionalCell", "BucketSentenceIter", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell",
           "DropoutCell", "FusedRNNCell", "GRUCell", "LSTMCell", "ModifierCell", "RNNCell", "RNNParams", "ResidualCell",
           "SequentialRNNCell", "ZoneoutCell", "checkpoint", "conv_cell", "do_rnn_checkpoint", "encode_sentences", "io",
           "load_rnn_checkpoint", "modifier_cell", "rnn_cell", "rnn_unroll", "save_rnn_checkpoint"]
