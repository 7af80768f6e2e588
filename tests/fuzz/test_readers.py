"""A short campaign with a fixed seed, and every case that failed once."""
import random

import pytest

from fuzz import campaign

SLOW = {"readers.image_record", "readers.detection", "readers.libsvm", "readers.csv", "readers.mnist"}  # these start threads


@pytest.mark.parametrize("name", campaign.targets())
def test_mutated_files(name):
    count = 50 if name in SLOW else 200
    number, failed = campaign.run([name], seed=11, seconds=60, count=count, report=lambda *_, **__: None)
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == count


@pytest.mark.parametrize("path", sorted(campaign.CASES.glob("*--*")), ids=lambda path: path.name)
def test_what_failed_once(path):
    assert campaign.attempt(campaign.targets()[path.name.split("--")[0]], path.read_bytes()) is None


def _target(run):
    return campaign.Target("some", lambda rng: bytes([rng.randrange(256)]), run)


def test_what_a_campaign_reports(monkeypatch):
    def fail(case):
        raise KeyError(case)

    def hang(case):
        while True:
            pass

    assert "KeyError: b'x'" in campaign.attempt(_target(fail), b"x")
    monkeypatch.setattr(campaign, "_SECONDS", 1)
    assert "took over 1 s" in campaign.attempt(_target(hang), b"x")
    assert "MiB" in campaign.attempt(_target(lambda case: bytearray(random.Random(0).randbytes(1 << 20) * 600)), b"x")
    monkeypatch.setattr(campaign, "targets", lambda: {"some": _target(fail)})
    number, failed = campaign.run([], seed=1, seconds=60, count=50, report=lambda *_, **__: None)
    assert number == 50 and len(failed) == 1  # one fault, once
