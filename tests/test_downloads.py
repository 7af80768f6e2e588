import hashlib
import http.server
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import threading

import packaging.requirements
import pytest

import mxnet
from mxnet import downloads
from mxnet.base import MXNetError

CONTENT = bytes(range(256)) * 1200
SHA1 = hashlib.sha1(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as its server's attributes say, and notes what was asked for."""

    def do_GET(self):
        served = self.server
        served.asked.append((self.path, self.headers.get("Range"), self.headers.get("If-Range")))
        if served.codes:
            code = served.codes.pop(0)
            if code:
                self.send_error(code)
                return
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", served.moved_to)
            self.end_headers()
            return
        start, wanted = 0, self.headers.get("Range")
        if served.ranges and wanted and self.headers.get("If-Range", served.tag) == served.tag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", served.says.format(start=start, end=len(served.content) - 1, total=len(served.content)))
        else:
            self.send_response(200)
        rest = served.content[start:]
        if served.length:
            self.send_header("Content-Length", str(len(rest)))
        if served.tag:
            self.send_header("ETag", served.tag)
        self.end_headers()
        rest = rest[:served.breaks.pop(0)] if served.breaks else rest
        self.wfile.write(rest[:-1])
        served.during()  # whoever downloads waits for the last byte
        self.wfile.write(rest[-1:])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(downloads, "_PAUSE", 0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.content, served.tag, served.ranges, served.length = CONTENT, '"1"', True, True
    served.codes, served.breaks, served.asked, served.during = [], [], [], lambda: None
    served.says = "bytes {start}-{end}/{total}"
    served.url = f"http://127.0.0.1:{served.server_port}/a.bin"
    served.moved_to = "/a.bin"
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.fixture
def fetch(server, tmp_path):
    """Downloads into an empty folder; what was told, and the content that it left."""
    def run(url=None, **kwargs):
        told = []
        path = tmp_path / "a.bin"
        try:
            downloads.fetch(url or server.url, str(path), tell=told.append, **kwargs)
        finally:
            assert os.listdir(tmp_path) == (["a.bin"] if path.exists() else [])  # nothing half done
        return told, path.read_bytes()

    return run


def ranges(server):
    return [wanted for _, wanted, _ in server.asked]


def test_a_file(server, fetch):
    assert fetch(sha1=SHA1.upper()) == ([], CONTENT)
    assert server.asked == [("/a.bin", None, None)]


def test_a_broken_connection_is_continued(server, fetch):
    server.breaks = [131_072, 65_536]
    told, content = fetch(sha1=SHA1)
    assert content == CONTENT
    assert ranges(server) == [None, "bytes=131072-", "bytes=196608-"] and server.asked[1][2] == '"1"'
    assert "131072" in told[0] and told[0].endswith("; 4 further attempts") and len(told) == 2


def test_another_version_is_not_mixed_with_the_first(server, fetch):
    server.breaks = [131_072]

    def publish():
        server.content, server.tag = CONTENT[::-1], '"2"'

    server.during = publish
    assert fetch()[1] == CONTENT[::-1]
    assert ranges(server) == [None, "bytes=131072-"]


@pytest.mark.parametrize(("tag", "sha1", "continued"), [("", None, False), ('W/"1"', None, False), ("", SHA1, True)])
def test_without_a_version_only_a_checksum_lets_it_continue(server, fetch, tag, sha1, continued):
    server.tag, server.breaks = tag, [131_072]
    assert fetch(sha1=sha1)[1] == CONTENT
    assert ranges(server) == [None, "bytes=131072-" if continued else None]


def test_a_server_without_ranges_starts_again(server, fetch):
    server.ranges, server.breaks = False, [131_072, 300_000]
    assert fetch()[1] == CONTENT


@pytest.mark.parametrize("says", ["bytes 0-{end}/{total}", "bytes x"])
def test_a_range_that_was_not_asked_for(server, fetch, says):
    server.breaks, server.says = [131_072], says
    told, content = fetch()
    assert content == CONTENT and "cannot continue the file" in told[1]
    assert ranges(server) == [None, "bytes=131072-", None]


def test_a_range_that_the_server_has_not(server, fetch):
    server.breaks, server.codes = [131_072], [None, 416]
    assert fetch()[1] == CONTENT
    assert ranges(server) == [None, "bytes=131072-", None]


def test_a_length_that_is_not_announced(server, fetch):
    server.length = False
    assert fetch(sha1=SHA1)[1] == CONTENT


def test_redirects(server, fetch):
    server.moved_to = "/b.bin"
    assert fetch(server.url.replace("/a.bin", "/moved.bin"))[1] == CONTENT
    assert [path for path, *_ in server.asked] == ["/moved.bin", "/b.bin"]
    server.moved_to = "/moved"
    with pytest.raises(MXNetError, match="Exceeded 30 redirects"):
        fetch(server.url.replace("/a.bin", "/moved"))
    assert len(server.asked) == 2 + 31  # once


def test_another_content(server, fetch, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"before")
    with pytest.raises(UserWarning, match="SHA-1 0000 expected, received another: " + SHA1) as caught:
        fetch(sha1="0000", attempts=2)
    assert isinstance(caught.value, MXNetError) and len(server.asked) == 2
    assert (tmp_path / "a.bin").read_bytes() == b"before"


def test_a_server_that_is_busy(server, fetch):
    server.codes = [500, 503, 429]
    told, content = fetch()
    assert content == CONTENT and [line.split(": ")[1] for line in told] == [
        "the server answered 500 Internal Server Error; 4 further attempts", "the server answered 503 Service Unavailable; 3 further attempts",
        "the server answered 429 Too Many Requests; 2 further attempts"]


def test_a_file_that_is_gone(server, fetch, tmp_path):
    server.codes = [404]
    with pytest.raises(downloads.DownloadError) as caught:
        fetch(sha1=SHA1)
    assert str(caught.value) == (
        f"Failed downloading url {server.url}: the server answered 404 Not Found. If it is not to be had there any more, "
        f"get a.bin (SHA-1 {SHA1}) elsewhere and put it into the folder {tmp_path}")
    assert downloads.why(caught.value) == "the server answered 404 Not Found"
    assert isinstance(caught.value, (MXNetError, OSError)) and len(server.asked) == 1


def test_a_host_that_is_gone(server, fetch, tmp_path):
    server.server_close()
    with pytest.raises(MXNetError, match=rf"Failed downloading url {server.url}: .*[Rr]efused.* put it into the folder {tmp_path}"):
        fetch(attempts=2)


@pytest.mark.parametrize("url", ["a.bin", "nowhere://a.bin"])
def test_what_is_no_address(fetch, url):
    with pytest.raises(MXNetError, match=f"Failed downloading url {url}: "):
        fetch(url)


def test_what_another_process_wrote_meanwhile_stays(server, tmp_path):
    path = tmp_path / "a.bin"
    server.during = lambda: path.write_bytes(b"other")
    assert not downloads.fetch(server.url, str(path), wanted=lambda: False)
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_disk_that_refuses_is_not_asked_again(server, tmp_path, monkeypatch):
    class Full:
        def write(self, block):
            raise OSError(28, "No space left on device")

    begin = downloads.Unfinished.__init__

    def full(self, path):
        begin(self, path)
        self.stream.close()
        self.stream = Full()
        self.stream.close = lambda: None

    monkeypatch.setattr(downloads.Unfinished, "__init__", full)
    with pytest.raises(MXNetError, match="cannot write .*a.bin: No space left on device"):
        downloads.fetch(server.url, str(tmp_path / "a.bin"))
    assert len(server.asked) == 1 and os.listdir(tmp_path) == []


def test_the_bar_of_a_terminal_shows_what_is_there_already(server, fetch, monkeypatch, capsys):
    import sys
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    server.breaks = [131_072]
    assert fetch()[1] == CONTENT
    shown = capsys.readouterr().err
    assert "a.bin:   0%" in shown and "a.bin:  43%|" in shown and "131k/307k" in shown


# What a fresh environment has after `pip install .`: the declared dependencies, and theirs, and no others.
FRESH = """
import os, sys
forbidden, url, sha1, folder = set({forbidden!r}), *sys.argv[1:]

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in forbidden:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)

sys.meta_path.insert(0, Absent())
import mxnet as mx
paths = [mx.gluon.utils.download(url, path=folder + '/a.bin', sha1_hash=sha1),
         mx.test_utils.download(url.replace('a.bin', 'moved.bin'), fname='b.bin', dirname=folder)]
try:
    mx.gluon.utils.download(url, path=folder + '/c.bin', sha1_hash='0' * 40, retries=1)
except UserWarning as error:
    print([os.path.getsize(path) for path in paths], str(error).partition(': ')[2][:26])
"""


def declared():
    """The distributions that pyproject.toml asks for, and all that they ask for here, by their normalized names."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    found, waiting = {"remexnet"}, [packaging.requirements.Requirement(need).name for need in project["dependencies"]]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        found.add(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # for another system, or another Python
            continue
        for need in map(packaging.requirements.Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                waiting.append(need.name)
    return found


def test_with_nothing_but_the_declared_dependencies(server, tmp_path):
    server.breaks, server.moved_to = [131_072], "/b.bin"
    allowed = declared()
    forbidden = sorted(module for module, names in importlib.metadata.packages_distributions().items()
                       if not {re.sub(r"[-_.]+", "-", name).lower() for name in names} & allowed)
    assert "pytest" in forbidden and "requests" not in forbidden
    out = subprocess.run([sys.executable, "-c", FRESH.format(forbidden=forbidden), server.url, SHA1, str(tmp_path)], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(pathlib.Path(mxnet.__file__).parents[1])}, timeout=120)
    assert out.stdout.endswith(f"[{len(CONTENT)}, {len(CONTENT)}] SHA-1 {'0' * 20}\n"), out
    assert ranges(server)[:2] == [None, "bytes=131072-"] and [path for path, *_ in server.asked[2:4]] == ["/moved.bin", "/b.bin"]
