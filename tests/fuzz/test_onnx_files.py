"""A short campaign with a fixed seed."""
from fuzz import campaign

TARGETS = campaign.targets(["onnx_files"])


def test_mutated_files():
    number, failed = campaign.run(list(TARGETS.values()), seed=11, seconds=60, count=80)
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == 80


def test_what_is_mutated_is_good():
    (target,) = TARGETS.values()
    assert [campaign.attempt(target, case) for case in target.seeds()] == [False] * 3
