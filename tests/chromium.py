"""Pages in a real Chromium, QtWebEngine's, in a process of its own.

PyQt6-WebEngine is imported there by this Python, or by the one that the variable CHROMIUM_PYTHON names. Where neither has it, tests are skipped. That
process runs `chromium_window.py`.
"""
import base64
import functools
import json
import os
import select
import subprocess
import sys
import time

import pytest

WINDOW = os.path.join(os.path.dirname(__file__), "chromium_window.py")
PACKAGE = "PyQt6.QtWebEngineWidgets"
ENVIRONMENT = {"QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_DISABLE_SANDBOX": "1", "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu"}


def environment():
    """The environment of a Python that shows pages."""
    return {**os.environ, **ENVIRONMENT}


@functools.cache
def python():
    """The Python that has PyQt6-WebEngine; skips the test that asks if there is none."""
    for path in filter(None, (os.environ.get("CHROMIUM_PYTHON"), sys.executable)):
        try:
            if subprocess.run([path, "-I", "-c", f"import {PACKAGE}"], capture_output=True, env=environment()).returncode == 0:
                return path
        except OSError:
            pass
    return None


class Chromium:
    """A page in a browser. JavaScript's exceptions, and files that a page asks for in vain, are in `errors`, as is all that the console shows."""

    def __init__(self):
        if python() is None:
            pytest.skip("needs PyQt6-WebEngine (pip install remexnet[browser], or CHROMIUM_PYTHON=/path/to/a/python that has it)")
        self.errors = []
        self._process = subprocess.Popen([python(), "-I", WINDOW], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         text=True, env=environment())
        try:
            self._ask(seconds=120)
        except BaseException:
            self.close()
            raise

    def _ask(self, seconds=60, **command):
        if command:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            raise AssertionError(f"Chromium does not answer {str(command):.500} within {seconds} s")
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"Chromium ended with status {self._process.wait()} at {str(command):.500}")
        answer = json.loads(line)
        self.errors += answer["console"]
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["result"]

    def open(self, url):
        """Load a page; the seconds until it was loaded."""
        return self._ask(open=url)

    def run(self, script):
        """The value of a JavaScript expression, through JSON. It may be several, divided by commas."""
        text = self._ask(run=f"(() => {{ try {{ return JSON.stringify({{value: ({script})}}) }} "
                             "catch (error) { return JSON.stringify({error: String(error) + error.stack}) } })()")
        if not text:
            raise AssertionError(f"{script} is no expression of JavaScript; console: {self.errors[-3:]}")
        result = json.loads(text)
        if "error" in result:
            raise AssertionError(result["error"])
        return result.get("value")

    def wait(self, script, seconds=30):
        """Wait until an expression is true; its value."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > end:
                raise AssertionError(f"{script} did not become true within {seconds} s; the page holds {self.run('document.body.innerText')!r:.1000}")
            time.sleep(0.02)
        return value

    def choose_file(self, script, path, kind="application/octet-stream"):
        """Put a file into a form's field (an expression) as if somebody had chosen it."""
        with open(path, "rb") as file:
            content = base64.b64encode(file.read()).decode()
        name, kind = json.dumps(os.path.basename(path)), json.dumps(kind)
        self.run(f"(() => {{ const held = new DataTransfer(), bytes = Uint8Array.from(atob('{content}'), (c) => c.charCodeAt(0));"
                 f"held.items.add(new File([bytes], {name}, {{type: {kind}}})); ({script}).files = held.files }})()")

    def click(self, script):
        """Click an element (an expression) with the mouse, where it is."""
        self.run(f"({script}).scrollIntoView({{block: 'center'}})")
        box = self.run(f"(() => {{ const b = ({script}).getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] }})()")
        self._ask(click=box)

    def wheel(self, x, y, turns):
        """Turn the wheel, upwards if `turns` is positive, at a point of the window."""
        self._ask(wheel=[x, y, turns])

    def close(self):
        """End the browser."""
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
