"""Extraction of the book's code: the sections of a revision, the cells of a tab, and the files that cells read."""
import collections
import hashlib
import json
import re
import subprocess
from typing import NamedTuple

CELL = re.compile(r"^```\{\.python \.input(?P<attributes>[^}\n]*)\}[ \t]*\n(?P<source>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
TAB = re.compile(r"^(?:%%tab|#@tab)[ \t]+(?P<tabs>.+)$", re.MULTILINE)
SELECTION = re.compile(r"^tab\.interact_select\((?P<tabs>.*)\)", re.MULTILINE)
MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)


class Cell(NamedTuple):
    """A cell of a tab: `name` is unique in its section and stays while the text does; `label` is the book's own name, if it has one."""

    name: str
    label: str
    source: str


def tabs_of(text):
    return {tab.strip(" '\"[]") for tab in text.split(",")}


def cells(section, text, tab="mxnet"):
    """Return the cells that a reader of `tab` runs, in order; none if the section has no such tab.

    A section has the tab if its ``tab.interact_select`` names it, or if there is none and a cell names it. A cell belongs to the tabs that its
    ``%%tab`` or ``#@tab`` names, and to every tab if it names ``all`` or has no such line. Commands of notebooks (``%...``, ``!...``) are removed.
    The second of two equal cells has ``-2`` at its name's end.
    """
    selected, found, named = None, [], False
    for match in CELL.finditer(text):
        source = match["source"]
        if selection := SELECTION.search(source):
            selected = tabs_of(selection["tabs"])
        elif not source.startswith("%load_ext"):
            directive = TAB.search(source)
            tabs = tabs_of(directive["tabs"]) if directive else {"all"}
            named |= tab in tabs
            if tabs & {tab, "all"}:
                label = re.search(r"#(\S+)", match["attributes"])
                found.append((label[1] if label else "", MAGIC.sub("", source)))
    if not (tab in selected if selected is not None else named):
        return []
    made, times = [], collections.Counter()
    for label, source in found:
        if source.strip():
            name = f"{section}::{hashlib.sha256(source.encode()).hexdigest()[:8]}"
            times[name] += 1
            made.append(Cell(name if times[name] == 1 else f"{name}-{times[name]}", label, source))
    return made


class Book:
    """A revision of the book in a bare git repository."""

    def __init__(self, git, revision="HEAD"):
        self._git, self._revision = git, revision
        listed = self._run("ls-tree", "-r", "--name-only", revision).decode().splitlines()
        self.files = set(listed)
        self.sections = [name[:-3] for name in listed if re.fullmatch(r"chapter_[^/]*/.*\.md", name)]

    def _run(self, *arguments):
        return subprocess.run(["git", "--git-dir", self._git, *arguments], capture_output=True, check=True).stdout

    def read(self, path):
        return self._run("show", f"{self._revision}:{path}")

    def version(self):
        """Return the version of MXNet that the book tells its readers to install: 1.9.1, or 2.0."""
        path = "chapter_installation/index.md"
        return "1.9.1" if path in self.files and b"mxnet==1." in self.read(path) else "2.0"

    def cells(self, section):
        return cells(section, self.read(f"{section}.md").decode())

    def outputs(self, section):
        """Return the texts that the book has stored for a section's cells under MXNet: the book's name of a cell -> text."""
        path = f"outputs/mxnet/{section}.json"
        stored = json.loads(self.read(path))["cells"] if path in self.files else {}
        return {label: "\n".join(output.get("text", "").strip("\n") for output in cell["outputs"]) for label, cell in stored.items()
                if cell.get("kind") == "text"}

    def write_package(self, folder):
        """Write the package d2l, which the book's authors make from the cells that are marked ``#@save``."""
        (folder / "d2l").mkdir()
        for name in ("__init__.py", "mxnet.py"):
            (folder / "d2l" / name).write_bytes(self.read(f"d2l/{name}"))

    def write_images(self, folder, sources):
        """Write the pictures that cells name."""
        (folder / "img").mkdir(exist_ok=True)
        for name in {name for source in sources for name in re.findall(r"img/([\w.-]+)", source)}:
            if f"img/{name}" in self.files:
                (folder / "img" / name).write_bytes(self.read(f"img/{name}"))
