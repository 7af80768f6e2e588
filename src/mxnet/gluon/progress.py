"""`Progress`: resumable training state, which restores position, parameters and optimizer after a restart."""
from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..kvstore.updates import joined_store
from ..resumption import PARAMETERS, STATES, Saves
from .block import Block
from .trainer import Trainer
from .utils import UsageError

if TYPE_CHECKING:
    from .rescue import Rescue

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
    rescue : bool
        If a worker is lost, the others save their weights, and a job that a launcher starts again goes on with the step that was under way. Each
        worker notes its position in each step. All share the folder, and the trainer updates the weights itself (``update_on_kvstore=False``).
        SIGTERM then ends the process at its next step, after such a save.

    Raises
    ------
    UsageError
        If there is something to go on from, and the trainer has done steps; if `rescue` does not go with the trainer.
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

    def __init__(self, folder: str | os.PathLike[str], net: Block, trainer: Trainer, data: Any, every: int | None = None,
                 rescue: bool = False) -> None:
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
        self._steps = 0  # updates since the beginning of the training
        self._rescue = self._make_rescue() if rescue else None
        save = self._saves.newest()
        rescued = self._rescue.newest(save.steps if save else 0, self._saves.agree) if self._rescue else None
        if save is None and rescued is None:
            return
        if trainer._kv_initialized:
            raise UsageError(f"Progress: {folder} has a training to go on from, and this trainer has begun another one; make Progress before its "
                             "first step")
        self._load(rescued[0] if rescued else save.path)  # type: ignore[union-attr]  # one of the two is there
        if rescued and self._rescue:
            note = rescued[1]
            self._rescue.restore(note, data)
            self.epoch, self.batch, self._steps = note.epoch, note.batch, note.steps
        elif save:
            save.restore_position(data)
            self.epoch, self.batch, self._steps = save.epoch, save.batch, save.steps

    def _load(self, folder: str) -> None:
        self._net.load_parameters(os.path.join(folder, PARAMETERS), ctx=self._trainer._contexts)
        # Each worker has moving averages of its own, and the kvstore is about to bring those of worker 0.
        own = [(array, array.copy()) for array in self._own().values()]
        self._trainer.load_states(os.path.join(folder, STATES))
        for array, value in own:
            value.copyto(array)

    def _own(self) -> dict[str, Any]:
        """Return moving averages and the like, of which each worker has its own."""
        return {f"{name}/{i}": array for name, p in self._net._collect_params_with_prefix().items() if p.grad_req == "null"
                for i, array in enumerate(p.list_data())}

    def _make_rescue(self) -> Rescue:
        trainer = self._trainer
        wanted = trainer._kvstore_params["update_on_kvstore"]
        if wanted or trainer._update_on_kvstore or trainer._contains_sparse_weight:
            raise UsageError("Progress: rescue needs weights that only the Trainer updates, after all sums: leave out update_on_kvstore=True")
        if trainer._sharded:
            raise UsageError("Progress: rescue is for data parallelism, and a lost worker has rows of split weights; use save_training")
        from .rescue import Rescue
        if self._saves._net is not None:
            self._saves._net.sum_in_order()
            self._saves._net.prepare_channel()  # before SIGTERM, by which launchers end the others, is deferred
        trainer._kvstore_params["update_on_kvstore"] = False
        trainer._rescue = self
        return Rescue(self._saves.folder, self._saves.rank, self._saves.workers, self._own)

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
        self._saves.write(self._write, self._data, self.epoch, self.batch, epoch_over, self._steps)
        if self._rescue:
            self._rescue.remove()

    def _write(self, folder: str) -> None:
        self._net.save_parameters(os.path.join(folder, PARAMETERS))
        self._trainer.save_states(os.path.join(folder, STATES))

    # -- called by the trainer in each step, with rescue=True ------------------------------------------------------------------------

    def before_step(self) -> None:
        """Note the position after this step; end the process instead if it was asked to."""
        if self._rescue is None:
            return
        if self._rescue.terminated:
            self._rescue.save(self._steps, self._write)
            raise SystemExit(128 + signal.SIGTERM)
        self._rescue.note(self._steps + 1, self.epoch, self.batch + 1, self._data)

    def after_sums(self) -> None:
        """Count a step, whose update follows."""
        self._steps += 1

    def lost(self) -> None:
        """Save the weights, which the step has not changed."""
        if self._rescue is not None:
            self._rescue.save(self._steps, self._write)

