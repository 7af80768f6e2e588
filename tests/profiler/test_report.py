import json
import pathlib
import re

import pytest

import mxnet as mx
from chromium import Chromium
from mxnet import nd, profiler
from mxnet.profiler.report import page, report
from mxnet.profiler.trace import read


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


SETUP = """
window.view = profileViews[0], window.canvas = document.querySelector("canvas.line"), window.turned = 0,
canvas.addEventListener("wheel", () => turned++),
window.rows = () => [...document.querySelectorAll("#operators tbody tr")].map((row) => row.children[0].textContent),
window.type = (selector, text) => { const line = document.querySelector(selector); line.value = text; line.dispatchEvent(new Event("input")) },
[view.from, view.to, view.drawn]
"""


@pytest.fixture(scope="module")
def browser():
    with Chromium() as running:
        yield running


def show(browser, path):
    browser.errors.clear()
    browser.open(pathlib.Path(path).as_uri())
    return browser.run(SETUP)


def test_in_a_browser(profiles, tmp_path, browser):
    assert show(browser, report(str(tmp_path / "p.html"), profiles[0])) == [0, 2000, 3]
    assert browser.run("document.querySelectorAll('section h2').length") == 9
    assert browser.run("document.querySelectorAll('#memory .uplot canvas').length") == 1
    x, y = browser.run("scrollTo(0, 0), window.box = canvas.getBoundingClientRect(), [box.left + box.width * 0.9, box.top + 40]")
    for number in range(1, 7):
        browser.wheel(x, y, 1)
        browser.wait(f"turned >= {number}")  # Chromium makes one event of several that wait
    assert browser.run("view.from > 1000 && view.drawn == 1 && Math.abs(view.to - view.from - 2000 * 0.8 ** 6) < 1e-6")
    browser.run(f"canvas.dispatchEvent(new MouseEvent('mousemove', {{clientX: {x}, clientY: {y}}}))")
    assert browser.run("document.querySelector('.tip').textContent") == "Convolution (operator): 1.100 ms from 0.900 ms on\nconv1"
    browser.run("canvas.dispatchEvent(new MouseEvent('dblclick'))")
    assert browser.run("[view.from, view.to]") == [0, 2000]
    browser.run("type('#timeline input', 'conv1')")
    assert browser.run("document.querySelector('#timeline .count').textContent") == "1 events, 1.100 ms"
    assert browser.run("rows()") == ["Convolution", "exp</script>"]
    browser.click("document.querySelector('#operators th')")
    browser.wait("document.querySelector('#operators th').className == 'sorted up'")
    assert browser.run("rows()") == ["Convolution", "exp</script>"]
    browser.click("document.querySelector('#operators th')")
    browser.wait("document.querySelector('#operators th').className == 'sorted'")
    assert browser.run("rows()") == ["exp</script>", "Convolution"]
    browser.run("type('#operators input', 'CONV')")
    assert browser.run("rows()") == ["Convolution"] and browser.errors == []


def test_the_links_at_the_top_lead_to_the_sections(profiles, tmp_path, browser):
    show(browser, report(str(tmp_path / "p.html"), profiles[0]))
    browser.click("document.querySelector('nav a[href=\"#memory\"]')")
    browser.wait("location.hash == '#memory' && scrollY > 0")
    assert browser.errors == []


def test_two_profiles_side_by_side_in_a_browser(profiles, tmp_path, browser):
    show(browser, report(str(tmp_path / "p.html"), *profiles))
    assert sorted(browser.run("rows()")) == ["Convolution", "exp</script>", "log"]
    assert browser.run("document.querySelectorAll('#memory .uplot canvas').length") == 2 and browser.errors == []


def test_a_page_of_many_events_opens(tmp_path, browser):
    """100,000 events: the page keeps the longest of them, says so, and shows them within seconds."""
    rows = [(f"op{i % 50}", "operator", 10 * i, 5 + i % 3, f"n{i % 700}") for i in range(100_000)]
    path = report(str(tmp_path / "p.html"), trace(tmp_path / "many.json", *rows))
    took = show(browser, path)
    assert took[2] > 500 and browser.run("rows().length") == 50 and browser.errors == []


def test_steps_phases_and_the_flame_graph_in_a_browser(tmp_path, browser):
    rows = []
    for i in range(3):
        t = 2000 * i
        rows += [("net", "layer", t, 700, ""), ("Convolution", "operator", t + 100, 500, ""), ("_backward_Convolution", "operator", t + 800, 900, ""),
                 ("sgd_update", "operator", t + 1750, 50, "")]
    show(browser, report(str(tmp_path / "p.html"), trace(tmp_path / "steps.json", *rows)))
    assert browser.run("document.querySelectorAll('#steps .step').length") == 3
    assert browser.run("document.querySelector('#steps .count').textContent").startswith("steps.json: 3 steps, median 2.000 ms")
    title = browser.run("document.querySelector('#steps .step').title").splitlines()
    assert title[0] == "step 1: 1.800 ms" and {"forward 0.500 ms", "backward 0.900 ms", "update 0.050 ms"} <= set(title)
    phases = browser.run("[...document.querySelectorAll('#where .phases span')].map((label) => label.textContent)")
    assert any(label.startswith("backward: 2.700 ms (46.6 %)") for label in phases)
    heads = browser.run("[...document.querySelectorAll('#operators th')].map((head) => head.textContent)")
    assert heads == ["name", "own ms", "%", "total ms", "longest ms", "count"]
    assert browser.run("[...document.querySelector('#operators tbody tr').children].map((cell) => cell.textContent)") == [
        "_backward_Convolution", "2.700", "62.1", "2.700", "0.900", "3"]
    bars = "[...document.querySelectorAll('.flame div')].map((bar) => bar.textContent)"
    assert browser.run(bars) == ["all 100.0 %", "_backward_Convolution 54.5 %", "net 42.4 %", "Convolution 30.3 %", "sgd_update 3.0 %"]
    browser.run("document.querySelectorAll('.flame div')[2].click()")
    assert browser.run(bars) == ["all 100.0 %", "net 42.4 %", "Convolution 30.3 %"]
    browser.run("document.querySelectorAll('.flame div')[0].click()")
    assert browser.run(bars)[-1] == "sgd_update 3.0 %" and browser.errors == []


def test_both_themes(profiles, tmp_path, browser):
    show(browser, report(str(tmp_path / "p.html"), profiles[0]))
    colors, background = {}, "getComputedStyle(document.body).backgroundColor"
    for _ in range(2):
        browser.run("document.getElementById('theme').click()")
        colors[browser.run("document.documentElement.dataset.theme")] = browser.run(background)
    assert colors == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"} and browser.errors == []


def test_data_is_what_the_script_gets():
    text = page([{"name": "<b>&</script>", "x": 1}])
    assert text.count("</script>") == 3 and "<title>Profile: &lt;b&gt;&amp;&lt;/script&gt;</title>" in text
