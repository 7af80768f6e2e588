"""The finished site in a browser. `make docs` builds it; without it, and without Sphinx, these tests are skipped."""
import functools
import http.server
import os
import pathlib
import re
import threading
import urllib.parse

import pytest

from chromium import Chromium

SITE = pathlib.Path(os.environ.get("DOCS_SITE", pathlib.Path(__file__).resolve().parents[2] / "build" / "docs" / "html"))
pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs")


@pytest.fixture(scope="module")
def address():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    with Chromium() as chromium:
        yield chromium


def test_no_page_needs_a_network():
    asked = {}
    for path in SITE.rglob("*.html"):
        for address in re.findall(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["'](https?:[^"']+)""", path.read_text()):
            asked.setdefault(address, path)
    assert asked == {}


def test_no_link_is_dead():
    dead, anchors = [], {}
    for path in SITE.rglob("*.html"):
        text = path.read_text()
        anchors[path] = set(re.findall(r"""\bid=["']([^"']+)["']""", text))
    for path in anchors:
        for target in re.findall(r"""<a\b[^>]*?href=["']([^"']+)["']""", path.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            place = (path.parent / urllib.parse.unquote(file.partition("?")[0])).resolve() if file else path
            if not place.exists() or place in anchors and anchor and urllib.parse.unquote(anchor) not in anchors[place]:
                dead.append(f"{path.relative_to(SITE)}: {target}")
    assert dead == []


@pytest.mark.parametrize("page, heading, text", [
    ("index.html", "Remex: MXNet programs on today’s machines", "Ten minutes to Remex"),
    ("docs/guides/ten_minutes.html", "Ten minutes to Remex", "<NDArray 2x2 @cpu(0)>"),
    ("reference/nd/Convolution.html", "Convolution", "num_filter")])
def test_pages_are_shown(browser, address, page, heading, text):
    browser.errors.clear()
    browser.open(f"{address}/{page}")
    browser.wait("document.querySelector('main h1') !== null")
    assert browser.run("document.querySelector('main h1').innerText").startswith(heading)
    assert text in browser.run("document.body.innerText")
    assert browser.run("[...document.images].filter((image) => image.complete && !image.naturalWidth).map((image) => image.src)") == []
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth + 1")
    assert [error for error in browser.errors if "ERROR" in error.upper()] == []


@pytest.mark.parametrize("query, page", [("Convolution", "reference/nd/Convolution.html"), ("out of memory", "docs/guides/troubleshooting.html")])
def test_search_finds(browser, address, query, page):
    browser.open(f"{address}/search.html?q={urllib.parse.quote(query)}")
    shown = "[...document.querySelectorAll('#search-results li a')].map((link) => link.getAttribute('href'))"
    browser.wait(f"({shown}).length > 0")
    assert page in browser.run(f"({shown})[0]"), "what bears the query as its title comes first"
