"""The page at ``/`` in a real Chromium."""
import json

import pytest

import mxnet as mx
from chromium import Chromium
from serve_checks import Running, picture, save_colours

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A classifier of images with a label that is HTML, and a network whose input and output are."""
    folder = tmp_path_factory.mktemp("browsed")
    save_colours(folder / "colours")
    (folder / "colours" / "synset.txt").write_text(f"{HOSTILE}\ngreen\nblue\n")
    doubled = mx.sym.broadcast_mul(mx.sym.var("<b>x</b>"), mx.sym.ones((1, 2)), name="'><script>document.title='owned'</script>")
    (folder / "same").mkdir()
    mx.model.save_checkpoint(str(folder / "same" / "net"), 0, doubled, {}, {})
    (folder / "same" / "signature.json").write_text(json.dumps({"inputs": [{"data_name": "<b>x</b>", "data_shape": [1, 2]}]}))
    with Running(folder) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with Chromium() as running:
        yield running


@pytest.fixture
def page(browser, served):
    browser.errors.clear()
    browser.open(served.address + "/")
    return browser


def test_models_latencies_and_no_errors(page, served):
    image = {"Content-Type": "image/jpeg"}
    assert served.request("POST", "/predictions/colours", picture((9, 9, 9)), image)[0] == 200
    page.open(served.address + "/")
    assert page.run("[...document.querySelectorAll('h2')].map((h) => h.textContent)") == ["colours, version 1", "same, version 1"]
    latency = "[...document.querySelectorAll('figure')].find((f) => f.textContent.includes('latency of requests'))"
    box = page.run(f"(() => {{ const b = {latency}.querySelector('rect').getBoundingClientRect(); return [b.width, b.height] }})()")
    assert box == [28, 90] and page.errors == []
    assert page.run("getComputedStyle(document.querySelector('h2')).borderTopWidth") == "1px"  # the policy lets the page's style apply


def test_names_are_no_html(page):
    assert page.run("document.title") == "Remex" and page.run("document.querySelectorAll('img, script, td b').length") == 0
    cells = page.run("[...document.querySelectorAll('td')].map((d) => d.textContent)")
    assert "<b>x</b>" in cells and any("<script>" in text for text in cells) and page.errors == []


def test_an_image_is_chosen_and_classified(page, tmp_path):
    file = tmp_path / "green.png"
    file.write_bytes(picture((0, 200, 0), ".png"))
    page.choose_file("document.querySelector('input[type=file]')", file, "image/png")
    page.click("document.querySelector('input[type=file]').form.querySelector('button')")
    page.wait("location.pathname == '/predictions/colours/1' && document.readyState == 'complete'")
    classes = json.loads(page.run("document.body.innerText"))
    assert classes[0] == {"class": "green", "probability": 200.0} and {c["class"] for c in classes} == {HOSTILE, "green", "blue"}
    assert page.run("document.querySelectorAll('img').length") == 0 and page.errors == []


def test_json_is_sent_and_answered(page):
    page.run("document.querySelector('textarea').value = '[[3, 4]]'")
    page.click("document.querySelector('textarea').form.querySelector('button')")
    page.wait("location.pathname.startsWith('/predictions/') && document.readyState == 'complete'")
    assert json.loads(page.run("document.body.innerText")) == [[3, 4]] and page.errors == []


def test_a_wrong_value_shows_what_is_wrong(page):
    page.run("document.querySelector('textarea').value = '[[3]]'")
    page.click("document.querySelector('textarea').form.querySelector('button')")
    page.wait("location.pathname.startsWith('/predictions/') && document.readyState == 'complete'")
    assert "[-1, 2]" in page.run("document.body.innerText")
