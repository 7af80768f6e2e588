"""Rendezvous of operators that compute on several devices of one process and synchronize within a call.

A device's call blocks until the calls of all other devices have reached the same point, so each needs its own thread: a thread of the program for
each device, or a thread started by `in_turn`, of which only one runs at a time.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from ..base import MXNetError
from . import random_state

_PATIENCE = 60.0  # seconds, the timeout of a rendezvous
_lock = threading.Lock()
_rooms: dict[tuple[str, int], _Room] = {}
_own = threading.local()

Meet = Callable[[str, int, Sequence[torch.Tensor]], list[torch.Tensor]]


def place() -> Optional[Meet]:
    """Return the calling thread's rendezvous: a function of a key, the number of participating calls, and this call's tensors.

    The function returns the averages of all calls' tensors. Returns None in the main thread, which would wait for calls that it still has to make.
    """
    turn = getattr(_own, "turn", None)
    if turn is not None:
        return turn.meet
    return None if threading.current_thread() is threading.main_thread() else _meet


def _averages(brought: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
    # Sorted first: a sum of more than two numbers depends on their order, and calls arrive in any order.
    return [torch.stack(values).sort(0).values.mean(0) for values in zip(*brought)]


def _nobody(key: str, count: int, came: int) -> MXNetError:
    return MXNetError(f"{key!r} joins {count} devices, of which {came} came: run each device's forward and backward in a thread of its own, "
                      "or correct the number of devices")


class _Room:
    """The state of one rendezvous of the program's threads; each rendezvous under a key has an object of its own."""

    def __init__(self) -> None:
        self.changed = threading.Condition(_lock)
        self.brought: list[Sequence[torch.Tensor]] = []
        self.averages: list[torch.Tensor] = []
        self.over = False


def _meet(key: str, count: int, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    with _lock:
        room = _rooms.setdefault((key, count), _Room())
        room.brought.append(values)
        if len(room.brought) == count:
            room.averages = _averages(room.brought)
        if len(room.brought) == count or not room.changed.wait_for(lambda: room.over, _PATIENCE):
            room.over = True
            del _rooms[key, count]
            room.changed.notify_all()
    if not room.averages:
        raise _nobody(key, count, len(room.brought))
    return room.averages


class _Turn:
    """A call of `in_turn` with its thread."""

    key: str
    count: int
    values: Sequence[torch.Tensor]

    def __init__(self, call: Callable[[], object], bank: Any) -> None:
        self._call, self._bank = call, bank
        self._may_go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.answer: list[torch.Tensor] | BaseException = []
        self.error: Optional[BaseException] = None
        self.over = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        self._may_go.acquire()
        _own.turn = self
        random_state.share(self._bank)
        try:
            if isinstance(self.answer, list):  # else it was cancelled before it started
                self._call()
        except BaseException as error:
            self.error = error
        self.over = True
        self._stopped.release()

    def go_on(self) -> None:
        """Resume the thread, and return when it blocks in a rendezvous or has ended."""
        self._may_go.release()
        self._stopped.acquire()

    def dismiss(self, error: BaseException) -> None:
        """Raise `error` in the thread, at the rendezvous in which it is blocked."""
        self.answer = error
        self._may_go.release()

    def meet(self, key: str, count: int, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        self.key, self.count, self.values = key, count, values
        self._stopped.release()
        self._may_go.acquire()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def in_turn(calls: Sequence[Callable[[], object]]) -> None:
    """Run calls that synchronize with one another, each in its own thread; one runs at a time, the first until it blocks, then the second.

    They draw from the random generators of the calling thread.

    Raises
    ------
    MXNetError
        If a call waits for more calls than there are.
    Exception
        The error of the first call that fails.
    """
    bank = random_state.bank()
    turns = [_Turn(call, bank) for call in calls]
    waiting = turns
    try:
        while waiting:
            for turn in waiting:
                turn.go_on()
                if turn.error is not None:
                    raise turn.error
            waiting = [turn for turn in waiting if not turn.over]
            _answer(waiting)
    except BaseException as error:
        for turn in turns:
            if not turn.over:
                turn.dismiss(error)
        raise


def _answer(waiting: list[_Turn]) -> None:
    met = 0
    for key, count in {(turn.key, turn.count): None for turn in waiting}:
        here = [turn for turn in waiting if (turn.key, turn.count) == (key, count)]
        if len(here) == count:
            averages = _averages([turn.values for turn in here])
            for turn in here:
                turn.answer = averages
            met += len(here)
    if met < len(waiting):
        key, count = waiting[0].key, waiting[0].count
        raise _nobody(key, count, len(waiting))
