"""Metrics for TensorBoard."""
from __future__ import annotations

import logging
from typing import Any


class LogMetricsCallback:
    """A callback that writes metrics to TensorBoard's event files; it needs ``mxboard`` or PyTorch's ``tensorboard``.

    Parameters
    ----------
    logging_dir : str
        Where the files go; look at them with ``tensorboard --logdir=...``.
    prefix : str, optional
        The prefix of the names of the metrics, which distinguishes several runs.
    """

    def __init__(self, logging_dir: str, prefix: str | None = None):
        self.prefix = prefix
        self.summary_writer = _writer(logging_dir)
        if self.summary_writer is None:
            logging.error("neither mxboard nor tensorboard is installed; `pip install tensorboard` is enough")

    def __call__(self, param: Any) -> None:
        """Write the metrics of `param.eval_metric` for the epoch `param.epoch`."""
        if param.eval_metric is None or self.summary_writer is None:
            return
        for name, value in param.eval_metric.get_name_value():
            self.summary_writer.add_scalar(name if self.prefix is None else f"{self.prefix}-{name}", value, global_step=param.epoch)


def _writer(logging_dir):
    try:
        from mxboard import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return None
    return SummaryWriter(logging_dir)
