import json
import pathlib
import re
import shutil
import subprocess

import pytest

import mxnet as mx
from mxnet import nd, profiler
from mxnet.profiler.report import page, report
from mxnet.profiler.trace import read

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def trace(path, *rows, thread=1):
    events = [{"ph": "X", "name": n, "cat": c, "ts": s, "dur": d, "pid": 0, "tid": thread, "args": {"node": node} if node else {}}
              for n, c, s, d, node in rows]
    events.append({"ph": "C", "name": "Memory: cpu/0", "cat": "Device Storage", "ts": 5, "pid": 1, "tid": 1, "args": {"Memory: cpu/0": 2000}})
    events.append({"ph": "C", "name": "Memory: cpu/0", "cat": "Device Storage", "ts": 900, "pid": 1, "tid": 1, "args": {"Memory: cpu/0": 7000}})
    path.write_text(json.dumps({"traceEvents": events}))
    return str(path)


@pytest.fixture
def profiles(tmp_path):
    first = trace(tmp_path / "a.json", ("Convolution", "operator", 0, 600, "conv0"), ("exp</script>", "operator", 700, 100, "e"),
                  ("Convolution", "operator", 900, 1100, "conv1"))
    return first, trace(tmp_path / "b.json", ("Convolution", "operator", 0, 300, "conv0"), ("log", "operator", 400, 50, ""))


def test_the_page_holds_all_it_needs(profiles, tmp_path):
    path = report(str(tmp_path / "p.html"), profiles[0])
    text = pathlib.Path(path).read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", text) and "/*js*/" not in text and "/*data*/" not in text
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text).group(1))
    assert [(r["name"], r["calls"], round(r["own"], 6)) for r in data[0]["operators"]] == [("Convolution", 2, 1.7), ("exp</script>", 1, 0.1)]
    assert data[0]["memory"] == {"Memory: cpu/0": [[5.0, 900.0], [2000.0, 7000.0]]}


def test_a_page_of_what_was_recorded_in_the_file_and_since(tmp_path):
    profiler.set_config(filename=str(tmp_path / "p.json"), profile_all=True)
    profiler.set_state("run")
    nd.exp(nd.ones((2,)))
    profiler.dump(False)
    nd.log(nd.ones((2,)))
    profiler.set_state("stop")
    text = pathlib.Path(profiler.report(str(tmp_path / "p.html"))).read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text).group(1))
    assert {"exp", "log", "_ones"} <= {r["name"] for r in data[0]["operators"]}
    profiler.dump()
    assert {"exp", "log"} <= {e["name"] for e in read(str(tmp_path / "p.json"))}


def test_no_trace_no_page(tmp_path):
    (tmp_path / "x.json").write_text("no trace")
    with pytest.raises(mx.MXNetError, match="is no trace"):
        report(str(tmp_path / "p.html"), str(tmp_path / "x.json"))
    assert not (tmp_path / "p.html").exists()


# What somebody does on the page, and what it shows then: added to it, for a browser that ends when it is loaded.
SCRIPT = """
<script>
const seen = {}, view = window.profileViews[0], canvas = document.querySelector("canvas.line"), box = canvas.getBoundingClientRect();
seen.all = [view.from, view.to, view.drawn];
const there = {deltaY: -1, clientX: box.left + box.width * 0.9, clientY: box.top + 40, cancelable: true};
for (let i = 0; i < 6; i++) canvas.dispatchEvent(new WheelEvent("wheel", there));
seen.zoomed = [view.from, view.to, view.drawn];
canvas.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + box.width * 0.9, clientY: box.top + 40}));
seen.tip = document.querySelector(".tip").textContent;
canvas.dispatchEvent(new MouseEvent("dblclick"));
seen.back = [view.from, view.to];
const line = document.querySelector("#timeline input");
line.value = "conv1";
line.dispatchEvent(new Event("input"));
seen.found = document.querySelector("#timeline .count").textContent;
const rows = () => [...document.querySelectorAll("#operators tbody tr")].map((row) => row.children[0].textContent);
seen.rows = rows();
document.querySelector("#operators th").click();
seen.byName = rows();
document.querySelector("#operators th").click();
seen.byNameDown = rows();
const search = document.querySelector("#operators input");
search.value = "CONV";
search.dispatchEvent(new Event("input"));
seen.searched = rows();
seen.charts = document.querySelectorAll("#memory .uplot canvas").length;
seen.sections = document.querySelectorAll("section h2").length;
document.title = "seen " + JSON.stringify(seen);
</script>
</body>"""


def browse(tmp_path, text):
    path = tmp_path / "browsed.html"
    path.write_text(text.replace("</body>", SCRIPT))
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'user'}",
               "--window-size=1200,900", "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r"<title>seen (.*?)</title>", done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_in_a_browser(profiles, tmp_path):
    seen = browse(tmp_path, pathlib.Path(report(str(tmp_path / "p.html"), profiles[0])).read_text())
    assert seen["all"][:2] == [0, 2000] and seen["all"][2] == 3
    assert seen["zoomed"][0] > 1000 and seen["zoomed"][1] - seen["zoomed"][0] == pytest.approx(2000 * 0.8 ** 6) and seen["zoomed"][2] == 1
    assert seen["tip"] == "Convolution (operator): 1.100 ms from 0.900 ms on\nconv1" and seen["back"] == [0, 2000]
    assert seen["found"] == "1 events, 1.100 ms"
    assert seen["rows"] == ["Convolution", "exp</script>"] == seen["byName"] and seen["byNameDown"] == ["exp</script>", "Convolution"]
    assert seen["searched"] == ["Convolution"] and seen["charts"] == 1 and seen["sections"] == 7


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_two_profiles_side_by_side_in_a_browser(profiles, tmp_path):
    seen = browse(tmp_path, pathlib.Path(report(str(tmp_path / "p.html"), *profiles)).read_text())
    assert sorted(seen["rows"]) == ["Convolution", "exp</script>", "log"] and seen["charts"] == 2


def test_data_is_what_the_script_gets():
    text = page([{"name": "<b>&</script>", "x": 1}])
    assert text.count("</script>") == 3 and "<title>Profile: &lt;b&gt;&amp;&lt;/script&gt;</title>" in text
