"""The console command `remex`."""
import sys

import pytest

from mxnet.tools import cli, command, parse_log


def test_a_subcommand_is_the_program_of_its_module(tmp_path, capsys):
    log = tmp_path / "a.log"
    log.write_text("Epoch[0] Train-accuracy=0.5\n")
    assert cli.main(["parse-log", str(log), "--format", "none"]) == 0
    printed = capsys.readouterr().out
    assert parse_log.main([str(log), "--format", "none"]) == 0 and capsys.readouterr().out == printed == (
        "epoch\ttrain-accuracy\tval-accuracy\ttime\n1\t0.500000\t-\t-\n")
    assert cli.main(["parse-log", str(tmp_path / "none")]) == 1


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0 and all(f"{name} {help}" in text for name, help in command.COMMANDS.items())
    assert cli.main([]) == 2 and "usage: remex" in capsys.readouterr().err


def test_an_unknown_command_is_named_with_those_that_exist(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["diagnos"])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(
        "remex: error: there is no command 'diagnos', among diagnose, launch, im2rec, rec, rec2idx, profile, bandwidth, scaling, parse-log, convert, "
        "serve, completion; did you mean 'diagnose'?\n")


def test_the_version(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == "Remex 0.1.0 (the interface of MXNet 1.9.1)\n"


@pytest.mark.parametrize("shell", cli.SHELLS)
def test_completion_knows_the_arguments_of_all_commands(shell, capsys):
    shtab = pytest.importorskip("shtab")
    assert shell in shtab.SUPPORTED_SHELLS
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("parse-log", "latency-bound", "verify", "metric-names", "num-workers"))


def test_completion_without_its_package(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == "remex completion: this needs the package shtab: pip install 'remexnet[completion]'\n"
