"""The console command ``remex``: one entry point for all programs of `mxnet.tools`, as subcommands."""
from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Optional

from .. import libinfo
from ..installation import DISTRIBUTION
from ..suggestions import did_you_mean
from .command import COMMANDS, HelpFormatter, command

SHELLS = ("bash", "zsh", "fish")
_COMPLETION = "Print a completion script for a shell."


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"mxnet.tools.{name.replace('-', '_')}")


def build_parser(complete: bool = False) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Parameters
    ----------
    complete : bool
        Give each subcommand the arguments of its own program, which imports all of these; otherwise it has none.
    """
    parser = argparse.ArgumentParser("remex", description="The command-line programs of Remex; `remex COMMAND --help` describes each.",
                                     formatter_class=HelpFormatter)
    parser.add_argument("--version", action="version", version=f"Remex {libinfo.remex_version} (the interface of MXNet {libinfo.__version__})")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in COMMANDS.items():
        parents = [_module(name).build_parser()] if complete else []
        commands.add_parser(name, help=text, description=text, parents=parents, add_help=not parents, formatter_class=HelpFormatter)
    shells = commands.add_parser("completion", help=_COMPLETION, description=_COMPLETION, formatter_class=HelpFormatter, epilog=(
        "bash: remex completion bash > ~/.local/share/bash-completion/completions/remex\n"
        "zsh:  remex completion zsh > ~/.zfunc/_remex   (a folder of $fpath)\n"
        "fish: remex completion fish > ~/.config/fish/completions/remex.fish"))
    shells.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    return parser


def _complete(shell: str) -> int:
    try:
        import shtab
    except ImportError:
        print(f"remex completion: this needs the package shtab: pip install '{DISTRIBUTION}[completion]'", file=sys.stderr)
        return 1
    if shell not in shtab.SUPPORTED_SHELLS:
        print(f"remex completion: shtab {shtab.__version__} has no {shell}: pip install --upgrade shtab", file=sys.stderr)
        return 1
    print(shtab.complete(build_parser(complete=True), shell))
    return 0


@command
def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the program; return the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and given[0] in COMMANDS:
        return _module(given[0]).main(given[1:])
    parser = build_parser()
    if not given:
        parser.print_help(sys.stderr)
        return 2
    if not given[0].startswith("-") and given[0] != "completion":
        names = [*COMMANDS, "completion"]
        parser.error(f"there is no command {given[0]!r}, among {', '.join(names)}{did_you_mean(given[0], names)}")
    return _complete(parser.parse_args(given).shell)


if __name__ == "__main__":
    sys.exit(main())
