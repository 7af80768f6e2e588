import concurrent.futures
import os
import signal

import pytest
import torch

from job_checks import Job, outputs
from mxnet import MXNetError
from mxnet.training_checkpoint import saves, storage
from mxnet.training_checkpoint.entries import Entry

_AT = {"epoch": 1, "batch": 2}


def _entries(value):
    return {"x": Entry((4,), torch.float32, [(0, torch.full((4,), float(value)))])}


def _value(folder):
    found = folder.newest()
    if found is None:
        return None
    target = torch.zeros(4)
    found[0].load({"x": Entry((4,), torch.float32, [(0, target)])})
    assert found[1]["epoch"] == 1 and found[1]["batch"] == 2
    return target.unique().item()


def test_the_two_newest_stay_and_files_of_a_killed_job_are_removed(tmp_path):
    folder = saves.Folder(tmp_path / "new")
    assert folder.newest() is None
    os.makedirs(tmp_path / "new" / ".training-000000007-0123456789abcdef")
    for value in range(4):
        folder.save(_entries(value), {}, _AT).wait()
    assert sorted(os.listdir(tmp_path / "new")) == ["training-000000003", "training-000000004"]
    assert _value(saves.Folder(tmp_path / "new")) == 3


def test_values_are_those_of_the_call(tmp_path, monkeypatch):
    began, go_on = concurrent.futures.Future(), concurrent.futures.Future()
    save = storage.save

    def slow(*args):
        began.set_result(None)
        go_on.result()
        return save(*args)
    monkeypatch.setattr(storage, "save", slow)
    folder, entries = saves.Folder(tmp_path), _entries(5)
    pending = folder.save(entries, {}, _AT)
    began.result()
    entries["x"].pieces[0][1].fill_(9)
    assert not pending.done() and saves.Folder(tmp_path).newest() is None
    with pytest.raises(TimeoutError, match="the checkpoint is not complete after 0.01 s"):
        pending.wait(0.01)
    go_on.set_result(None)
    pending.wait()
    assert pending.done() and _value(folder) == 5


def test_an_error_of_the_thread_is_raised_once(tmp_path, monkeypatch):
    folder = saves.Folder(tmp_path)
    folder.save(_entries(1), {}, _AT).wait()

    def full(*args):
        raise OSError(28, "No space left on device")
    with monkeypatch.context() as patched:
        patched.setattr(storage, "save", full)
        folder.save(_entries(2), {}, _AT)
        with pytest.raises(OSError, match="No space left"):
            folder.save(_entries(3), {}, _AT)
        assert _value(folder) == 1
    folder.save(_entries(4), {}, _AT).wait()
    assert _value(folder) == 4


@pytest.mark.parametrize("text", [b"{", b"[]", b"{}", b'{"format": "remex training 1", "ranks": 2, "sizes": [1], "epoch": 0, "batch": 0}',
                                  b'{"format": "remex training 1", "ranks": 1, "sizes": [-1], "epoch": 0, "batch": 0}',
                                  b'{"format": "other", "ranks": 1, "sizes": [1], "epoch": 0, "batch": 0}',
                                  b'{"format": "remex training 1", "ranks": 1, "sizes": [1], "epoch": "x", "batch": 0}', b"[" * 100000])
def test_damaged_indices(tmp_path, text):
    folder = saves.Folder(tmp_path)
    folder.save(_entries(1), {}, _AT).wait()
    (tmp_path / "training-000000001" / "index.json").write_bytes(text)
    with pytest.raises(MXNetError, match="is no index of a checkpoint"):
        folder.newest()


_PROGRAM = """
    import signal, torch
    from mxnet.training_checkpoint import saves, storage
    from mxnet.training_checkpoint.entries import Entry
    folder = saves.Folder(os.environ['FOLDER'], kv._group)
    def save(value):
        return folder.save({'x': Entry((6,), torch.float32, [(3 * kv.rank, torch.full((3,), float(value)))])}, {}, {'epoch': 1, 'batch': 2})
    save(1).wait()
"""


def test_a_rank_that_dies_while_it_writes_leaves_the_checkpoint_before(tmp_path):
    program = _PROGRAM + """
    write = storage.save
    if kv.rank:
        storage.save = lambda *args: (write(*args), os.kill(os.getpid(), signal.SIGKILL))
    try:
        save(2).wait()
    except mx.MXNetError as error:
        print(error)
    print(sorted(os.listdir(folder.path)))
    os._exit(0)  # the other one is gone
    """
    environment = {"FOLDER": str(tmp_path), "PS_HEARTBEAT_INTERVAL": "0.2", "PS_HEARTBEAT_TIMEOUT": "5"}
    with Job(program, workers=2, kind="dist_sync", env=environment) as job:
        (status, out, err), (killed, _, _) = job.end()
    assert killed == -signal.SIGKILL and status == 0, err
    said, names = out.splitlines()
    assert "rank 0 waits in vain for the others' parts of a checkpoint (worker 1: silent for" in said and names == "['training-000000001']"


def test_an_error_of_one_rank_is_one_of_all(tmp_path):
    program = _PROGRAM + """
    def full(*args):
        raise OSError(28, 'No space left on device')
    write = storage.save
    if kv.rank:
        storage.save = full
    for _ in range(2):
        try:
            save(2).wait()
        except (mx.MXNetError, OSError) as error:
            print(error)
        storage.save = write
    print(sorted(os.listdir(folder.path)))
    kv._barrier()
    save(3)  # the end of the program waits for it
    """
    failed = "the checkpoint {} was not completed: rank 1: [Errno 28] No space left on device"
    names = "['training-000000001', 'training-000000002']"
    assert outputs(program, workers=2, kind="dist_sync", env={"FOLDER": str(tmp_path)}) == [
        [failed.format(tmp_path / "training-000000002"), names], ["[Errno 28] No space left on device", names]]
    assert sorted(os.listdir(tmp_path)) == ["training-000000002", "training-000000003"]
