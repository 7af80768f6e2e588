"""Loggers that print coloured lines: level, time, process, place, message."""
from __future__ import annotations

import logging
import warnings
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]

_LABELS = {CRITICAL: "C", ERROR: "E", WARNING: "W", INFO: "I", DEBUG: "D"}
_RED, _GREEN, _BLUE, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[0m"


class _Formatter(logging.Formatter):
    def __init__(self):
        super().__init__("%(asctime)s %(process)d %(pathname)s:%(funcName)s:%(lineno)d]" + _PLAIN + " %(message)s", "%m%d %H:%M:%S")

    def format(self, record):
        color = _RED if record.levelno >= WARNING else _GREEN if record.levelno >= INFO else _BLUE
        return f"{color}{_LABELS.get(record.levelno, 'U')}{super().format(record)}"


def get_logger(name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING) -> logging.Logger:
    """Return a logger by name, configured at its first use; without a name the root logger, unchanged.

    Parameters
    ----------
    name : str, optional
    filename : str, optional
        Write to this file, without colours, instead of to the console.
    filemode : str, optional
        The mode for opening that file; ``'a'`` by default.
    level : int
        The lowest level that is written.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.log.get_logger('training', level=mx.log.INFO).level == mx.log.INFO
    True
    """
    logger = logging.getLogger(name)
    if name is not None and not getattr(logger, "_init_done", False):
        vars(logger)["_init_done"] = True
        handler: logging.Handler
        if filename:
            handler = logging.FileHandler(filename, filemode or "a")
        else:
            handler = logging.StreamHandler()
            handler.setFormatter(_Formatter())
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


def getLogger(name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING) -> logging.Logger:
    """Deprecated name of `get_logger`."""
    warnings.warn("getLogger is the old name of get_logger", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)
