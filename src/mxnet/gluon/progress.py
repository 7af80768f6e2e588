"""`Progress`: resumable training state, which restores position, parameters and optimizer after a restart."""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..kvstore.updates import joined_store
from ..resumption import PARAMETERS, STATES, Saves
from .block import Block
from .trainer import Trainer
from .utils import UsageError

__all__ = ["Progress"]


class Progress:
    """The epochs and batches of a training run whose state is saved in a folder, from which a restarted program resumes.

    Saved are the parameters, the optimizer and its states, how far the data are, and the random generators of NumPy, Python and this thread, so
    that the training ends with the weights of one that was never interrupted. A save is complete or not there. In a job each worker saves its
    own, and all start from the newest save that all of them have; if their number has changed, they take worker 0's, and the epoch begins anew.

    Parameters
    ----------
    folder : str
        Where saves are. For jobs whose number of workers changes, or that may come to other machines, one that all machines share.
    net : Block
    trainer : Trainer
        Whose kvstore's workers go in step.
    data : DataLoader or DataIter
        Anything with ``state()`` and ``load_state()``.
    every : int, optional
        Save after so many batches, too, not only after each epoch.

    Raises
    ------
    UsageError
        If there is something to go on from, and the trainer has done steps.
    MXNetError
        If the saved state is damaged or belongs to another network, trainer or data iterator.

    Example
    -------
    >>> import mxnet as mx, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((6, 3)), mx.nd.ones((6, 1))), batch_size=2)
    >>> def train(epochs):
    ...     net = mx.gluon.nn.Dense(1, in_units=3)
    ...     net.initialize()
    ...     trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', optimizer_params={'learning_rate': 0.1})
    ...     progress = mx.gluon.Progress(folder, net, trainer, data)
    ...     for epoch in progress.epochs(epochs):
    ...         for x, y in progress.batches():
    ...             with mx.autograd.record():
    ...                 loss = mx.gluon.loss.L2Loss()(net(x), y)
    ...             loss.backward()
    ...             trainer.step(2)
    ...         print('epoch', epoch, 'is over')
    >>> train(2)
    epoch 0 is over
    epoch 1 is over
    >>> train(3)
    epoch 2 is over
    """

    def __init__(self, folder: str | os.PathLike[str], net: Block, trainer: Trainer, data: Any, every: int | None = None) -> None:
        if every is not None and every < 1:
            raise UsageError(f"Progress: every is a number of batches from 1 on, received {every}")
        self._net, self._trainer, self._data, self._every = net, trainer, data, every
        params = trainer._kvstore_params
        store = trainer._kvstore
        if not trainer._kv_initialized:
            store = params["kvstore"] = joined_store(params["kvstore"])
        self._saves = Saves(folder, None if isinstance(store, str) else store)
        #: The epoch that comes next, or is under way.
        self.epoch = 0
        #: How many of its batches were trained on.
        self.batch = 0
        save = self._saves.newest()
        if save is None:
            return
        if trainer._kv_initialized:
            raise UsageError(f"Progress: {folder} has a training to go on from, and this trainer has begun another one; make Progress before its "
                             "first step")
        net.load_parameters(os.path.join(save.path, PARAMETERS), ctx=trainer._contexts)
        # Each worker has moving averages of its own, and the kvstore is about to bring those of worker 0.
        own = [(array, array.copy()) for p in net.collect_params().values() if p.grad_req == "null" for array in p.list_data()]
        trainer.load_states(os.path.join(save.path, STATES))
        for array, value in own:
            value.copyto(array)
        save.restore_position(data)
        self.epoch, self.batch = save.epoch, save.batch

    def epochs(self, count: int) -> Iterator[int]:
        """Iterate over the remaining epoch numbers below `count`; the first may be partly done already."""
        while self.epoch < count:
            before = self.epoch
            yield before
            if self.epoch == before:
                raise UsageError("Progress: an epoch has ended without its batches; go over all of batches() within it")

    def batches(self) -> Iterator[Any]:
        """Iterate over the remaining batches of the epoch; a batch counts as done when the next one is requested."""
        for batch in self._data:
            yield batch
            self.batch += 1
            if self._every and self.batch % self._every == 0:
                self._save(False)
        self.epoch, self.batch = self.epoch + 1, 0
        if hasattr(self._data, "reset"):  # a DataLoader begins anew by itself
            self._data.reset()
        self._save(not hasattr(self._data, "reset"))

    def _save(self, epoch_over: bool) -> None:
        def save(folder: str) -> None:
            self._net.save_parameters(os.path.join(folder, PARAMETERS))
            self._trainer.save_states(os.path.join(folder, STATES))
        self._saves.write(save, self._data, self.epoch, self.batch, epoch_over)
