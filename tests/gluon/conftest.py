import pytest

import mxnet as mx
from block_checks import Net


@pytest.fixture
def net():
    block = Net(prefix="n_")
    block.initialize(mx.init.Uniform(1))
    return block
