import pytest

from mxnet import processor

TWO_SOCKETS = """processor\t: {}
cpu family\t: 26
model name\t: Example 9000 @ 3 GHz
vendor_id\t: GenuineExample
physical id\t: {}
core id\t\t: {}
flags\t\t: fpu avx2 fma
"""
CORES = [(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 1, 0)]  # two threads share the first core of the first socket
ARM = "processor\t: 0\nFeatures\t: fp asimd\nCPU part\t: 0xd40\n"


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A function that makes the system say something else of its processor."""
    def tell(text):
        path = tmp_path / "cpuinfo"
        if text is not None:
            path.write_text(text)
        monkeypatch.setattr(processor, "_SOURCE", path)
        processor._lines.cache_clear()
    yield tell
    processor._lines.cache_clear()


def test_what_x86_says(told):
    told("\n".join(TWO_SOCKETS.format(*core) for core in CORES))
    assert processor.flags() == {"fpu", "avx2", "fma"} and processor.name() == "Example 9000 @ 3 GHz" and processor.cores() == 3
    assert processor.maker() == "GenuineExample" and processor.family() == 26


def test_what_arm_says(told):
    told(ARM)
    assert processor.flags() == {"fp", "asimd"} and processor.name() == processor.maker() == "" and processor.family() == 0
    assert processor.cores() is None
    first = processor.identity()
    told(ARM.replace("0xd40", "0xd41"))
    assert first != processor.identity()


def test_what_is_not_said(told):
    told(None)
    assert processor.flags() == frozenset() and processor.identity() == "" and processor.name() == "" and processor.cores() is None
