"""A short campaign with a fixed seed, and every case that failed once."""
import pytest

from fuzz import campaign, supervise

TARGETS = campaign.targets(["readers"])


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda t: t.name)
def test_mutated_files(target):
    count = 30 * target.share
    number, failed = campaign.run([target], seed=11, seconds=60, count=count)
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == count


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda t: t.name)
def test_what_is_mutated_is_good(target):
    assert [campaign.attempt(target, case) for case in target.seeds()] == [False] * len(target.seeds())


@pytest.mark.parametrize("path", sorted(supervise.CASES.glob("readers.*--*")), ids=lambda path: path.name)
def test_what_failed_once(path):
    assert not isinstance(campaign.attempt(TARGETS[path.name.split("--")[0]], path.read_bytes()), str)
