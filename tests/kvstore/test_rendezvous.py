import subprocess
import threading

import pytest
from torch import distributed as dist

from forked import python
from mxnet import MXNetError
from mxnet.kvstore import rendezvous

DMLC = {"DMLC_ROLE": "worker", "DMLC_PS_ROOT_URI": "10.0.0.1", "DMLC_PS_ROOT_PORT": "9091", "DMLC_NUM_WORKER": "4", "DMLC_NUM_SERVER": "2"}
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "29500"}


@pytest.fixture
def given(monkeypatch):
    for name in (*DMLC, *TORCHRUN, "DMLC_WORKER_ID", "DMLC_SERVER_ID", "DMLC_INTERFACE", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID",
                 "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)
    return lambda **values: [monkeypatch.setenv(name, value) for name, value in values.items()]


def test_a_process_that_nobody_launched_has_no_place(given):
    assert rendezvous.place() is None


@pytest.mark.parametrize("values, expected", [
    (DMLC, ("worker", None, 4, 2, "10.0.0.1", 9091, False, "/0")),
    ({**DMLC, "DMLC_WORKER_ID": "3"}, ("worker", 3, 4, 2, "10.0.0.1", 9091, False, "/0")),
    ({**DMLC, "DMLC_ROLE": "server", "DMLC_SERVER_ID": "1"}, ("server", 1, 4, 2, "10.0.0.1", 9091, False, "/0")),
    ({**DMLC, "DMLC_ROLE": "scheduler"}, ("scheduler", None, 4, 2, "10.0.0.1", 9091, True, "/0")),
    (TORCHRUN, ("worker", 1, 2, 0, "10.0.0.2", 29500, False, "/0")),
    ({**TORCHRUN, "RANK": "0"}, ("worker", 0, 2, 0, "10.0.0.2", 29500, True, "/0")),
    ({**TORCHRUN, "RANK": "0", "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "job", "TORCHELASTIC_RESTART_COUNT": "2"},
     ("worker", 0, 2, 0, "10.0.0.2", 29500, False, "job/2")),
    ({**DMLC, **TORCHRUN}, ("worker", 1, 2, 2, "10.0.0.1", 9091, False, "/0")),  # as mxnet.tools.launch sets them
])
def test_places(given, values, expected):
    given(**values)
    assert tuple(rendezvous.place()) == expected


@pytest.mark.parametrize("values, message", [
    ({"DMLC_ROLE": "servant"}, "DMLC_ROLE must be one of worker, server, scheduler, received 'servant'"),
    ({"DMLC_ROLE": "server"}, "a server of a distributed job needs the environment variables DMLC_NUM_WORKER, DMLC_NUM_SERVER, DMLC_PS_ROOT_PORT, "
                              "DMLC_PS_ROOT_URI; python -m mxnet.tools.launch and torchrun set them"),
    ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "host"}, "a worker of a distributed job needs the environment variable MASTER_PORT;"),
    ({**TORCHRUN, "RANK": "x"}, "RANK must be a number from 0 on, received 'x'"),
    ({**TORCHRUN, "WORLD_SIZE": "0"}, "WORLD_SIZE must be a number from 1 on, received '0'"),
    ({**TORCHRUN, "RANK": "2"}, "this process is worker 2 of 2: ranks go from 0 to 1"),
])
def test_what_is_malformed_is_named(given, values, message):
    given(**values)
    with pytest.raises(MXNetError, match=message):
        rendezvous.place()


def test_ranks_are_drawn_and_end(given):
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    given(**{**DMLC, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(store.port), "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "0"})
    where = rendezvous.place()
    assert [rendezvous.meet(where)[1] for _ in range(2)] == [0, 1]
    with pytest.raises(MXNetError, match="has its 2 workers already"):
        rendezvous.meet(where)


def test_whoever_does_not_come_is_missed(given):
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    given(**{**DMLC, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(store.port), "MXNET_KVSTORE_JOIN_TIMEOUT": "0.2"})
    where = rendezvous.place()
    with pytest.raises(MXNetError, match=r"1 of the 6 processes of the job have come within 0.2 s \(4 workers and 2 servers are expected\)"):
        rendezvous.join(rendezvous.meet(where)[0], where)


def _host(given):
    """Start a process that hosts a store; set the environment for it."""
    program = ("import sys, time, torch.distributed as dist\nstore = dist.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)\n"
               "print(store.port, flush=True)\nsys.stdin.read()")
    process = subprocess.Popen([*python(), "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    given(**{**DMLC, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": process.stdout.readline().strip()})
    return process


@pytest.mark.parametrize("waits", [False, True])
def test_the_host_of_the_meeting_point_dies(given, waits):
    with _host(given) as host:
        where = rendezvous.place()
        store, _ = rendezvous.meet(where)
        end = threading.Timer(1 if waits else 0, host.kill)
        end.start()
        if not waits:
            end.join()
            host.wait()
        message = f"the worker does not reach the meeting point of the job at 127.0.0.1:{where.port} any more: whoever has that point is gone"
        with pytest.raises(MXNetError, match=message):
            rendezvous.join(store, where)
        end.join()


def test_nobody_at_the_meeting_point(given):
    given(**{**DMLC, "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "1", "MXNET_KVSTORE_JOIN_TIMEOUT": "1"})
    with pytest.raises(MXNetError, match="the worker can't reach the meeting point of the job at 127.0.0.1:1 within 1 s"):
        rendezvous.meet(rendezvous.place())


def test_addresses(given):
    given(**{**DMLC, "DMLC_PS_ROOT_URI": "127.0.0.1"})
    assert rendezvous.own_address(rendezvous.place()) == "127.0.0.1"
    given(DMLC_INTERFACE="lo")
    assert rendezvous.own_address(rendezvous.place()) == "127.0.0.1"
    given(DMLC_INTERFACE="none0")
    with pytest.raises(MXNetError, match="DMLC_INTERFACE names 'none0', which has no address"):
        rendezvous.own_address(rendezvous.place())
