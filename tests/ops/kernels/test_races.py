"""Who is the fastest, and that it is found out once for each machine."""
import json
import threading

import pytest

from mxnet.ops.kernels import compiled
from mxnet.ops.kernels.races import Races


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only where a run says so."""
    now = [0.0]
    for clock in ("perf_counter", "thread_time"):
        monkeypatch.setattr(f"mxnet.ops.kernels.races.time.{clock}", lambda: now[0])

    def taking(seconds):
        ran = []

        def run():
            ran.append(seconds)
            now[0] += seconds
        run.ran = ran
        return run
    return taking


@pytest.fixture
def races(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    return Races("tested", "winograd")


def kept():
    path, = compiled.folder().glob("tested-*.json")
    return path


@pytest.mark.parametrize("second, third, winner", [(2.0, 3.0, "first"), (0.5, 3.0, "second"), (0.5, 0.3, "third"), (0.98, 2.0, "first")])
def test_the_fastest_wins_and_the_first_unless_another_is_clearly_ahead(clock, races, second, third, winner):
    assert races.winner("a", {"first": clock(1.0), "second": clock(second), "third": clock(third)}) == winner


def test_short_runs_are_repeated_and_long_ones_are_not(clock, races):
    short, long = clock(0.001), clock(1.0)
    races.winner("short", {"one": short, "other": clock(0.002)})
    races.winner("long", {"one": long, "other": clock(2.0)})
    assert (len(short.ran), len(long.ran)) == (4, 2)


def test_winners_are_kept_on_disk(clock, races):
    assert races.winner("a", {"slow": clock(2.0), "fast": clock(1.0)}) == "fast"
    assert races.winner("b", {"slow": clock(2.0), "fast": clock(3.0)}) == "slow"
    assert json.loads(kept().read_text()) == {"a": "fast", "b": "slow"}
    idle = clock(5.0)
    assert Races("tested", "winograd").winner("a", {"slow": idle, "fast": idle}) == "fast" and not idle.ran


def test_what_another_process_has_found_stays(clock, races):
    races.winner("a", {"slow": clock(2.0), "fast": clock(1.0)})
    Races("tested", "winograd").winner("b", {"slow": clock(2.0), "fast": clock(1.0)})
    races.winner("c", {"slow": clock(2.0), "fast": clock(1.0)})
    assert sorted(json.loads(kept().read_text())) == ["a", "b", "c"]


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 7}', '{"a": "gone"}', "\udcff"])
def test_a_damaged_file_only_costs_the_race(clock, races, content):
    races.winner("a", {"slow": clock(2.0), "fast": clock(1.0)})
    kept().write_bytes(content.encode("utf-8", "surrogateescape"))
    races.forget()
    assert races.winner("a", {"slow": clock(2.0), "fast": clock(1.0)}) == "fast"
    assert json.loads(kept().read_text()) == {"a": "fast"}


def test_a_race_of_another_thread_is_not_waited_for(clock, races):
    found = []

    def run():
        thread = threading.Thread(target=lambda: found.append(races.winner("b", {"slow": clock(2.0), "fast": clock(1.0)})))
        thread.start()
        thread.join(60)

    races.winner("a", {"only": run})
    assert found[0] == "slow"
    assert races.winner("b", {"slow": clock(2.0), "fast": clock(1.0)}) == "fast"
