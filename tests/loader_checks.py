"""Data sets that tests of loaders share."""
import numpy as np

from mxnet.gluon.data import Dataset


class Numbers(Dataset):
    """Large enough samples for batches to go through shared memory."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return np.full((3, 100, 100), i, "float32"), i


class Failing(Dataset):
    """Calls `action` when sample 2 of its 4 is asked for."""

    def __init__(self, action):
        self.action = action

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 2:
            self.action()
        return i
