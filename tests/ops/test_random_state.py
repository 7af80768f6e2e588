import threading

import pytest
import torch

from mxnet.ops import random_state

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def own_generators(monkeypatch):
    monkeypatch.setattr(random_state, "_generators", {})
    yield
    random_state.use_cpu(0)


def draw():
    return torch.rand(3, generator=random_state.generator(CPU)).tolist()


def test_each_device_has_one_generator():
    first = random_state.generator(CPU)
    assert random_state.generator(CPU) is first and random_state.generator(torch.device("cpu", 0)) is first
    assert random_state.use_cpu(1) == 0
    assert random_state.generator(CPU) is not first
    assert random_state.use_cpu(0) == 1 and random_state.generator(CPU) is first
    assert random_state.generator(torch.device("meta")) is None


def test_seeding_one_device_leaves_the_others():
    random_state.seed(7, "cpu", 0)
    a = draw()
    random_state.seed(7, "cpu", 1)
    random_state.use_cpu(1)
    b = draw()
    random_state.use_cpu(0)
    assert a == b != draw()  # one number gives each device the same numbers
    random_state.seed(7, "cpu", 0)
    assert draw() == a


def test_seeding_all_devices_gives_each_numbers_of_its_own():
    random_state.use_cpu(1)
    draw()
    random_state.use_cpu(0)
    random_state.seed(7)
    first = draw()
    random_state.use_cpu(1)
    assert draw() != first
    random_state.use_cpu(0)
    random_state.seed(7)
    assert draw() == first
    random_state.seed(2 ** 64 - 1)  # the next device's seed wraps around


def test_which_cpu_computes_is_known_to_each_thread():
    random_state.use_cpu(3)
    found = []
    thread = threading.Thread(target=lambda: found.append(random_state.use_cpu(5)))
    thread.start()
    thread.join()
    assert found == [0] and random_state.use_cpu(0) == 3


def test_threads_get_the_same_generator():
    found = []
    threads = [threading.Thread(target=lambda: found.append(random_state.generator(CPU))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, found))) == 1
