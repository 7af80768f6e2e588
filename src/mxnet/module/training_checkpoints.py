"""Checkpoints of the training of a `Module`; what they need is imported with the first one."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from ..training_checkpoint import PendingSave, Resumed


class TrainingCheckpoints:
    """A mixin of `Module`: checkpoints that are written while the training goes on."""

    def save_training(self, folder: str | os.PathLike[str], data: Any = None, epoch: int = 0, batch: int = 0,
                      epoch_over: bool = False) -> PendingSave:
        """Begin to write a checkpoint of the training; it goes on meanwhile. All workers call it after the same batch.

        It has parameters, auxiliary states, the optimizer with its states and counters, the random generators, and the position of `data`. Each
        worker writes a part; the checkpoint appears in the folder in one step, when all parts are there. The two newest are kept.

        Parameters
        ----------
        folder : str
            One that all workers share; made if it is not there.
        data : iterator, optional
            With ``state()`` and ``load_state()``.
        epoch, batch : int
            What `resume_training` is to return.
        epoch_over : bool
            True if `data` is at the end of an epoch, and not reset.

        Returns
        -------
        PendingSave
            ``wait()`` waits until it is complete, as the next call and the end of the program do.

        Raises
        ------
        MXNetError
            If there is no optimizer yet, or the kvstore is ``dist_async``; if the previous checkpoint could not be written.

        Example
        -------
        >>> import mxnet as mx, tempfile
        >>> folder, net = tempfile.mkdtemp(), mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=1), name='lro')
        >>> def module():
        ...     made = mx.mod.Module(net, label_names=['lro_label'])
        ...     made.bind([('data', (2, 3))], [('lro_label', (2, 1))])
        ...     made.init_params()
        ...     made.init_optimizer()
        ...     return made
        >>> module().save_training(folder, epoch=4).wait()
        >>> module().resume_training(folder)
        Resumed(epoch=4, batch=0, exact=True)
        """
        from ..training_checkpoint.training import folder_of
        from .module_checkpoint import ModuleTraining
        training = ModuleTraining(self, "save_training")
        return training.save(folder_of(self, folder, training.group), data, epoch, batch, epoch_over)

    def resume_training(self, folder: str | os.PathLike[str], data: Any = None) -> Resumed | None:
        """Continue from the newest checkpoint of `save_training`. All workers call it after `init_optimizer`.

        Parameters
        ----------
        folder : str
        data : iterator, optional
            Made with the arguments of the one that was saved.

        Returns
        -------
        Resumed or None
            ``epoch``, ``batch``, and ``exact``: False if the number of workers has changed. Then random generators and `data` are left alone,
            auxiliary states are those of worker 0, and with `data` the batch is 0: the epoch begins anew. None if there is no checkpoint.

        Raises
        ------
        MXNetError
            If the checkpoint is damaged, or belongs to another network or other data.
        """
        from ..training_checkpoint.training import folder_of
        from .module_checkpoint import ModuleTraining
        training = ModuleTraining(self, "resume_training")
        return training.resume(folder_of(self, folder, training.group), data)
