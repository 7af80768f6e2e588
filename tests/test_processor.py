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
        monkeypatch.setattr(processor, "CPUINFO", path)
        processor.cpuinfo_lines.cache_clear()
    yield tell
    processor.cpuinfo_lines.cache_clear()


def test_what_x86_says(told):
    told("\n".join(TWO_SOCKETS.format(*core) for core in CORES))
    assert processor.flags() == {"fpu", "avx2", "fma"} and processor.name() == "Example 9000 @ 3 GHz" and processor.cores() == 3
    assert processor.maker() == "GenuineExample" and processor.family() == 26


@pytest.mark.parametrize("flags, held, design", [
    ("fpu avx2 fma", None, "GenuineExample-26-avx2"), ("avx2 avx512f", None, "GenuineExample-26-avx512"),
    ("avx2 avx512f", "AVX2", "GenuineExample-26-avx2"), ("avx2 avx512f amx_tile amx_bf16", None, "GenuineExample-26-amx"),
    ("avx2 avx512f amx_tile amx_bf16", "AVX512_CORE", "GenuineExample-26-avx512")])
def test_designs(told, monkeypatch, flags, held, design):
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    if held is None:
        monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    else:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", held)
    told(TWO_SOCKETS.format(0, 0, 0).replace("fpu avx2 fma", flags))
    assert processor.design() == design


def test_what_arm_says(told):
    told(ARM)
    assert processor.flags() == {"fp", "asimd"} and processor.name() == processor.maker() == "" and processor.family() == 0
    assert processor.cores() is None
    assert processor.design() == ""
    first = processor.identity()
    told(ARM.replace("0xd40", "0xd41"))
    assert first != processor.identity()


def test_what_is_not_said(told):
    told(None)
    assert processor.flags() == frozenset() and processor.identity() == "" and processor.name() == "" and processor.cores() is None


TASKS = {"1": "1000000000 250000000 7", "2": "5 750000000 1", "3": "", "4": "not numbers", "5": "12"}


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """A function that makes the system say something else of this process's threads."""
    def tell(found):
        for name, text in found.items():
            (tmp_path / name).mkdir()
            if text is not None:
                (tmp_path / name / "schedstat").write_text(text)
        monkeypatch.setattr(processor, "TASKS", tmp_path)
    return tell


def test_what_threads_have_waited_is_the_sum(tasks):
    tasks(TASKS)
    assert processor.waited() == 1.0


def test_threads_that_end_meanwhile_and_systems_that_do_not_say_count_nothing(tasks, tmp_path, monkeypatch):
    tasks({"1": "1 2000000000 3", "2": None})
    assert processor.waited() == 2.0
    tasks({})
    (tmp_path / "1" / "schedstat").unlink()
    assert processor.waited() == 0
    monkeypatch.setattr(processor, "TASKS", tmp_path / "nothing")
    assert processor.waited() == 0


@pytest.mark.parametrize("text, size", [("32768K\n", 32 << 20), ("480M", 480 << 20), ("", 0), ("much", 0), ("12", 0), (None, 0)])
def test_the_last_cache(text, size, tmp_path, monkeypatch):
    path = tmp_path / "size"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(processor, "LAST_CACHE_SIZE", path)
    assert processor.last_cache() == size


def test_linux_says_how_large_the_last_cache_is():
    if not processor.LAST_CACHE_SIZE.exists():
        pytest.skip("this system does not say")
    assert processor.last_cache() >= 1 << 20


@pytest.mark.parametrize("most, tiles", [("", True), ("DEFAULT", True), ("AVX512_CORE_AMX", True), ("avx10_1_512_amx", True),
                                         ("AVX512_CORE_BF16", False), ("AVX2", False)])
def test_tiles_are_left_alone_where_onednns_variable_says_so(most, tiles, monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", most)
    monkeypatch.setattr(processor, "flags", lambda: frozenset({"amx_tile", "amx_bf16"}))
    assert processor.tiles() is tiles
    monkeypatch.setattr(processor, "flags", lambda: frozenset({"amx_tile"}))
    assert not processor.tiles()
