"""What a process of a campaign has done, and what it is doing: memory that the one that watches it shares, and finds when it is dead."""
import mmap
import pathlib
import struct

_TARGETS = 1024
_FIELDS = 5  # of a target: cases, refused, failed, nanoseconds, nanoseconds of the longest
_HEAD = struct.Struct("<QQQQ")  # cases begun, peak of memory in KiB, length of the names, length of what is tried
_NAMES = _HEAD.size + _TARGETS * _FIELDS * 8
_CASE = _NAMES + (1 << 17)
_SIZE = _CASE + (4 << 20)


class Progress:
    """A file of fixed size, mapped: writing to it costs no call of the system."""

    def __init__(self, path):
        path = pathlib.Path(path)
        if not path.exists():
            with open(path, "wb") as f:
                f.truncate(_SIZE)
        with open(path, "r+b") as f:
            self._map = mmap.mmap(f.fileno(), _SIZE)
        self._numbers = memoryview(self._map).cast("Q")

    def name(self, names):
        """Say what the targets are called."""
        text = "\n".join(names).encode()
        assert len(names) <= _TARGETS and len(text) <= _CASE - _NAMES
        self._map[_NAMES:_NAMES + len(text)] = text
        self._numbers[2] = len(text)

    def begin(self, name, case):
        """This case of that target is tried now."""
        text = name.encode() + b"\n" + case
        text = text[:_SIZE - _CASE]
        self._map[_CASE:_CASE + len(text)] = text
        self._numbers[3] = len(text)
        self._numbers[0] += 1

    def end(self, target, refused, seconds, longest, failed):
        """It is done: `seconds` with making it, `longest` without."""
        at = _HEAD.size // 8 + target * _FIELDS
        numbers = self._numbers
        numbers[at] += 1
        numbers[at + 1] += refused
        numbers[at + 2] += failed
        numbers[at + 3] += int(1e9 * seconds)
        numbers[at + 4] = max(numbers[at + 4], int(1e9 * longest))

    def peak(self, kib):
        """The most memory that was in use at once."""
        self._numbers[1] = kib

    @property
    def begun(self):
        """How many cases were begun."""
        return self._numbers[0]

    @property
    def memory(self):
        """The peak in KiB, if it was said."""
        return self._numbers[1]

    def current(self):
        """The (name of the target, case) that was last begun, or None."""
        length = self._numbers[3]
        if not length:
            return None
        name, case = self._map[_CASE:_CASE + length].split(b"\n", 1)
        return name.decode(), case

    def table(self):
        """What was counted, by target: (cases, refused, failed, seconds, seconds of the longest)."""
        names = self._map[_NAMES:_NAMES + self._numbers[2]].decode().split("\n") if self._numbers[2] else []
        found = {}
        for i, name in enumerate(names):
            at = _HEAD.size // 8 + i * _FIELDS
            cases, refused, failed, nanoseconds, longest = self._numbers[at:at + _FIELDS]
            found[name] = cases, refused, failed, nanoseconds / 1e9, longest / 1e9
        return found
