import json

from mxnet.tools.profile import main


def test_a_trace_becomes_a_page_beside_it(tmp_path, capsys):
    path = tmp_path / "run.json"
    rows = [{"ph": "X", "name": n, "cat": "operator", "ts": t, "dur": 500, "pid": 0, "tid": 1} for n, t in (("exp", 0), ("log", 500), ("exp", 1000))]
    path.write_text("[" + ",\n".join(map(json.dumps, rows)) + ",\n")  # the writer was killed
    assert main([str(path), "--lines", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1.5 ms in all: operators 100%", "   ms (own)    ms (all)    count  operator", "        1.0         1.0        2  exp",
        str(tmp_path / "run.html")]
    assert "<title>Profile: run.json</title>" in (tmp_path / "run.html").read_text()
    assert main([str(path), str(path), "--output", str(tmp_path / "both.html")]) == 0
    assert "<title>Profile: run.json and run.json</title>" in (tmp_path / "both.html").read_text()


def test_what_is_no_trace_ends_in_a_message(tmp_path, capsys):
    path = tmp_path / "x.json"
    path.write_text("{}")
    assert main([str(path)]) == 1 and "is no trace" in capsys.readouterr().err
    assert main([str(tmp_path / "none.json")]) == 1
