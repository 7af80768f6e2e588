"""The verdicts of `tests.rescues` on jobs whose workers were killed."""
import pytest
from tests import rescues

PLAN = [{3: ("step", 0.1), 1: ("step", 0.1)}, {0: ("start", 0.2)}, {2: ("step", 0.1)}]


def logs(of_worker_1):
    """Return the logs of four workers with two batches an epoch; those of the others have each step once, in attempt 3."""
    everything = [("0", "3", str(step // 2), str(step % 2 + 1)) for step in range(rescues.STEPS)]
    return [everything, [*of_worker_1, *everything], everything, everything]


@pytest.mark.parametrize("attempt, wrong", [
    (0, ""),  # it was killed there; nobody did a step in attempt 1
    (1, "epoch and batch ['0', '2'] done by worker 1 in attempts 1 and 3; killed in the first: [0]"),
    (9, "epoch and batch ['0', '2'] done by worker 1 in attempts 9 and 3; killed in the first: []"),
    (2, "epoch and batch ['0', '2'] done by worker 1 in attempts 2 and 3; killed in the first: [2]")])
def test_only_a_worker_that_was_killed_after_a_step_may_do_it_again(attempt, wrong):
    assert rescues.judge(PLAN, "same", "same", logs([("0", str(attempt), "0", "2")])) == wrong


def test_other_weights_and_missing_steps_are_wrong():
    assert rescues.judge(PLAN, "same", "other", logs([])) == "other weights"
    assert rescues.judge(PLAN, "same", "same", [log[1:] for log in logs([])]) == "399 steps instead of 400"
