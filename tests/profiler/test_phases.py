"""The phases of training steps, and the call tree, of a trace."""
import json

import mxnet as mx
from mxnet.profiler import phases
from mxnet.profiler.analysis import Analysis

STEP = [("Convolution", "operator", 0, 100), ("exp", "operator", 100, 50), ("_backward_exp", "operator", 150, 200),
        ("_backward_Convolution", "operator", 350, 250), ("sgd_mom_update", "operator", 600, 30), ("sgd_mom_update", "operator", 640, 20)]


def analysis(rows):
    return Analysis([{"ph": "X", "name": n, "cat": c, "ts": s, "dur": d, "pid": 0, "tid": 1, "args": {}} for n, c, s, d in rows])


def test_a_step_ends_with_the_last_of_its_updates():
    rows = [(n, c, s + 1000 * i, d) for i in range(3) for n, c, s, d in STEP] + [("exp", "operator", 3000, 10)]
    steps = phases.steps(analysis(rows).of_main())
    assert [(step["start"], step["duration"]) for step in steps] == [(0.0, 0.66), (0.66, 1.0), (1.66, 1.0)]
    first = {name: round(first_value, 6) for name, first_value in steps[0].items()}
    assert first == {"start": 0.0, "duration": 0.66, "data": 0.0, "forward": 0.15, "backward": 0.45, "update": 0.05, "communication": 0.0,
                     "waiting": 0.0, "rest": 0.01}
    assert round(steps[1]["rest"], 6) == 0.35 and round(steps[1]["forward"], 6) == 0.15


def test_without_updates_there_are_no_steps():
    assert phases.steps(analysis(STEP[:4]).of_main()) == [] and phases.steps([]) == []


def test_phases_of_other_events():
    rows = [("waiting for data", "data", 0, 10), ("WaitForVar", "api", 10, 20), ("KVStorePush", "operator", 30, 5), ("my range", "python", 40, 7)]
    run = analysis(rows)
    assert phases.split(run.of_main(), run.wall) == {"data": 0.01, "forward": 0.0, "backward": 0.0, "update": 0.0, "communication": 0.005,
                                                     "waiting": 0.02, "rest": 0.047 - 0.035}


def test_the_tree_takes_equal_calls_together():
    rows = [("net", "layer", 0, 100), ("dense", "layer", 10, 40), ("dot", "operator", 20, 20), ("dense", "layer", 60, 30), ("net", "layer", 200, 50)]
    root = phases.tree(analysis(rows).of_main())
    assert root[:2] == ["all", 0.15] and root[3] == [["net", 0.15, 2, [["dense", 0.07, 2, [["dot", 0.02, 1, []]]]]]]


def test_deep_traces_end_at_a_level():
    rows = [(f"level{i}", "layer", i, 2000 - 2 * i) for i in range(900)]
    node, depth = phases.tree(analysis(rows).of_main()), 0
    while node[3]:
        node, depth = node[3][0], depth + 1
    assert depth == 60 and json.dumps(node)


def test_many_names_leave_the_longest():
    rows = [(f"op{i}", "operator", 100 * i, 1 + i % 90) for i in range(4000)]
    children = phases.tree(analysis(rows).of_main())[3]
    assert 2900 < len(children) <= 3000 and children[0][1] == 0.09


def test_a_real_training_run_has_its_steps(tmp_path):
    mx.profiler.set_config(profile_all=True, filename=str(tmp_path / "p.json"))
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    x = mx.nd.ones((4, 5))
    mx.profiler.set_state("run")
    for _ in range(4):
        with mx.autograd.record():
            y = net(x).sum()
        y.backward()
        trainer.step(4)
    mx.profiler.set_state("stop")
    mx.profiler.dump()
    steps = phases.steps(Analysis(mx.profiler.trace.read(str(tmp_path / "p.json"))).of_main())
    assert len(steps) == 4 and all(step["forward"] > 0 and step["backward"] > 0 and step["update"] > 0 for step in steps)
