import gc
import os
import subprocess

import pytest

from forked import python
from mxnet import memory


def run(code, **env):
    return subprocess.run([*python(), "-c", code], capture_output=True, text=True, env={**os.environ, **env}, timeout=120)


@pytest.mark.skipif(memory._libc() is None, reason="the C library is not glibc: there is nothing to configure")
@pytest.mark.parametrize(("choice", "kept"), [("", "True"), ("Round", "True"), ("Unpooled", "False")])
def test_the_allocator_is_configured_once_at_import(choice, kept):
    env = {"MXNET_CPU_MEM_POOL_TYPE": choice} if choice else {}
    assert run("import mxnet; print(mxnet.memory.kept)", **env).stdout.strip() == kept


def test_unknown_choices_are_refused():
    result = run("import mxnet", MXNET_CPU_MEM_POOL_TYPE="Lots")
    assert result.returncode and "must be one of Naive, Round, Unpooled, received 'Lots'" in result.stderr


def test_memory_can_be_given_back():
    code = """
import torch, mxnet as mx
def resident():
    return int(open('/proc/self/statm').read().split()[1]) * 4096
x = [torch.ones(1 << 20) for _ in range(64)]  # 256 MB
del x
held = resident()
mx.cpu().empty_cache()
print(held - resident() > 200 << 20)
"""
    if not os.path.exists("/proc/self/statm") or memory._libc() is None:
        pytest.skip("needs Linux and glibc")
    assert run(code).stdout.strip() == "True"


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_for_a_while_and_is_then_as_before(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError), memory.without_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_what_an_import_makes_is_old_at_once():
    thawed = not gc.get_freeze_count()
    with memory.without_collection():
        made = [object(), []]
    assert any(o is made for o in gc.get_objects(generation=2)) is thawed and bool(gc.get_freeze_count()) is not thawed


def test_frozen_objects_stay_frozen():
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with memory.without_collection():
            pass
        assert gc.get_freeze_count() > count // 2 > 0  # other threads may free some
    finally:
        gc.unfreeze()
