"""A short campaign with a fixed seed, and every case that failed once."""
import pytest

from fuzz import campaign, supervise

SLOW = {"readers.image_record", "readers.detection", "readers.libsvm", "readers.csv", "readers.mnist"}  # these start threads


@pytest.mark.parametrize("target", campaign.targets(["readers"]).values(), ids=lambda t: t.name)
def test_mutated_files(target):
    count = 50 if target.name in SLOW else 200
    number, failed = campaign.run([target], seed=11, seconds=60, count=count)
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == count


@pytest.mark.parametrize("path", sorted(supervise.CASES.glob("readers.*--*")), ids=lambda path: path.name)
def test_what_failed_once(path):
    assert not isinstance(campaign.attempt(campaign.targets()[path.name.split("--")[0]], path.read_bytes()), str)
