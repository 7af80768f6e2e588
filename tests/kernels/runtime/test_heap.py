"""The heap that large tensors have of their own. Each test is a process: what others left there would decide where tensors go."""
import os
import subprocess
import textwrap

import pytest

from forked import python
from mxnet import kernels, memory

pytestmark = pytest.mark.skipif(not memory.kept or kernels.load("runtime/heap") is None, reason="needs glibc and a C++ compiler")


def run(code, begin="installed = kernels.own_heap()", **env):
    code = f"import os, torch, mxnet as mx\nfrom mxnet import kernels\n{begin}\n" + textwrap.dedent(code)
    result = subprocess.run([*python(), "-c", code], capture_output=True, text=True, env={**os.environ, **env}, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_it_comes_with_the_first_kernel_whatever_was_compiled_before(tmp_path):
    home = {"MXNET_HOME": str(tmp_path)}
    assert run("print(kernels.own_heap.cache_info().currsize)", "", **home) == ["0"]
    assert run("""
        from mxnet.kernels.nn import nms
        assert nms._overlaps.available()
        print(kernels.own_heap.cache_info().currsize, kernels.own_heap())
        """, "", **home) == ["1", "True"]
    assert run("print(kernels.own_heap.cache_info().currsize)", "", **home) == ["0"]


def test_large_tensors_lie_side_by_side():
    found = run("""
        print(installed)
        a = torch.empty(1 << 20)
        where = a.data_ptr()
        small = torch.empty(16)
        b = torch.empty(1 << 20)
        print(where % 64, small.data_ptr() % 64, b.data_ptr() - where)
        """)
    assert found == ["True", "0", "0", str((4 << 20) + 64)]  # side by side, whatever was made between them


def test_a_tensor_takes_the_place_of_one_of_its_size_though_small_objects_came_between():
    assert run("""
        for _ in range(5):
            large = [torch.empty(100_003) for _ in range(20)]
            places = [t.data_ptr() for t in large]
            kept = [bytes(600) for _ in range(2000)]
            small = [torch.empty(20) for _ in range(2000)]
            del large
            again = [torch.empty(100_003) for _ in range(20)]
            print(sorted(t.data_ptr() for t in again) == sorted(places))
        """) == ["True"] * 5


def test_free_neighbours_become_one_in_any_order():
    assert run("""
        import itertools
        for order in itertools.permutations(range(3)):
            held = [torch.empty(1 << 18) for _ in range(3)]
            guard = torch.empty(1 << 18)
            first = held[0].data_ptr()
            for i in order:
                held[i] = None
            whole = torch.empty(3 << 18)
            print(whole.data_ptr() == first)
            del whole, guard
        """) == ["True"] * 6


def test_the_best_fit_is_taken_and_the_rest_stays_free():
    assert run("""
        sizes = [400_000, 1, 200_000, 1, 300_000, 1]
        held = [torch.empty(n if n > 1 else 100_000) for n in sizes]
        places = [t.data_ptr() for t in held]
        for i in (0, 2, 4):
            held[i] = None
        fits = torch.empty(250_000)
        rest = torch.empty(49_000)
        print(fits.data_ptr() == places[4], rest.data_ptr() - fits.data_ptr() == 1_000_064)
        """) == ["True", "True"]


def test_trim_gives_pages_back_and_leaves_tensors_alone():
    assert run("""
        def resident():
            return int(open('/proc/self/statm').read().split()[1]) * 4096
        large = [torch.full((1 << 20,), float(i)) for i in range(64)]  # 256 MiB
        del large[1::2]
        before = resident()
        mx.cpu().empty_cache()
        print(before - resident() > 120 << 20, all((t == 2 * i).all() for i, t in enumerate(large)))
        again = torch.full((1 << 20,), 7.)
        print(bool((again == 7).all()))
        """) == ["True", "True", "True"]


def test_many_threads_write_to_nothing_but_their_own():
    assert run("""
        import random, threading
        def work(seed):
            pick, held = random.Random(seed), []
            for turn in range(400):
                value = seed * 1000 + turn
                held.append((value, torch.full((pick.randrange(10_000, 200_000),), value, dtype=torch.int32)))
                if len(held) > 8:
                    expected, t = held.pop(pick.randrange(len(held)))
                    wrong.append(int((t != expected).sum()))
        wrong = []
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        print(len(wrong), sum(wrong))
        """) == [str(4 * 392), "0"]


def test_a_forked_child_has_its_own():
    assert run("""
        a = torch.ones(1 << 20)
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)  # those of OpenMP do not exist here
            b = torch.zeros(1 << 20)
            a += 1
            os._exit(0 if bool((b == 0).all()) and bool((a == 2).all()) else 1)
        print(os.waitpid(child, 0)[1], bool((a == 1).all()))
        """) == ["0", "True"]


def test_storages_may_grow_and_be_empty():
    assert run("""
        a = torch.arange(50_000)
        a.resize_(500_000)
        print(bool((a[:50_000] == torch.arange(50_000)).all()), torch.empty(0).numel(), a.resize_(10)[9].item())
        """) == ["True", "0", "9"]


def test_the_profiler_sees_it():
    assert run("""
        from torch.profiler import profile, ProfilerActivity
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
            a = torch.empty(1 << 20)
            del a
        found = [e.nbytes() for e in p.profiler.kineto_results.events() if e.name() == '[memory]']
        print(found.count(4 << 20), found.count(-(4 << 20)))
        """) == ["1", "1"]


def test_too_much_is_an_error():
    assert run("""
        try:
            torch.empty(1 << 60)
        except RuntimeError as error:
            print("memory" in str(error) or "size" in str(error))
        """) == ["True"]


def test_an_allocator_left_alone_has_none():
    assert run("print(installed)", MXNET_CPU_MEM_POOL_TYPE="Unpooled") == ["False"]


def test_memory_that_is_not_there_is_not_promised():
    """A tensor larger than the machine's memory was given out, and ended the process where it was written to."""
    assert run("""
        import os
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        swap = sum(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("SwapTotal"))
        if open("/proc/sys/vm/overcommit_memory").read().strip() == "1":  # this system promises everything
            print(True)
        else:
            try:
                torch.empty((whole + swap) * 3 // 2, dtype=torch.uint8)
            except RuntimeError as error:
                print("allocate" in str(error))
        print(torch.ones(1 << 20).sum().item() == 1 << 20)
        """) == ["True", "True"]


def test_where_addresses_are_limited_malloc_keeps_them():
    assert run("""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (32 << 30, 32 << 30))
        print(kernels.own_heap())
        import mmap
        print(len(mmap.mmap(-1, 4 << 30)) == 4 << 30)
        """, "") == ["False", "True"]


def test_limits_that_came_later_hold():
    """With both, the heap grew by gigabytes beyond the limit on data."""
    assert run("""
        import resource
        pages = [int(n) for n in open("/proc/self/statm").read().split()]
        for kind, pages, more in ((resource.RLIMIT_AS, pages[0], 1 << 30), (resource.RLIMIT_DATA, pages[5], 256 << 20)):
            resource.setrlimit(kind, (pages * resource.getpagesize() + more, resource.RLIM_INFINITY))
        try:
            torch.empty(2 << 30, dtype=torch.uint8)
        except RuntimeError as error:
            print("allocate" in str(error))
        print(torch.ones(1 << 20).sum().item() == 1 << 20)
        """) == ["True", "True"]


@pytest.mark.skipif(not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="the system has no transparent huge pages")
def test_it_asks_for_huge_pages_for_very_large_tensors_only():
    assert run("""
        import re
        small, large, again = torch.empty(1 << 20), torch.empty(1 << 25), torch.empty(1 << 20)
        middles, inside = [t.data_ptr() + t.nbytes // 2 for t in (small, large, again)], []
        for line in open('/proc/self/smaps'):
            area = re.match('([0-9a-f]+)-([0-9a-f]+) ', line)
            if area:
                inside = [m for m in middles if int(area[1], 16) <= m < int(area[2], 16)]
            elif line.startswith('VmFlags:'):
                for middle in inside:
                    print(middles.index(middle), 'hg' in line.split(), int(kernels.own_heap()))
        """) == ["0", "False", "1", "1", "True", "1", "2", "False", "1"]
