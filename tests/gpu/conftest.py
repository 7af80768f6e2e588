"""Simulated GPUs stand in where there are none: with a real one these tests are not collected."""
import pytest
import torch

collect_ignore_glob = ["test_simulated*.py"] if torch.cuda.is_available() else []


@pytest.fixture
def exact():
    """Products in full precision, so that a GPU's numbers can be compared with a processor's."""
    backends = torch.backends
    before = backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32
    backends.cudnn.allow_tf32 = backends.cuda.matmul.allow_tf32 = False
    yield
    backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32 = before
