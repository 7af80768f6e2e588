"""The role and rank of this process in a distributed job, and the rendezvous of all processes.

torchrun sets ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT``, MXNet's launchers set ``DMLC_ROLE``, ``DMLC_PS_ROOT_URI`` and others;
`mxnet.tools.launch` sets both. The rendezvous is a `torch.distributed.TCPStore`, hosted by the launcher, the scheduler or worker 0.
"""
from __future__ import annotations

import contextlib
import datetime
import os
import socket
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch.distributed as dist

from .. import environment
from ..base import MXNetError
from ..suggestions import shortened

ROLES = ("worker", "server", "scheduler")


class Place(NamedTuple):
    """The settings from the environment: the role, the rank (None if it is assigned at joining), the counts, and the rendezvous address."""

    role: str
    rank: int | None
    num_workers: int
    num_servers: int
    address: str
    port: int
    hosts: bool  # True if this process hosts the rendezvous
    attempt: str  # distinguishes a job restarted by torchrun from its earlier attempts


def _number(name, least=0):
    text = os.environ[name]
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise MXNetError(f"the environment variable {name} must be a number from {least} on, received {shortened(text)}")
    return number


def role() -> str:
    """Return the role of this process: ``DMLC_ROLE``, by default ``worker``.

    Raises
    ------
    MXNetError
        If ``DMLC_ROLE`` is not a role.
    """
    name = environment.get_str("DMLC_ROLE") or "worker"
    if name not in ROLES:
        raise MXNetError(f"the environment variable DMLC_ROLE must be one of {', '.join(ROLES)}, received {shortened(name)}")
    return name


def place() -> Place | None:
    """Return the `Place` of this process; None if it was not started by a launcher.

    Raises
    ------
    MXNetError
        If variables are missing or malformed.
    """
    mine, given = role(), os.environ
    torchrun = mine == "worker" and "RANK" in given and "WORLD_SIZE" in given
    if "DMLC_PS_ROOT_URI" in given:
        address, port = given["DMLC_PS_ROOT_URI"], "DMLC_PS_ROOT_PORT"
    elif torchrun:
        address, port = given.get("MASTER_ADDR"), "MASTER_PORT"
    elif mine == "worker" and "DMLC_NUM_WORKER" not in given:
        return None
    else:
        address, port = None, "DMLC_PS_ROOT_PORT"
    needed = [port] if torchrun else ["DMLC_NUM_WORKER", "DMLC_NUM_SERVER", port]
    missing = [name for name in needed if name not in given] + ([] if address else ["DMLC_PS_ROOT_URI"])
    if missing:
        raise MXNetError(f"a {mine} of a distributed job needs the environment variable{'s' * (len(missing) > 1)} {', '.join(missing)}; "
                         "python -m mxnet.tools.launch and torchrun set them")
    attempt = f"{given.get('TORCHELASTIC_RUN_ID', '')}/{given.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    if torchrun:
        rank, workers = _number("RANK"), _number("WORLD_SIZE", 1)
        servers = _number("DMLC_NUM_SERVER") if "DMLC_NUM_SERVER" in given else 0
        hosts = "DMLC_PS_ROOT_URI" not in given and rank == 0 and given.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    else:
        workers, servers = _number("DMLC_NUM_WORKER", 1), _number("DMLC_NUM_SERVER")
        own = {"worker": "DMLC_WORKER_ID", "server": "DMLC_SERVER_ID"}.get(mine, "")
        rank, hosts = (_number(own) if own in given else None), mine == "scheduler"
    count = {"worker": workers, "server": servers, "scheduler": 1}[mine]
    if rank is not None and rank >= count:
        raise MXNetError(f"this process is {mine} {rank} of {count}: ranks go from 0 to {count - 1}")
    return Place(mine, rank, workers, servers, address, _number(port), hosts, attempt)


def meet(where: Place) -> tuple[Any, int]:
    """Connect to the job's rendezvous; return its store, and the rank of this process.

    Raises
    ------
    MXNetError
        If the rendezvous does not respond within ``MXNET_KVSTORE_JOIN_TIMEOUT`` seconds, or its host has died.
    """
    limit = environment.get_float("MXNET_KVSTORE_JOIN_TIMEOUT")
    _use_interface()
    try:
        store = dist.TCPStore(where.address, where.port, is_master=where.hosts, wait_for_workers=False, multi_tenant=where.hosts,
                              timeout=datetime.timedelta(seconds=limit))
    except RuntimeError as error:
        who = "open the meeting point" if where.hosts else "reach the meeting point"
        raise MXNetError(f"the {where.role} can't {who} of the job at {where.address}:{where.port} within {limit:g} s: "
                         f"{_first_line(error)}") from error
    store = dist.PrefixStore(f"remex/{where.attempt}", store)
    with _reaching(where):
        rank = where.rank if where.rank is not None else store.add(f"drawn/{where.role}", 1) - 1
    count = {"worker": where.num_workers, "server": where.num_servers, "scheduler": 1}[where.role]
    if rank >= count:
        raise MXNetError(f"the job at {where.address}:{where.port} has its {count} {where.role}s already")
    return store, rank


def join(store: Any, where: Place) -> None:
    """Wait until all workers and servers have joined; `meet` is called before.

    Raises
    ------
    MXNetError
        If one is still missing after ``MXNET_KVSTORE_JOIN_TIMEOUT`` seconds, or the host of the rendezvous has died.
    """
    with _reaching(where):
        if store.add("joined", 1) == where.num_workers + where.num_servers:
            store.set("complete", "1")
    join_as_host(store, where)


def join_as_host(store: Any, where: Place) -> None:
    """Do the same as `join` for the host of the rendezvous, which is not one of the expected processes."""
    limit = environment.get_float("MXNET_KVSTORE_JOIN_TIMEOUT")
    try:
        store.wait(["complete"], datetime.timedelta(seconds=limit))
    except RuntimeError as error:
        with _reaching(where):
            joined = store.add("joined", 0)
        raise MXNetError(f"{joined} of the {where.num_workers + where.num_servers} processes of the job have come within {limit:g} s "
                         f"({where.num_workers} workers and {where.num_servers} servers are expected); see MXNET_KVSTORE_JOIN_TIMEOUT") from error


@contextlib.contextmanager
def _reaching(where: Place) -> Iterator[None]:
    """Raise an `MXNetError` in the place of the error of a store that does not answer any more."""
    try:
        yield
    except RuntimeError as error:
        raise MXNetError(f"the {where.role} does not reach the meeting point of the job at {where.address}:{where.port} any more: whoever has that "
                         f"point is gone, or this process is cut off ({_first_line(error)}); start the job again") from error


def own_address(where: Place) -> str:
    """Return the address of this machine for the other processes of the job."""
    interface = environment.get_str("DMLC_INTERFACE")
    if interface:
        import fcntl  # exists on all systems with named network interfaces
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            try:  # SIOCGIFADDR
                answer = fcntl.ioctl(asking.fileno(), 0x8915, struct.pack("256s", interface[:15].encode()))
            except OSError as error:
                raise MXNetError(f"DMLC_INTERFACE names {interface!r}, which has no address: {error}") from error
        return socket.inet_ntoa(answer[20:24])
    family, kind, _, _, target = socket.getaddrinfo(where.address, where.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as asking:
        asking.connect(target)  # UDP: no packet is sent
        return asking.getsockname()[0]


def _use_interface():
    interface = environment.get_str("DMLC_INTERFACE")
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", interface)


def _first_line(error):
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
