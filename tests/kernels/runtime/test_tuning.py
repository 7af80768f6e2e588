"""The autotuner: the choice of the fastest, once for each machine, and the tuning cache."""
import json
import threading

import pytest

from mxnet.kernels.runtime import libraries, measurement
from mxnet.kernels.runtime import tuning as module
from mxnet.kernels.runtime.tuning import Autotuner, TuningCache


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only where a run says so."""
    now = [0.0]
    monkeypatch.setattr(measurement.processor, "waited", lambda: taking.waiting * now[0])
    for clock in ("perf_counter", "thread_time"):
        monkeypatch.setattr(f"mxnet.kernels.runtime.measurement.time.{clock}", lambda: now[0])

    def taking(seconds):
        ran = []

        def run():
            ran.append(seconds)
            now[0] += seconds
        run.ran = ran
        return run
    taking.waiting = 0.0  # the share of that time in which threads wait for a processor
    return taking


@pytest.fixture
def autotuner(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    return Autotuner("tested", "conv/winograd")


def kept():
    path, = libraries.folder().glob("tested-*.json")
    return path


@pytest.mark.parametrize("second, third, winner", [(2.0, 3.0, "first"), (0.5, 3.0, "second"), (0.5, 0.3, "third"), (0.98, 2.0, "first")])
def test_the_fastest_wins_and_the_first_unless_another_is_clearly_ahead(clock, autotuner, second, third, winner):
    assert autotuner.fastest("a", {"first": clock(1.0), "second": clock(second), "third": clock(third)}) == winner


def test_short_runs_are_repeated_and_long_ones_are_not(clock, autotuner):
    short, long = clock(0.001), clock(1.0)
    autotuner.fastest("short", {"one": short, "other": clock(0.002)})
    autotuner.fastest("long", {"one": long, "other": clock(2.0)})
    assert (len(short.ran), len(long.ran)) == (4, 2)


def test_who_is_far_behind_runs_no_second_time(clock, autotuner):
    near, far = clock(0.0011), clock(0.0016)
    assert autotuner.fastest("a", {"best": clock(0.001), "near": near, "far": far}) == "best"
    assert (len(near.ran), len(far.ran)) == (4, 2)  # the first time of each does not count


def test_what_came_with_the_package_serves_where_nothing_is_kept(clock, autotuner, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(module.processor, "design", lambda: "Maker-7-wide")
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "tested-Maker-7-wide.json").write_text('{"a": "slow", "b": "gone"}')
    idle = clock(5.0)
    assert autotuner.fastest("a", {"fast": idle, "slow": idle}) == "slow" and not idle.ran
    assert autotuner.fastest("b", {"fast": clock(1.0), "slow": clock(2.0)}) == "fast"  # no such way any more
    autotuner.keep("a", "fast")
    assert autotuner.fastest("a", {"fast": idle, "slow": idle}) == "fast"
    monkeypatch.setattr(module.processor, "design", lambda: "Maker-8-wide")
    assert Autotuner("tested", "conv/winograd").get("c") is None and Autotuner("tested", "conv/winograd").shipped("a") is None


def test_paused_benchmarks_are_paused_in_one_thread(monkeypatch):
    found = []
    monkeypatch.setattr(module, "unreliable", lambda: False)  # whatever other programs do
    with module.paused():
        other = threading.Thread(target=lambda: found.append(module.postponed()))
        other.start()
        other.join()
        with module.paused():
            pass
        found.append(module.postponed())
    assert [*found, module.postponed()] == [False, True, False]


def test_winners_are_kept_on_disk(clock, autotuner):
    assert autotuner.fastest("a", {"slow": clock(2.0), "fast": clock(1.0)}) == "fast"
    assert autotuner.fastest("b", {"slow": clock(2.0), "fast": clock(3.0)}) == "slow"
    assert json.loads(kept().read_text()) == {"a": "fast", "b": "slow"}
    idle = clock(5.0)
    assert Autotuner("tested", "conv/winograd").fastest("a", {"slow": idle, "fast": idle}) == "fast" and not idle.ran


def test_who_wins_narrowly_while_other_programs_run_counts_in_this_process_only(clock, autotuner):
    clock.waiting = 0.12
    assert autotuner.fastest("a", {"slow": clock(1.1), "fast": clock(1.0)}) == "fast"
    idle = clock(5.0)
    assert autotuner.fastest("a", {"slow": idle, "fast": idle}) == "fast" and not idle.ran and not list(libraries.folder().glob("tested-*"))
    clock.waiting = 0.08
    autotuner.fastest("b", {"slow": clock(1.1), "fast": clock(1.0)})
    assert json.loads(kept().read_text()) == {"b": "fast"}
    assert Autotuner("tested", "conv/winograd").fastest("a", {"slow": clock(1.0), "fast": clock(1.1)}) == "slow"
    assert json.loads(kept().read_text()) == {"a": "slow", "b": "fast"}
    autotuner.forget()
    assert autotuner.get("a") == "slow"  # what is kept by now


@pytest.mark.parametrize("second, known", [(1.15, False), (1.25, True)])
def test_who_is_far_ahead_is_kept_whatever_else_runs(clock, autotuner, second, known):
    clock.waiting = 0.5
    assert autotuner.fastest("a", {"slow": clock(2.0), "fast": clock(1.0), "third": clock(second)}) == "fast"
    assert bool(list(libraries.folder().glob("tested-*"))) is known


def test_what_another_process_has_found_stays(clock, autotuner):
    autotuner.fastest("a", {"slow": clock(2.0), "fast": clock(1.0)})
    Autotuner("tested", "conv/winograd").fastest("b", {"slow": clock(2.0), "fast": clock(1.0)})
    autotuner.fastest("c", {"slow": clock(2.0), "fast": clock(1.0)})
    assert sorted(json.loads(kept().read_text())) == ["a", "b", "c"]


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 7}', '{"a": "gone"}', "\udcff"])
def test_a_damaged_file_only_costs_the_race(clock, autotuner, content):
    autotuner.fastest("a", {"slow": clock(2.0), "fast": clock(1.0)})
    kept().write_bytes(content.encode("utf-8", "surrogateescape"))
    autotuner.forget()
    assert autotuner.fastest("a", {"slow": clock(2.0), "fast": clock(1.0)}) == "fast"
    assert json.loads(kept().read_text()) == {"a": "fast"}


def test_a_race_of_another_thread_is_not_waited_for(clock, autotuner):
    found = []

    def run():
        thread = threading.Thread(target=lambda: found.append(autotuner.fastest("b", {"slow": clock(2.0), "fast": clock(1.0)})))
        thread.start()
        thread.join(60)

    autotuner.fastest("a", {"only": run})
    assert found[0] == "slow"
    assert autotuner.fastest("b", {"slow": clock(2.0), "fast": clock(1.0)}) == "fast"


def test_where_no_race_is_allowed_the_first_runs_unless_another_is_known(clock, autotuner, monkeypatch):
    monkeypatch.setenv("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")
    slow, fast = clock(2.0), clock(1.0)
    assert autotuner.fastest("a", {"slow": slow, "fast": fast}) == "slow" and not slow.ran and not fast.ran
    assert not list(libraries.folder().glob("tested-*"))
    autotuner.keep("a", "fast")
    assert autotuner.fastest("a", {"slow": slow, "fast": fast}) == "fast" and not fast.ran
    monkeypatch.setenv("MXNET_CUDNN_AUTOTUNE_DEFAULT", "1")
    assert autotuner.fastest("b", {"slow": slow, "fast": fast}) == "fast" and fast.ran


def test_a_race_that_fails_lets_others_race(clock, autotuner):
    with pytest.raises(ZeroDivisionError):
        autotuner.fastest("a", {"slow": clock(2.0), "fails": lambda: 1 / 0})
    assert autotuner.get("a") is None and autotuner.fastest("a", {"slow": clock(2.0), "fast": clock(1.0)}) == "fast"


# -- what is kept, of whatever kind --------------------------------------------------------------------------------------


@pytest.fixture
def tuning_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    return TuningCache("tested", "conv/winograd")


def test_what_is_kept_is_known_here_and_to_the_next_process(tuning_cache):
    assert tuning_cache.get("a") is None and not tuning_cache.path.exists()
    tuning_cache.keep("a", "one")
    tuning_cache.keep("b", "other")
    assert tuning_cache.path == kept() and (tuning_cache.get("a"), tuning_cache.get("b"), tuning_cache.get("c")) == ("one", "other", None)
    tuning_cache.keep("a", "other")
    again = TuningCache("tested", "conv/winograd")
    assert (again.get("a"), again.get("b")) == ("other", "other")


def test_what_is_forgotten_is_gone_and_others_stay(tuning_cache):
    tuning_cache.keep("a", "one")
    tuning_cache.keep("b", "other")
    tuning_cache.keep("a", None)
    tuning_cache.keep("c", None)  # it was never there
    assert tuning_cache.get("a") is None and tuning_cache.get("b") == "other" and json.loads(kept().read_text()) == {"b": "other"}


def test_what_another_process_keeps_is_seen_with_the_next_that_is_kept_here_or_when_all_is_read_again(tuning_cache):
    assert tuning_cache.get("a") is None
    TuningCache("tested", "conv/winograd").keep("a", "one")
    assert tuning_cache.get("a") is None  # a file is read once
    tuning_cache.keep("b", "other")
    assert tuning_cache.get("a") == "one"
    TuningCache("tested", "conv/winograd").keep("a", "two")
    tuning_cache.forget()
    assert tuning_cache.get("a") == "two"


def test_each_kind_has_a_file_and_so_has_each_version_of_the_kernels(tuning_cache, monkeypatch):
    others = [TuningCache("other", "conv/winograd"), TuningCache("tested", "conv/winograd", "conv/prepacked_conv"),
              TuningCache("tested", "conv/prepacked_conv")]
    names = {other.path.name for other in [tuning_cache, *others]}
    monkeypatch.setattr(libraries, "FLAGS", ("-O7",))
    names.add(TuningCache("tested", "conv/winograd").path.name)
    assert len(names) == 5 and sum(name.startswith("tested-") for name in names) == 4


def test_another_folder_is_another_machine(tuning_cache, monkeypatch, tmp_path):
    tuning_cache.keep("a", "one")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "other"))
    assert tuning_cache.get("a") is None
    tuning_cache.keep("a", "two")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    assert tuning_cache.get("a") == "one"


def test_a_disk_that_takes_nothing_costs_only_the_next_process(tuning_cache):
    tuning_cache.path.mkdir(parents=True)
    assert tuning_cache.get("a") is None
    tuning_cache.keep("a", "one")
    assert tuning_cache.get("a") == "one" and TuningCache("tested", "conv/winograd").get("a") is None
    tuning_cache.keep("a", None)
    assert tuning_cache.get("a") is None


def test_a_file_that_is_too_large_is_none_of_ours_and_begins_anew(tuning_cache, monkeypatch):
    tuning_cache.keep("a", "one")
    size = kept().stat().st_size
    monkeypatch.setattr(module, "_LARGEST", size)
    assert TuningCache("tested", "conv/winograd").get("a") == "one"
    monkeypatch.setattr(module, "_LARGEST", size - 1)
    again = TuningCache("tested", "conv/winograd")
    assert again.get("a") is None
    again.keep("b", "other")
    assert json.loads(kept().read_text()) == {"b": "other"}


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", '{"a": 7, "b": null, "c": ["one"]}', "\udcff", "[" * 100_000,
                                     '{"a": ' + "9" * 5000 + "}"], ids=range(8))
def test_what_is_damaged_says_nothing(tuning_cache, content):
    tuning_cache.keep("a", "one")
    kept().write_bytes(content.encode("utf-8", "surrogateescape"))
    again = TuningCache("tested", "conv/winograd")
    assert [again.get(key) for key in "abc"] == [None] * 3
    again.keep("b", "other")
    assert json.loads(kept().read_text()) == {"b": "other"}


def test_threads_that_keep_at_once_lose_nothing(tuning_cache):
    threads = [threading.Thread(target=tuning_cache.keep, args=(str(i), "one")) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(json.loads(kept().read_text()), key=int) == [str(i) for i in range(20)]
