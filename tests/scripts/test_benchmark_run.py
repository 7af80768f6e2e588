"""Tests of the turns of benchmarks/run.py, with simulated peers that return given times."""
import argparse
import pathlib
import sys
import threading

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import run  # noqa: E402
from harness import tasks  # noqa: E402


class Peers:
    """A pool of processes whose turns take so many seconds each; a process that was closed knows nothing of the row."""

    def __init__(self, **seconds):
        self.seconds = {name.replace("_", " "): iter(values) for name, values in seconds.items()}
        self.ready: set[str] = set()

    def get(self, peer, row):
        def ask(do, result_path="", **request):
            if do == "prepare":
                np.save(result_path, np.ones(1))
                self.ready.add(peer.name)
                return {"ready": 1.0}
            assert peer.name in self.ready
            return {"wall": next(self.seconds[peer.name])}
        return argparse.Namespace(ask=ask)

    def close(self, peer):
        self.ready.discard(peer.name)


def test_a_peer_that_was_far_behind_stays_out_when_the_others_become_slower(monkeypatch):
    monkeypatch.setattr(run, "missing", lambda peer, python: "")
    row = next(r for r in tasks.rows(["scoring"]) if r["batch"] == 1)
    args = argparse.Namespace(peers="MXNet,OpenVINO", mxnet_python="", rounds=5, seconds=0.1, drop=2.0, clock="wall", alone=False)
    pool = Peers(Remex=[1.0, 1.0, 3.0, 3.0, 3.0], OpenVINO=[1.1, 1.1, 3.0, 3.0, 3.0], MXNet=[2.5, 2.5, 9.0, 9.0, 9.0])
    result = run.Row(row, pool, args).measure()
    assert result["failures"] == {}
    assert result["values"] == {"Remex": [1.0, 1.0, 3.0, 3.0, 3.0], "OpenVINO": [1.1, 1.1, 3.0, 3.0, 3.0], "MXNet": [2.5, 2.5]}
    assert pool.ready == {"Remex", "OpenVINO"}


def test_peers_that_are_measured_alone_leave_before_the_next_one_comes(monkeypatch):
    monkeypatch.setattr(run, "missing", lambda peer, python: "")
    row = next(r for r in tasks.rows(["scoring"]) if r["batch"] == 1)
    args = argparse.Namespace(peers="OpenVINO", mxnet_python="", rounds=2, seconds=0.1, drop=2.0, clock="wall", alone=True)
    pool, together = Peers(Remex=[1.0, 2.0], OpenVINO=[1.1, 1.2]), []
    close = pool.close
    monkeypatch.setattr(pool, "close", lambda peer: together.append(set(pool.ready)) or close(peer))
    assert run.Row(row, pool, args).measure()["values"] == {"Remex": [1.0, 2.0], "OpenVINO": [1.1, 1.2]}
    assert together == [{"OpenVINO"}, {"Remex"}, {"Remex"}, {"OpenVINO"}]


def test_peers_that_compile_are_prepared_beside_each_other(monkeypatch):
    monkeypatch.setattr(run, "missing", lambda peer, python: "")
    row = next(r for r in tasks.rows(["scoring"]) if r["batch"] == 1)
    names = "torch.compile,torch.compile tuned,PyTorch"
    args = argparse.Namespace(peers=names, mxnet_python="", rounds=1, seconds=0.1, drop=2.0, clock="wall", alone=False)
    pool, both = Peers(**{"Remex": [1.0], "PyTorch": [2.0], "torch.compile": [3.0], "torch.compile_tuned": [4.0]}), threading.Barrier(2, timeout=30)
    get = pool.get

    def meet(peer, row):
        process = get(peer, row)

        def ask(do, **request):
            if do == "prepare" and "compile" in peer.options:
                both.wait()  # until the other one has come, too
                if peer.name == "torch.compile":
                    raise run.Failed("it does not compile")
            return process.ask(do, **request)
        return argparse.Namespace(ask=ask)

    monkeypatch.setattr(pool, "get", meet)
    result = run.Row(row, pool, args).measure()
    assert result["values"] == {"Remex": [1.0], "PyTorch": [2.0], "torch.compile tuned": [4.0]}
    assert result["failures"] == {"torch.compile": "it does not compile"}
