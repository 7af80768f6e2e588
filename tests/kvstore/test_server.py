import json
import os
import subprocess
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest
import torch

import mxnet as mx
from forked import python
from job_checks import Job
from mxnet.kvstore import messages, server


def ask(connection, head, *tensors):
    messages.send(connection, head, tensors)
    return messages.receive(connection)


def test_hostile_requests_are_refused_and_others_served_on():
    with Job("kv = mx.kv.create('dist_async'); print('ready', flush=True); sys.stdin.readline()", workers=1, servers=1) as job:
        assert job.workers[0].stdout.readline() == "ready\n"
        host, port, key = json.loads(job.store.get("remex//0/server/0"))
        with pytest.raises(AuthenticationError):
            Client((host, port), "AF_INET", authkey=b"guessed")
        connection = Client((host, port), "AF_INET", authkey=bytes.fromhex(key))
        assert ask(connection, {"do": "init", "keys": [["w", "default", [2]], ["r", "row_sparse", [4, 2]]]}, torch.ones(2), torch.tensor([1]),
                   torch.ones(1, 2)) == ({}, [])
        evil = b"cposix\nsystem\n(S'touch /tmp/remex-was-here'\ntR."
        for head, tensors, reason in (
                ({"do": "exec"}, [], "server 0 knows no request 'exec'"),
                ({"do": "optimizer"}, [torch.tensor(list(evil), dtype=torch.uint8)], "is refused: it holds posix.system"),
                ({"do": "pull_rows", "key": "r"}, [torch.tensor([4])], "key 'r': row numbers are integers from 0 to 3, received others"),
                ({"do": "pull_rows", "key": "r"}, [torch.tensor([-1])], "row numbers are integers from 0 to 3"),
                ({"do": "push", "keys": [["w", "default"]]}, [torch.ones(3)], r"push: key 'w' was inited with shape \(2,\), received \(3,\)"),
                ({"do": "push", "keys": [["r", "row_sparse"]]}, [torch.tensor([9]), torch.ones(1, 2)], "row numbers are integers from 0 to 3"),
                ({"do": "push", "keys": [["r", "row_sparse"]]}, [torch.tensor([1]), torch.ones(1, 3)], "are int64 numbers and as many rows"),
                ({"do": "push", "keys": 3}, [], "TypeError"),
                ({"do": "pull", "keys": ["x"]}, [], "key 'x' has not been inited"),
                ({"do": "states", "with_optimizer": True}, [], "this store has no optimizer"),
                ({"do": "load_states"}, [torch.ones(1)], "this store has no optimizer")):
            with pytest.raises(AssertionError, match=reason):
                answer, _ = ask(connection, head, *tensors)
                assert "error" not in answer, answer["error"]
        assert not os.path.exists("/tmp/remex-was-here")
        assert [t.tolist() for t in ask(connection, {"do": "pull", "keys": ["w"]})[1]] == [[1.0, 1.0]]
        assert ask(connection, {"do": "pull_rows", "key": "r"}, torch.tensor([0, 1]))[1][0].tolist() == [[0.0, 0.0], [1.0, 1.0]]
        connection.send_bytes(b"nonsense")
        assert "is malformed" in messages.receive(connection)[0]["error"]
        connection.close()
        assert [status for status, _, _ in job.end() + job.end(job.servers)] == [0, 0]


def test_a_server_never_runs_the_program():
    env = {**os.environ, "DMLC_ROLE": "server"}
    done = subprocess.run([*python(), "-c", "import mxnet; print('ran')"], env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode != 0 and "ran" not in done.stdout
    assert "a server of a distributed job needs the environment variables" in done.stderr


def test_workers_do_not_serve(monkeypatch):
    monkeypatch.delenv("DMLC_ROLE", raising=False)
    with pytest.raises(mx.MXNetError, match="DMLC_ROLE says that this process is a worker"):
        server.serve()
