import re

from job_checks import Job, outputs


def test_a_worker_that_is_killed_while_it_sends_is_missed_at_once():
    with Job("""
        import torch
        net = kv._group
        net.barrier()
        work = net.begin_broadcast(torch.ones(30_000_000))
        if net.rank == 0:
            time.sleep(0.01)
            os.kill(os.getpid(), 9)
        try:
            net.wait(work, 'pull')
        except mx.MXNetError as error:
            print(error)
        """, workers=3, kind="dist_sync") as job:
        ended = job.end()
    assert [status for status, _, _ in ended] == [-9, 0, 0]
    for rank in 1, 2:  # Gloo says it, if it has not begun to receive; otherwise these connections do; the heartbeat would need a minute
        reason = r"waits in vain \(worker (0: its connection has closed|[12]: has given up)|has lost worker 0, which died or ended early"
        assert re.match(f"pull: worker {rank} ({reason})", ended[rank][1]), ended[rank]


def test_one_that_has_left_is_not_lost():
    """Nor is its end delayed: it has sent its part, and has nothing to wait for."""
    found = outputs("""
        import torch
        import torch.distributed as dist
        net = kv._group
        parts = [torch.zeros(1) for _ in range(3)] if net.rank == 0 else None
        net.barrier()
        if net.rank == 2:
            while net.monitor.ended() != {'worker 1': 'left'}:
                time.sleep(0.1)
            time.sleep(1.5)
        net.wait(net.begin(dist.gather, torch.full((1,), net.rank + 1.0), parts, dst=0), 'gather')
        print(parts and torch.cat(parts).tolist())
        if net.rank == 0:
            print([*net._connections.closed()][:1], net._connections.end())
        """, workers=3, kind="dist_sync")
    assert found[1:] == [["None"], ["None"]]
    assert found[0] == ["[1.0, 2.0, 3.0]", "[1] True"]


def test_the_wait_can_be_ended():
    found = outputs("""
        connections = kv._group._connections
        if kv.rank == 0:
            threads = len(os.listdir('/proc/self/task'))
            print([*connections.closed()], connections.end(), threads - len(os.listdir('/proc/self/task')) >= 2)
        else:
            while not [*connections.closed()]:
                time.sleep(0.05)
            print([*connections.closed()])
        """, kind="dist_sync")
    assert found == [["[] True True"], ["[0]"]]


def test_one_that_has_given_up_says_so():
    found = outputs("""
        net = kv._group
        net.barrier()
        if net.rank == 1:
            net._give_up()
        else:
            while not net.monitor.silent(float('inf')):
                time.sleep(0.05)
            print(net.monitor.trouble())
            try:
                net.barrier()
            except mx.MXNetError as error:
                print(error)
        """, kind="dist_sync")
    assert found[1] == [] and found[0][0] == "worker 1: has given up"
    assert re.match("barrier: worker 0 has lost another worker, which died or ended early; worker 1 has given up ", found[0][1]), found
