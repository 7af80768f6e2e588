"""Each fault once or twice; `python -m tests.faults` does them a hundred times."""
import pytest

import faults


@pytest.mark.parametrize("fault, others", [("kill", 2), ("stop", 2), ("cut", 3)])
def test_every_other_worker_gets_an_error(fault, others):
    if faults.why_not(fault):
        pytest.skip(faults.why_not(fault))
    said, _, wrong = faults.once(fault, pause=0.2)
    assert not wrong
    assert len(said) == others and all(text.startswith("error ") and "The job can't go on" in text for text in said)
    if fault == "kill":
        assert all("has lost worker 2, which died or ended early" in text or "worker 2: " in text for text in said)
    else:
        # Worker 0 has the meeting point, and takes it along when it ends: on a busy machine worker 1 may notice first that it or worker 0 is gone.
        assert "worker 2: silent for" in said[0], said
        reasons = "worker 2: silent for", "whoever has that point is gone", "worker 0 has given up", "worker 0: has given up"
        assert any(reason in said[1] for reason in reasons), said


def test_killed_again_at_other_moments():
    for pause in 0.0, 0.35:
        assert faults.once("kill", pause=pause)[2] == ""
