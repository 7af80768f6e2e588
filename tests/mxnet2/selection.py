"""Selection of tests: names, patterns, and the exceptions that `exceptions.txt` lists."""
import collections
import pathlib
from typing import NamedTuple


def short(nodeid):
    """Return the name of a test without its folders: ``test_optimizer.py::test_sgd[0]``."""
    file, _, test = nodeid.partition("::")
    return f"{pathlib.PurePosixPath(file).name}::{test}"


def evenly(names, cases):
    """Return at most `cases` names of each function: the first, the last, and those at equal distances between them."""
    families = collections.defaultdict(list)
    for name in names:
        families[name.split("[")[0]].append(name)
    chosen = set()
    for family in families.values():
        few = min(cases, len(family))
        chosen.update(family[round(i * (len(family) - 1) / max(few - 1, 1))] for i in range(few))
    return [name for name in names if name in chosen]


def matches(name, pattern):
    """Return whether `pattern` names this test: a function with all of its cases, one case, or, with ``*`` at the end, whatever begins so."""
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return pattern in (name, name.split("[")[0])


def reason_of(patterns, name):
    """Return the reason of the first pattern that names this test, or None."""
    return next((reason for pattern, reason in patterns.items() if matches(name, pattern)), None)


class Exceptions(NamedTuple):
    """Patterns of tests and the reason of each: `left_out` does not run or count, `failing` counts as failed, `outputs` prints something else.

    The file has the sections ``[left out]``, ``[failing]`` and ``[outputs]``. A line that begins with ``#`` is the reason of the
    patterns below it: a function
    (``test_metric.py::test_f1``), one case of it, or, with ``*`` at the end, whatever begins so.
    """

    left_out: dict
    failing: dict
    outputs: dict = {}

    @classmethod
    def read(cls, path):
        sections = {"[left out]": {}, "[failing]": {}, "[outputs]": {}}
        current, reason, fresh = None, [], False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.strip()
            if line in sections:
                current, reason = sections[line], []
            elif line.startswith("#"):
                reason, fresh = (reason if fresh else []) + [line[1:].strip()], True
            elif line:
                if current is None or not reason:
                    raise ValueError(f"{path}:{number}: {line} stands in no section, or has no reason above it")
                current[line], fresh = " ".join(reason), False
        return cls(*sections.values())

    def reason(self, name):
        """The reason why a test is known to fail, or None."""
        return reason_of(self.failing, name)
