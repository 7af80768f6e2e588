"""The parts that all command-line programs share."""
import argparse
import importlib
import os
import subprocess
import sys

import pytest

from mxnet.tools import command


def module(name):
    return importlib.import_module(f"mxnet.tools.{name.replace('-', '_')}")


@pytest.mark.parametrize(("started", "name", "expected"), [
    ("/usr/bin/remex", "parse-log", "remex parse-log"),
    (r"remex.exe", "rec", "remex rec"),
    ("/site/mxnet/tools/__main__.py", "rec", "remex rec"),
    ("/usr/bin/im2rec", "im2rec", "im2rec"),
    ("/site/mxnet/tools/im2rec.py", "im2rec", "python -m mxnet.tools.im2rec"),
    ("/site/mxnet/tools/parse_log.py", "parse-log", "python -m mxnet.tools.parse_log"),
])
def test_usage_names_the_program_as_it_was_started(monkeypatch, started, name, expected):
    monkeypatch.setattr(sys, "argv", [started])
    assert command.program(name) == expected


def arguments(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from arguments(sub)
        else:
            yield action


@pytest.mark.parametrize("name", command.COMMANDS)
def test_every_program_describes_itself_and_all_its_arguments(name):
    parser = module(name).build_parser()
    text = " ".join(parser.format_help().split())
    assert command.COMMANDS[name] in text and "Exit status: 0 on success" in text
    assert [action.dest for action in arguments(parser) if not action.help] == []


def test_defaults_are_shown_where_there_is_one():
    parser = command.parser("rec2idx")
    parser.add_argument("--size", type=int, default=3, help="of all")
    parser.add_argument("--name", help="of one")
    parser.add_argument("--fast", action="store_true", help="or slow")
    parser.add_argument("--no-order", dest="order", action="store_false", help="at random")
    text = parser.format_help()
    assert "of all (default: 3)\n" in text and "of one\n" in text and "or slow\n" in text and "at random\n" in text


@pytest.mark.parametrize("run", [["-m", "mxnet.tools.cli", "--help"], ["-m", "mxnet.tools.rec", "--help"],
                                 ["-c", "from mxnet.tools.command import command\n@command\ndef main(argv):\n    while True: print('line')\n"
                                        "raise SystemExit(main([]))"]])
def test_a_reader_that_has_gone_causes_no_traceback(run):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # argparse ignores the error of a write
    process = subprocess.Popen([sys.executable, *run], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(120) == 141
    process.stderr.close()


def test_an_interrupt_is_a_status():
    @command.command
    def main(argv=None):
        raise KeyboardInterrupt
    assert main() == 130


def test_errors_and_statuses_pass():
    @command.command
    def main(argv=None):
        if argv:
            raise ValueError("on purpose")
        return 3
    assert main() == 3
    with pytest.raises(ValueError, match="on purpose"):
        main(["x"])
