"""MXNet's random numbers without a compiler: the same numbers as `generators`, computed by NumPy.

Torch draws gamma, Poisson and negative binomial numbers instead, which would take seconds here.
"""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np
import torch

from .generators import ROW, STATES, Bank

_WORDS = 624
_SEED, _SEEDED = (STATES + 1) * ROW, (STATES + 1) * ROW + 1
_PAIRS = 4096


class PlainBank(Bank):
    """A `Bank` that computes its numbers with NumPy."""

    def draws(self, distribution: str) -> bool:
        return distribution in ("uniform", "normal", "exponential")

    # -- words ---------------------------------------------------------------------------------------------------------------

    def _start_single(self, seed):
        self._start(STATES, np.array([seed], np.uint32))

    def _start(self, first, seeds):
        """Seed consecutive rows from `first` on, one with each of `seeds`."""
        rows = self._memory[first * ROW:(first + len(seeds)) * ROW].reshape(-1, ROW)
        word = seeds.copy()
        rows[:, 0] = word
        for i in range(1, _WORDS):
            word ^= word >> np.uint32(30)
            word *= np.uint32(1812433253)
            word += np.uint32(i)
            rows[:, i] = word
        rows[:, _WORDS] = _WORDS

    def _take(self, row, count):
        """Return the next `count` words of a row."""
        words, at = self._memory[row * ROW:row * ROW + _WORDS], int(self._memory[row * ROW + _WORDS])
        parts = []
        while count:
            if at == _WORDS:
                _twist(words)
                at = 0
            some = min(count, _WORDS - at)
            parts.append(words[at:at + some].copy())
            at, count = at + some, count - some
        self._memory[row * ROW + _WORDS] = at
        y = np.concatenate(parts) if parts else np.empty(0, np.uint32)
        y ^= y >> np.uint32(11)
        y ^= y << np.uint32(7) & np.uint32(0x9d2c5680)
        y ^= y << np.uint32(15) & np.uint32(0xefc60000)
        y ^= y >> np.uint32(18)
        return y

    def _units(self, row, count, wide):
        """Return uniform numbers in [0, 1): a float from one word, a double from two."""
        if not wide:
            return np.minimum(self._take(row, count).astype(np.float32) * np.float32(2 ** -32), np.float32(1 - 2 ** -24))
        words = self._take(row, 2 * count).astype(np.float64)
        return np.minimum((words[::2] + words[1::2] * 2.0 ** 32) * 2.0 ** -64, 1 - 2 ** -53)

    def _normals(self, row, count, wide, both):
        kind, log = (np.float64, _log) if wide else (np.float32, _c_function("log", 1))
        parts, missing = [np.empty(0, kind)], count
        while missing:
            # No more pairs than are missing: the generator must not advance further than its numbers need.
            pairs = min((missing + 1) // 2 if both else missing, _PAIRS)
            found = (kind(2) * self._units(row, 2 * pairs, wide) - kind(1)).reshape(pairs, 2)
            square = found[:, 0] * found[:, 0] + found[:, 1] * found[:, 1]
            inside = (square <= 1) & (square != 0)
            found, square = found[inside], square[inside]
            factor = np.sqrt(kind(-2) * log(square).astype(kind) / square)
            parts.append((found[:, ::-1] * factor[:, None]).ravel()[:missing] if both else found[:, 1] * factor)
            missing -= len(parts[-1])
        return np.concatenate(parts)

    # -- from the states -----------------------------------------------------------------------------------------------------

    def _runs(self, count, make):
        """Concatenate ``make(row, length)`` over the runs of a result, each drawn from its own state."""
        runs = min(-(-count // 64), STATES)
        if not runs:
            return make(0, 0)
        step = -(-count // runs)
        started = int(self._memory[_SEEDED])
        if started < runs:
            self._start(started, (self._memory[_SEED] + np.arange(started, runs, dtype=np.uint32)).astype(np.uint32))
            self._memory[_SEEDED] = runs
        return np.concatenate([make(row, min(step, count - row * step)) for row in range(runs) if row * step < count])

    def draw(self, distribution: str, count: int, dtype: torch.dtype, first: Any, second: Any = 0.0) -> torch.Tensor:
        wide = dtype is torch.float64
        a, b = ([np.float32(p)] if not isinstance(p, torch.Tensor) else p.numpy() for p in (first, second))
        if len(a) > 1:
            which = np.arange(count) // max(1, count // len(a))
            a, b = a[which], b[which] if len(b) > 1 else b[0]
        else:
            a, b = a[0], b[0]
        if distribution == "normal":
            found = self._runs(count, lambda row, n: self._normals(row, n, wide, False)) * b + a
        else:
            found = self._runs(count, lambda row, n: self._units(row, n, wide))
            found = a + (b - a) * found if distribution == "uniform" else -_log(1.0 - found.astype(np.float64)) / np.float64(a)
        return torch.from_numpy(np.asarray(found)).to(dtype)

    def integers(self, count: int, dtype: torch.dtype, low: int, high: int) -> torch.Tensor:
        words = self._runs(count, lambda row, n: self._take(row, 2 * n)).astype(np.uint64)
        return torch.from_numpy(low + np.fmod(((words[::2] << np.uint64(31)) + words[1::2]).view(np.int64), high - low)).to(dtype)

    def bernoulli(self, count: int, dtype: torch.dtype, chance: Any, scale: float = 1.0, wide: bool = False, inclusive: bool = True) -> torch.Tensor:
        found, chance = self._runs(count, lambda row, n: self._units(row, n, wide)).astype(np.float32), np.float32(chance)
        return torch.from_numpy((found <= chance if inclusive else found < chance) * np.float32(scale)).to(dtype)

    def state_numbers(self, count: int, state: int) -> torch.Tensor:
        self._runs((state + 1) * 64, lambda row, n: np.empty(0))
        return torch.from_numpy(self._units(state, count, True))

    # -- from the single generator -------------------------------------------------------------------------------------------

    def words(self, count: int) -> Any:
        return self._take(STATES, count)

    def numbers(self, count: int, dtype: torch.dtype = torch.float32, normal: Any = False) -> torch.Tensor:
        wide = dtype is torch.float64
        return torch.from_numpy(self._normals(STATES, count, wide, True) if normal else self._units(STATES, count, wide))

    def _below(self, size):
        scale = 0xffffffff // size
        while True:
            word = int(self._take(STATES, 1)[0]) // scale
            if word < size:
                return word

    def order(self, count: int, backwards: Any) -> torch.Tensor:
        out = list(range(count))
        for i in range(count - 1, 0, -1) if backwards else range(1, count):
            j = self._below(i + 1)
            out[i], out[j] = out[j], out[i]
        return torch.tensor(out, dtype=torch.int64)

    def reservoir(self, count: int, exchanged: Any) -> torch.Tensor:
        out = list(range(count))
        for i, word in enumerate(self.words(exchanged).tolist(), count - exchanged):
            j = word % (i + 1)
            if j < count - exchanged:
                out[i], out[j] = out[j], out[i]
        return torch.tensor(out, dtype=torch.int64)

    # -- functions of the numbers --------------------------------------------------------------------------------------------

    def log(self, numbers: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(_c_function("log", 1)(numbers.numpy().ravel())).view(numbers.shape)

    def pow(self, numbers: torch.Tensor, exponent: float) -> torch.Tensor:
        return torch.from_numpy(_c_function("pow", 2)(numbers.numpy().ravel(), np.full(numbers.numel(), exponent, np.float32))).view(numbers.shape)


def _twist(w):
    w[:227] = w[397:] ^ _mixed(w[:227], w[1:228])
    w[227:454] = w[:227] ^ _mixed(w[227:454], w[228:455])
    w[454:623] = w[227:396] ^ _mixed(w[454:623], w[455:])
    w[623:] = w[396:397] ^ _mixed(w[623:], w[:1])


def _mixed(high, low):
    y = high & np.uint32(0x80000000) | low & np.uint32(0x7fffffff)
    return y >> np.uint32(1) ^ (low & np.uint32(1)) * np.uint32(0x9908b0df)


def _log(values):
    return np.fromiter(map(math.log, values.tolist()), np.float64, len(values))


@functools.cache
def _c_function(name, count):
    """Return the C library's float function applied to arrays: NumPy's own rounds differently."""
    try:
        function = getattr(ctypes.CDLL(None), f"{name}f")
    except (OSError, AttributeError, TypeError):  # a C library that ctypes cannot open
        return getattr(np, {"pow": "power"}.get(name, name))
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * count
    return lambda *values: np.fromiter(map(function, *(v.tolist() for v in values)), np.float32, len(values[0]))
