"""Which tests of MXNet 2.0's do not count, and which are known to fail: `exceptions.txt`."""
from typing import NamedTuple


def matches(name, pattern):
    """Return whether `pattern` names this test: a function with all of its cases, one case, or, with ``*`` at the end, whatever begins so."""
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return pattern in (name, name.split("[")[0])


class Exceptions(NamedTuple):
    """Patterns of tests and the reason of each: `left_out` does not run or count, `failing` counts as failed.

    The file has the sections ``[left out]`` and ``[failing]``. A line that begins with ``#`` is the reason of the patterns below it: a function
    (``test_metric.py::test_f1``), one case of it, or, with ``*`` at the end, whatever begins so.
    """

    left_out: dict
    failing: dict

    @classmethod
    def read(cls, path):
        sections = {"[left out]": {}, "[failing]": {}}
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
        return cls(sections["[left out]"], sections["[failing]"])

    def reason(self, name):
        """The reason why a test is known to fail, or None."""
        return next((reason for pattern, reason in self.failing.items() if matches(name, pattern)), None)
