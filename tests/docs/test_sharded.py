"""The tutorial of docs/sharded.md, with 4,096 classes instead of a million."""
import pathlib
import re

import mxnet as mx

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "sharded.md"


def test_the_tutorial_learns_its_task(tmp_path, monkeypatch, capsys):
    program = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    small = program.replace("1_000_000", "4096")
    assert small != program
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DMLC_ROLE", raising=False)
    mx.random.seed(0)
    names = {}
    exec(compile(small, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    losses = [float(text) for text in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) == 6 and losses[-1] < losses[0] - 3
    assert float(re.search(r"accuracy ([\d.]+) of 4096 classes", printed)[1]) > 0.8
    assert [path.name for path in tmp_path.iterdir()] == ["million"]  # the checkpoint
