"""Networks that are no classifiers of images, to be written as ONNX files and read back, with inputs for each."""
import numpy as np

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


class Encoder(gluon.HybridBlock):
    """A layer of BERT: attention over itself within the valid lengths, and two dense layers."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(50, 24), nn.Embedding(20, 24)
        self.project, self.out = nn.Dense(72, flatten=False), nn.Dense(24, flatten=False)
        self.widen, self.narrow = nn.Dense(48, flatten=False), nn.Dense(24, flatten=False)
        self.first, self.second, self.act = nn.LayerNorm(), nn.LayerNorm(), nn.GELU()

    def hybrid_forward(self, F, tokens, lengths):
        x = F.broadcast_add(self.words(tokens), F.expand_dims(self.positions(F.contrib.arange_like(tokens, axis=1)), 0))
        x = F.transpose(x, axes=(1, 0, 2))
        steps = F.contrib.arange_like(tokens, axis=1)
        inside = F.broadcast_lesser(F.reshape(steps, (1, -1)), F.reshape(lengths, (-1, 1)))
        inside = F.expand_dims(F.reshape(F.repeat(F.expand_dims(inside, 1), 4, axis=1), (-3, 0)), 1)
        qkv = self.project(x)
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=4)
        weights = F.softmax(F.where(F.broadcast_like(inside, scores), scores, F.ones_like(scores) * -1e9))
        x = self.first(x + self.out(F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=4)))
        x = self.second(x + self.narrow(self.act(self.widen(x))))
        return F.SequenceMask(x, lengths, use_sequence_length=True), F.slice_axis(x, axis=0, begin=0, end=1).reshape((-1, 24))


class Language(gluon.HybridBlock):
    """Words through LSTM layers to scores of the next word; the states come in and go out."""

    def __init__(self):
        super().__init__()
        self.words, self.layers, self.out = nn.Embedding(30, 8), gluon.rnn.LSTM(12, num_layers=2, input_size=8), nn.Dense(30, flatten=False)

    def hybrid_forward(self, F, tokens, hidden, carried):
        x, (hidden, carried) = self.layers(self.words(tokens), [hidden, carried])
        return self.out(x), hidden, carried


class SSD(gluon.HybridBlock):
    """A detector at two scales, as GluonCV builds them: boxes are decoded, and those that overlap a better one of their class go."""

    classes, anchors = 3, 2

    def __init__(self, size=32):
        super().__init__()
        self.stem, self.more = nn.HybridSequential(), nn.HybridSequential()
        for part, channels in ((self.stem, 8), (self.stem, 16), (self.more, 16)):
            part.add(nn.Conv2D(channels, 3, strides=2, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
        self.scores, self.boxes = ([nn.Conv2D(self.anchors * n, 3, padding=1) for _ in range(2)] for n in (self.classes + 1, 4))
        for name, layers in (("scores", self.scores), ("boxes", self.boxes)):
            for i, layer in enumerate(layers):
                self.register_child(layer, f"{name}{i}")
        with self.name_scope():
            self.prior = self.params.get_constant("prior", self._prior(size))

    @classmethod
    def _prior(cls, size):
        """Centres and sizes of boxes at each place of both feature maps, (1, boxes, 4)."""
        found = []
        for cells in (size // 4, size // 8):
            places = (np.arange(cells) + 0.5) / cells
            for y in places:
                for x in places:
                    found += [(x, y, k / cells, k / cells) for k in (1.5, 3)]
        return mx.nd.array(np.array(found)[None])

    def hybrid_forward(self, F, x, prior):
        first = self.stem(x)
        maps = [first, self.more(first)]
        flat = [[F.reshape(F.transpose(layer(m), axes=(0, 2, 3, 1)), (0, -1, width)) for layer, m in zip(layers, maps)]
                for layers, width in ((self.scores, self.classes + 1), (self.boxes, 4))]
        scores, boxes = F.softmax(F.concat(*flat[0], dim=1), axis=-1), F.concat(*flat[1], dim=1)
        boxes = F.contrib.box_decode(boxes, prior, 0.1, 0.1, 0.2, 0.2, format="center")
        rows = []
        for i in range(self.classes):
            score = F.slice_axis(scores, axis=-1, begin=i + 1, end=i + 2)
            rows.append(F.concat(F.ones_like(score) * i, score, boxes, dim=-1))
        found = F.contrib.box_nms(F.concat(*rows, dim=1), overlap_thresh=0.45, valid_thresh=0.2, topk=60, id_index=0, score_index=1, coord_start=2)
        return F.slice_axis(found, axis=1, begin=0, end=60)


def encoder_inputs(rng, rows=2, length=7):
    """Words, and how many of them count."""
    return [rng.integers(0, 50, (rows, length)).astype(np.float32), rng.integers(1, length + 1, rows).astype(np.float32)]


def language_inputs(rng, length=5, rows=2):
    """Words, and the states of both layers."""
    return [rng.integers(0, 30, (length, rows)).astype(np.int32), *rng.standard_normal((2, 2, rows, 12)).astype(np.float32)]


def ssd_inputs(rng, rows=1):
    """Images."""
    return [rng.uniform(-1, 1, (rows, 3, 32, 32)).astype(np.float32)]


NETWORKS = {"encoder": (Encoder, encoder_inputs), "language model": (Language, language_inputs), "ssd": (SSD, ssd_inputs)}
