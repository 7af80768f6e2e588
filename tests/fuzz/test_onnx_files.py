"""A short campaign with a fixed seed."""
from fuzz import campaign

TARGETS = campaign.targets(["onnx_files"])


def test_mutated_files():
    number, failed = campaign.run(list(TARGETS.values()), seed=11, seconds=60, count=160)
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == 160


def test_what_is_mutated_is_good():
    good = {name: [campaign.attempt(target, case) for case in target.seeds()] for name, target in TARGETS.items()}
    assert good == {"onnx_files.models": [False] * 3, "onnx_files.parts": [False] * 5, "onnx_files.node": [False] * 2}
