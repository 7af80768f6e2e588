"""The common part of the command-line programs: their names, the look of their help, their exit statuses, and output into closed pipes."""
from __future__ import annotations

import argparse
import functools
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Optional

# By name on the command line; the module is `mxnet.tools.<name>`, with underscores.
COMMANDS = {
    "diagnose": "Print a report for bug reports: the machine, the versions, the kernels and backends in use, and detected problems.",
    "launch": "Start the processes of a distributed job.",
    "im2rec": "Make a list of images, or pack the images of a list into a RecordIO file.",
    "rec": "Inspect a RecordIO file, find what is damaged in it, and repair it.",
    "rec2idx": "Write the index of a RecordIO file.",
    "profile": "Write an HTML page about a profile, and print its main numbers.",
    "bandwidth": "Measure how long a kvstore takes to add up a network's gradients.",
    "scaling": "Predict the efficiency of up to 1,024 workers.",
    "parse-log": "Make a table from the log of a training program.",
    "convert": "Move a network with its weights between MXNet's model zoo and torchvision's.",
    "serve": "Serve models over HTTP, for clients of KServe, SageMaker and Multi Model Server.",
}
INTERRUPTED = 130  # the shell's exit status of a program that was ended by Ctrl-C (SIGINT)
BROKEN_PIPE = 141  # and of one whose reader has gone (SIGPIPE)
_SILENT = (None, False, "", [], argparse.SUPPRESS)
STATUSES = "Exit status: 0 on success, 1 on failure, 2 for wrong arguments, 130 after Ctrl-C, 141 if the reader of its output has gone."


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with the default of each option that takes a value and has one; the epilog keeps its lines."""

    def _get_help_string(self, action: argparse.Action) -> Optional[str]:
        text = action.help
        if text and action.option_strings and action.nargs != 0 and action.default not in _SILENT and "%(default)" not in text:
            text += " (default: %(default)s)"
        return text


def program(name: str) -> str:
    """Return how the running process was started, for usage lines: ``remex NAME``, a console script's own name, or ``python -m mxnet.tools.NAME``.

    Example
    -------
    >>> from mxnet.tools import command
    >>> command.program("parse-log")
    'python -m mxnet.tools.parse_log'
    """
    started = pathlib.PurePath(sys.argv[0])
    script = started.stem if started.suffix in ("", ".exe") else ""
    if script == name:
        return name
    if script == "remex" or started.parts[-2:] == ("tools", "__main__.py"):
        return f"remex {name}"
    return f"python -m mxnet.tools.{name.replace('-', '_')}"


def parser(name: str, epilog: str = "", statuses: str = STATUSES) -> argparse.ArgumentParser:
    """Return a parser for the command of this name, without arguments yet; its help ends with `epilog` and the exit statuses."""
    text = f"{epilog}\n\n{statuses}" if epilog else statuses
    return argparse.ArgumentParser(program(name), description=COMMANDS[name], epilog=text, formatter_class=HelpFormatter)


def command(main: Callable[[Optional[Sequence[str]]], int]) -> Callable[..., int]:
    """Make a program's `main` end quietly, with an exit status, if the reader of its output has gone (``| head``) or the user interrupts it.

    Example
    -------
    >>> from mxnet.tools import command
    >>> @command.command
    ... def main(argv=None):
    ...     raise KeyboardInterrupt
    >>> main([])
    130
    """
    @functools.wraps(main)
    def run(argv: Optional[Sequence[str]] = None) -> int:
        try:
            try:
                return main(argv)
            finally:  # also behind argparse's SystemExit for --help
                sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes again at its end, and would report the error that this pipe has.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            return BROKEN_PIPE
        except KeyboardInterrupt:
            return INTERRUPTED
    return run
