"""Where operators that compute on several devices of one process wait for one another.

A device's call stops in the middle until the calls of all others have come as far, so each needs a thread of its own: the program's
(a thread for each device), or one of those that `in_turn` makes, of which only one runs at a time.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from ..base import MXNetError
from . import random_state

_PATIENCE = 60.0  # seconds until a thread gives up waiting for the others
_lock = threading.Lock()
_rooms: dict[tuple[str, int], _Room] = {}
_own = threading.local()

Meet = Callable[[str, int, Sequence[torch.Tensor]], list[torch.Tensor]]


def place() -> Optional[Meet]:
    """How the calling thread meets others: a function of a key, the number of calls that meet there, and what this one brings.

    It returns the averages of what all have brought. None for the main thread, which would wait for calls that it has yet to make.
    """
    turn = getattr(_own, "turn", None)
    if turn is not None:
        return turn.meet
    return None if threading.current_thread() is threading.main_thread() else _meet


def _averages(brought: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
    # Sorted first: the sum of more than two depends on their order, which is that of their arrival.
    return [torch.stack(values).sort(0).values.mean(0) for values in zip(*brought)]


def _nobody(key: str, count: int, came: int) -> MXNetError:
    return MXNetError(f"{key!r} joins {count} devices, of which {came} came: run each device's forward and backward in a thread of its own, "
                      "or correct the number of devices")


class _Room:
    """What was brought to one meeting of threads that run freely; the next meeting under its key has another room."""

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
    """One of the calls of `in_turn`, and its thread."""

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
            if isinstance(self.answer, list):  # else it was dismissed before it began
                self._call()
        except BaseException as error:
            self.error = error
        self.over = True
        self._stopped.release()

    def go_on(self) -> None:
        """Let it run until it waits or is over."""
        self._may_go.release()
        self._stopped.acquire()

    def dismiss(self, error: BaseException) -> None:
        """Let it end with an error instead of an answer, as soon as it waits."""
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
    """Make calls that meet one another, each in a thread of its own; at any time one of them runs, the first until it waits, then the second.

    They draw from the random generators of the calling thread.

    Raises
    ------
    MXNetError
        If a call waits for more calls than there are.
    Exception
        What the first of the calls to fail has raised.
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
