import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import quantize  # noqa: E402  # examples are no package


@pytest.mark.parametrize("mode", ["naive", "entropy"])
def test_accuracy_stays(mode, capsys):
    pytest.importorskip("sklearn")
    before, after, agreement = quantize.main(["--epochs", "2", "--calib-mode", mode])
    assert before > .8 and abs(before - after) < .02 and agreement > .97
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("sg_mkldnn_conv_0 ") for line in lines) and lines[-1].startswith("equal predictions: ")
