import re
import socket
import threading
import weakref
from unittest import mock

import pytest
import torch

import mxnet as mx
from job_checks import Job, outputs
from mxnet.kvstore import group
from mxnet.kvstore.group import BUCKET, SMALL_BUCKET, buckets


@pytest.mark.parametrize("tensors, sizes", [
    ([], []),
    ([torch.zeros(3), torch.zeros(4)], [2]),
    ([torch.zeros(3), torch.zeros(4, dtype=torch.float16), torch.zeros(2, dtype=torch.float16), torch.zeros(1)], [1, 2, 1]),
    ([torch.zeros(SMALL_BUCKET // 4), torch.zeros(1), torch.zeros(SMALL_BUCKET // 8), torch.zeros(SMALL_BUCKET // 8)], [1, 2, 1]),
    ([torch.empty(SMALL_BUCKET // 8)] * 140, [2, 2, 4, 8, 16, 32, 32, 22, 11, 5, 3, 2, 1]),
])
def test_what_travels_together(tensors, sizes):
    found = list(buckets(tensors))
    assert [len(bucket) for bucket in found] == sizes
    assert [id(t) for bucket in found for t in bucket] == [id(t) for t in tensors]
    assert max((sum(t.nbytes for t in bucket) for bucket in found), default=0) <= BUCKET


def test_a_planned_bucket_is_divided_by_types_alone():
    large, half = torch.empty(BUCKET // 4), torch.empty(1, dtype=torch.float16)
    assert [len(bucket) for bucket in buckets([large, large, half, large], limited=False)] == [2, 1, 1]


def test_sums_beside_the_programs_own_process_group():
    found = outputs("""
        import torch
        import torch.distributed as dist
        rank = os.environ['DMLC_WORKER_ID']
        store = dist.TCPStore('127.0.0.1', int(os.environ['DMLC_PS_ROOT_PORT']))
        dist.init_process_group('gloo', store=dist.PrefixStore('own', store), rank=int(rank), world_size=2)
        net = mx.kv.create('dist_sync')._group
        half = torch.tensor([2048.0, 1.0, 1.0], dtype=torch.float16) if rank == '0' else torch.tensor([1.0, 3.0, 0.5], dtype=torch.float16)
        total = net.begin_sum(half, 'sum')()
        print(total.tolist(), str(total.dtype))
        brain = net.begin_sum(torch.ones(5, 2, dtype=torch.bfloat16), 'sum')()
        print(brain.tolist()[4], str(brain.dtype))
        print([t.tolist() for t in net.begin_sum_many([torch.ones(2), torch.ones(1, dtype=torch.int64), torch.ones(())], 'sums')])
        print([t.tolist() for t in net.all_gather_uneven(torch.ones(net.rank, 2), [0, 1], 'gather')])
        net.prepare_channel()
        threads = len(os.listdir('/proc/self/task'))
        other = net.channel('more')
        print(other.begin_sum(torch.ones(1), 'more')().tolist(), len(os.listdir('/proc/self/task')) == threads, net.channel('another') is not other)
        last = net.all_reduce(torch.ones(1))
        net.leave()
        print(last.is_completed(), len(os.listdir('/proc/self/task')) <= threads - 4, dist.is_initialized())
        try:
            net.barrier()
        except mx.MXNetError as error:
            print(error)
        """)
    for rank, lines in enumerate(found):
        assert lines == [
            "[2048.0, 4.0, 1.5] torch.float16", "[2.0, 2.0] torch.bfloat16", "[[2.0, 2.0], [2], 2.0]", "[[], [[1.0, 1.0]]]", "[2.0] True True",
            "True True True", f"worker {rank} has left its job, as a program does at its end, and can't send or receive anything more"]


class Work:
    """Is complete just behind the end of the first wait, with an error or without."""

    def __init__(self, error=None):
        self.error, self.waits = error, 0

    def is_completed(self):
        return self.waits > 0

    def wait(self, timeout=None):
        self.waits += 1
        if self.waits == 1:
            raise RuntimeError("Operation timed out!")
        if self.error is not None:
            raise self.error


def test_what_ends_just_behind_a_wait_is_no_failure():
    work = Work()
    group.Group.wait(mock.Mock(_under_way={}), work, "barrier")
    assert work.waits == 2
    waiting = mock.Mock(_under_way={}, _broken=lambda doing, error: mx.MXNetError(f"{doing}: {error}"))
    with pytest.raises(mx.MXNetError, match="^barrier: connection reset$"):
        group.Group.wait(waiting, Work(RuntimeError("connection reset")), "barrier")


def test_tensors_stay_while_torch_may_use_them():
    """A thread of torch's that frees the last use of one while the interpreter ends is ended by it, and takes the process along with SIGABRT."""
    def begin(work):
        def collective(tensor, async_op):
            assert async_op
            return work
        tensor = torch.ones(2)
        assert group.Group.begin(net, collective, tensor) is work
        return weakref.ref(tensor)
    net = mock.Mock(_under_way={}, _left=threading.Event(), _broken=lambda doing, error: mx.MXNetError(doing))
    waited, failing, forgotten = Work(), Work(RuntimeError("connection reset")), Work()
    tensors = [begin(work) for work in (waited, failing, forgotten)]
    group.Group.wait(net, waited, "sum")
    with pytest.raises(mx.MXNetError, match="^sum$"):
        group.Group.wait(net, failing, "sum")
    assert [t() is None for t in tensors] == [True, False, False]
    begin(Work())  # what has ended goes
    assert [t() is None for t in tensors] == [True, True, False]
    forgotten.waits = 1
    begin(Work())
    assert tensors[2]() is None


def test_sums_in_order_do_not_depend_on_buckets():
    program = """
    import torch
    net = kv._group
    values = [torch.randn(1001, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    net.sum_in_order()
    total = net.begin_sum(values[net.rank].clone(), 'whole')()
    parts = [net.begin_sum(part.clone(), 'parts')() for part in values[net.rank].split(77)]
    print(torch.equal(total, values[0] + values[1] + values[2]), torch.equal(torch.cat(parts), total))
    half = net.begin_sum(values[net.rank].half(), 'half')()
    print(torch.equal(half, sum(v.half().float() for v in values).half()), net.begin_sum(torch.tensor([net.rank, 2]), 'integers')().tolist())
    """
    assert outputs(program, workers=3, kind="dist_sync") == [["True True", "True [3, 6]"]] * 3


def test_a_worker_that_hosts_the_rendezvous_says_that_it_ends_before_it_waits_for_the_others():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = outputs("""
        os.environ.update(RANK=os.environ['DMLC_WORKER_ID'], WORLD_SIZE='3', MASTER_ADDR='127.0.0.1')
        del os.environ['DMLC_PS_ROOT_URI']
        net = mx.kv.create('dist_sync')._group
        net.barrier()
        if net.rank:
            try:
                net.barrier()
            except mx.MXNetError as error:
                print(error, flush=True)
        if net.rank == 2:
            os._exit(0)  # its connections tell that it has ended; its silence would do so after a thousand seconds
        """, workers=3, env={"MASTER_PORT": str(port), "PS_HEARTBEAT_TIMEOUT": "1000"})
    assert found[0] == []
    for rank, other in (1, 2), (2, 1):
        lost = f"has lost (another worker|worker {other}), which died or ended early; worker 0 left before the others"
        assert re.match(f"barrier: worker {rank} {lost}", found[rank][0]), found


@pytest.mark.parametrize("place", ["_connect", "_new_gloo"])
def test_a_start_that_fails_ends_in_time_and_leaves_no_thread_in_the_store(place):
    with Job(f"""
        import threading
        from mxnet.kvstore import group
        if os.environ['DMLC_WORKER_ID'] == '1':
            group.Group.{place} = lambda self, doing: os.kill(os.getpid(), 9)
        try:
            mx.kv.create('dist_sync')
        except mx.MXNetError as error:
            print(error)
        print([thread.name for thread in threading.enumerate() if 'kvstore' in thread.name])
        """, env={"PS_HEARTBEAT_TIMEOUT": "2"}) as job:
        (status, out, err), (killed, _, _) = job.end()
    assert (status, killed) == (0, -9), err
    message, threads = out.splitlines()
    assert message.startswith("the start of the job: worker 0 has lost another worker, which died or ended early (wait timeout after 2000ms"), out
    assert threads == "[]"
