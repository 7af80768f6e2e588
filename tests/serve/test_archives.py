import json
import zipfile

import pytest

from mxnet.base import MXNetError
from mxnet.serve.archives import opened
from mxnet.serve.errors import RequestError
from mxnet.serve.settings import Limits
from serve_checks import save_archive


def archive(path, manifest='{"model": {"handler": "service:handle"}}', **programs):
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("MAR-INF/MANIFEST.json", manifest)
        for name, text in programs.items():
            out.writestr(f"{name}.py", text)
    return str(path)


def started(path):
    handler = opened(path, True, Limits())
    handler.start()
    return handler


def test_code_runs_only_if_it_is_allowed(tmp_path):
    save_archive(tmp_path / "a.mar")
    with pytest.raises(MXNetError, match="answered by a program in it, 'service:handle'.*--allow-code"):
        opened(str(tmp_path / "a.mar"), False, Limits())
    assert started(str(tmp_path / "a.mar"))([{"body": 1}]) == [{"loaded": True, "model": "a", "got": "1"}]


def test_classes_and_the_older_manifest(tmp_path):
    program = "class Service:\n    def initialize(self, context): self.start = 5\n    def handle(self, data, ctx): return [self.start + len(data)]"
    assert started(archive(tmp_path / "a.mar", service=program))([{}]) == [6]
    assert started(archive(tmp_path / "b.mar", '{"Model": {"Service": "own.py"}}', own=program))([{}]) == [6]


@pytest.mark.parametrize("manifest, text", [
    ("{", "is no JSON"), ("[]", "is to hold an object"), ("{}", "names no handler"), ('{"model": {"handler": "../../x:y"}}', "names no handler"),
    ('{"model": {"handler": "/etc/x:y; z"}}', "names no handler"), (json.dumps({"model": 3}), "names no handler"),
])
def test_manifests_that_say_nothing(tmp_path, manifest, text):
    with pytest.raises(MXNetError, match=text):
        opened(archive(tmp_path / "a.mar", manifest), True, Limits())


def test_archives_that_are_none_or_too_large(tmp_path):
    (tmp_path / "a.mar").write_bytes(b"PK nothing")
    with pytest.raises(MXNetError, match="no archive that can be read"):
        opened(str(tmp_path / "a.mar"), True, Limits())
    with zipfile.ZipFile(tmp_path / "b.mar", "w"):
        pass
    with pytest.raises(MXNetError, match="has a MAR-INF/MANIFEST.json"):
        opened(str(tmp_path / "b.mar"), True, Limits())
    with pytest.raises(MXNetError, match="files and 1000 bytes is unpacked, this has 2 and 10"):
        opened(archive(tmp_path / "c.mar", service=" " * 10_000), True, Limits(archive=1000))


@pytest.mark.parametrize("program, text", [
    ("raise KeyError('x')", "fails to start: KeyError: 'x'"), ("x = 1", "neither a function 'handle' nor exactly one class"),
    (None, "has no file 'service'"), ("def handle(data, context): raise ValueError('no model')", "fails to start: ValueError: no model"),
])
def test_handlers_that_do_not_start(tmp_path, program, text):
    with pytest.raises(MXNetError, match=text):
        started(archive(tmp_path / "a.mar", **({} if program is None else {"service": program})))


def test_handlers_that_fail(tmp_path):
    handler = started(archive(tmp_path / "a.mar", service="def handle(data, context):\n    if data is not None: return data[0]['body']()"))

    def fails():
        raise ValueError("bad input")

    for body, text in ((fails, "the handler failed: ValueError: bad input"), (dict, "a list of 1 answers, and returned dict")):
        with pytest.raises(RequestError, match=text) as caught:
            handler([{"body": body}])
        assert caught.value.status == 500
