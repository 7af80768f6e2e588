"""What docs/torch.md shows is run."""
import pathlib
import re

import mxnet as mx

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "torch.md"


def test_the_page_runs(capsys):
    mx.random.seed(3)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 5
    namespace = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)
    assert " ".join(capsys.readouterr().out.split()) in " ".join(PAGE.read_text().split())
