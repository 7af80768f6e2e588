"""A few kills in each writer; `python -m tests.fuzz --kills 1000` does many."""
import pytest

from fuzz import kills


@pytest.mark.parametrize("name", kills.WRITERS)
def test_killed_writers_leave_a_whole_file_and_the_next_save_nothing_else(name):
    assert kills.kill_writer(name, 4, seed=2, report=lambda text: None) == []
