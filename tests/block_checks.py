"""What the tests of blocks share."""
from mxnet import gluon
from mxnet.gluon import nn


class Net(gluon.HybridBlock):
    """Two layers that share parameters behind a third."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.a = nn.Dense(2, in_units=3)
            self.b = nn.Dense(2, in_units=2)
            self.c = nn.Dense(2, in_units=2, params=self.b.params)

    def hybrid_forward(self, F, x):
        return self.c(self.b(self.a(x)))
