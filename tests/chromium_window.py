"""A window of QtWebEngine, in a process of its own: it reads commands as lines of JSON, and answers each with one (`chromium.py` sends them)."""
import itertools
import json
import os
import sys
import threading
import time

from PyQt6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QUrl, pyqtSignal
from PyQt6.QtGui import QMouseEvent, QWheelEvent
from PyQt6.QtWebEngineCore import QWebEnginePage, QWebEngineProfile
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication


def browse():
    """Show pages until the commands end."""
    class Page(QWebEnginePage):
        def javaScriptConsoleMessage(self, level, message, line, source):
            console.append(f"{level.name}: {message} ({source}:{line})")

        def createWindow(self, kind):  # where a form's target is _blank: the same window, so that its answer can be read
            return self

    class Commands(QObject):
        line = pyqtSignal(str)

    def answer(result=None, **more):
        print(json.dumps({"result": result, "console": list(console), **more}), flush=True)
        console.clear()

    def run():
        """Run the pending script. Its answer is lost if the page that it began on goes: `loaded` runs it again."""
        number, script = pending[0]

        def finish(result):
            if pending and pending[0][0] == number:
                pending.clear()
                answer(result)

        page.runJavaScript(script, finish)

    def loaded(good):
        if pending:
            run()
        if begun:
            took = time.perf_counter() - begun.pop()
            answer(took, **({} if good else {"error": f"{page.url().toString()} could not be loaded"}))

    def send(event):
        target = view.focusProxy()
        QApplication.sendEvent(target, event)

    def do(line):
        if not line:
            return application.quit()
        command = json.loads(line)
        if "open" in command:
            begun.append(time.perf_counter())
            return page.load(QUrl(command["open"]))
        if "run" in command:
            pending.append((next(numbers), command["run"]))
            return run()
        x, y, *turns = command.get("click") or command["wheel"]
        at, buttons = QPointF(x, y), Qt.MouseButton
        if turns:
            send(QWheelEvent(at, at, QPoint(), QPoint(0, round(120 * turns[0])), buttons.NoButton, Qt.KeyboardModifier.NoModifier,
                             Qt.ScrollPhase.NoScrollPhase, False))
        else:
            send(QMouseEvent(QEvent.Type.MouseButtonPress, at, at, buttons.LeftButton, buttons.LeftButton, Qt.KeyboardModifier.NoModifier))
            send(QMouseEvent(QEvent.Type.MouseButtonRelease, at, at, buttons.LeftButton, buttons.NoButton, Qt.KeyboardModifier.NoModifier))
        return answer()

    def read():
        for line in sys.stdin:
            commands.line.emit(line)
        commands.line.emit("")

    console, begun, pending, numbers = [], [], [], itertools.count()
    application = QApplication(sys.argv[:1])
    profile = QWebEngineProfile()  # keeps nothing on the disk
    page, view, commands = Page(profile), QWebEngineView(), Commands()
    view.setPage(page)
    view.resize(1200, 900)
    view.show()
    page.loadFinished.connect(loaded)
    commands.line.connect(do)
    threading.Thread(target=read, daemon=True).start()
    answer()
    application.exec()
    os._exit(0)  # Qt's order of destruction is none of ours


if __name__ == "__main__":
    browse()
