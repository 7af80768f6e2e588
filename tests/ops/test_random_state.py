import threading

import pytest
import torch

from mxnet.ops import random_state

CPU = torch.device("cpu")


def draw():
    return random_state.bank().numbers(3).tolist()


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_begins_with_seed_0_and_is_seeded_alone():
    random_state.seed(0)
    first = draw()
    assert first == pytest.approx([0.54881352, 0.59284461, 0.71518934], abs=1e-7)
    random_state.seed(5)
    expected = draw()
    random_state.seed(5)
    assert in_a_thread(draw) == first
    assert in_a_thread(lambda: (random_state.seed(5), draw())[1]) == expected
    assert draw() == expected


def test_seeds_are_cut_to_32_bits():
    for seed, same in ((-3, 2 ** 32 - 3), (2 ** 70 + 4, 4)):
        random_state.seed(seed)
        first = draw()
        random_state.seed(same)
        assert draw() == first


def test_one_device_is_seeded_otherwise_than_all():
    random_state.seed(3, "cpu", 1)
    single, state = draw(), random_state.bank().state_numbers(1, 0).tolist()
    random_state.seed(3 * 127 ** 2, "cpu")
    assert draw() != single
    random_state.seed(3)
    assert draw() != single and random_state.bank().state_numbers(1, 0).tolist() == state


def test_states_come_back():
    random_state.seed(7)
    random_state.bank().state_numbers(700, 2)
    state = random_state.get_state(CPU)
    first = draw(), random_state.bank().state_numbers(700, 2).tolist(), random_state.bank().state_numbers(2, 900).tolist()
    random_state.seed(8)
    random_state.set_state(CPU, state)
    assert (draw(), random_state.bank().state_numbers(700, 2).tolist(), random_state.bank().state_numbers(2, 900).tolist()) == first


def test_torch_draws_what_the_seed_asks_for():
    def drawn():
        return torch.rand(3, generator=random_state.generator(CPU)).tolist()

    random_state.seed(1)
    first = drawn(), drawn()
    assert first[0] != first[1]
    random_state.seed(1)
    assert (drawn(), drawn()) == first
    assert random_state.generator(torch.device("meta")) is None


def test_only_a_cpu_has_mxnets_numbers():
    assert random_state.source(CPU) is random_state.bank()
    assert random_state.source(torch.device("cuda", 0)) is None


def test_without_a_compiler_numpy_draws(monkeypatch):
    monkeypatch.setattr(random_state.generators, "available", lambda: False)
    assert isinstance(in_a_thread(random_state.bank), random_state.fallback.PlainBank)
