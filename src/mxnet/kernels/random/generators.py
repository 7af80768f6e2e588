"""Bit-exact reproduction of MXNet's random numbers on a CPU: `generators.cpp`, and NumPy without a compiler (`fallback`).

MXNet has two kinds of generators there, all Mersenne Twisters. Each of 1024 *states* draws a run of consecutive elements of a result, so that threads
share the work and the numbers do not depend on the number of threads; the *single* generator draws one number after the other.
"""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
import torch

from ...base import MXNetError
from ..runtime.contract import Kernel

STATES, ROW, _WORDS = 1024, 640, 624  # a row: 624 words, the position in them, and padding to whole cache lines
_SINGLE, _SEED, _SEEDED = STATES * ROW, (STATES + 1) * ROW, (STATES + 1) * ROW + 1
_DISTRIBUTIONS = {name: i for i, name in enumerate(("uniform", "normal", "exponential", "gamma", "poisson", "negative_binomial",
                                                    "generalized_negative_binomial"))}
_WORTHWHILE = 1 << 10  # chances below which torch is done before a kernel would have been called
_BANK = f"uint32 ({(STATES + 2) * ROW})"


def _draws(entry, dtype, *, takes=None, integers=(), numbers="", threads=False, **options):
    """Return a kernel that draws `n` numbers."""
    return Kernel("random/generators", entry, {"bank": _BANK, **(takes or {})}, {"out": f"{dtype} (n)"}, integers=("n", *integers),
                  sizes=("n", *options.pop("sizes", integers)), numbers=numbers, threads=threads, **options)


_start_single = Kernel("random/generators", "start_single", {"bank": _BANK}, numbers="l", threads=False)
# Distribution, and two parameters.
_draw = {t: _draws(f"draw_{t}", t, numbers="iff", threads=True) for t in ("float32", "float64")}
_draw_each = {t: _draws(f"draw_{t}_{{P}}", t, takes={"first": "P (m)", "second": "P (m) optional"}, sizes=("m",),
                        preconditions=("m > 0", "n % m == 0"), numbers="i", threads=True) for t in ("float32", "float64")}
_integers = {t: _draws(f"integers_{t}", t, numbers="ll", threads=True) for t in ("int32", "int64")}  # the lowest, and the number of values
_bernoulli = {t: _draws(f"kept_{t}", t, numbers="iffi", threads=True) for t in ("uint8", "float32", "float64")}  # wide, chance, scale, inclusive
_state_numbers = _draws("state_numbers", "float64", integers=("state",), preconditions=("0 <= state", f"state < {STATES}"))
_next_words = _draws("next_words", "uint32")
_next = {t: _draws(f"next_{t}", t, numbers="i") for t in ("float32", "float64")}  # 1 for normal numbers
_order = _draws("order", "int64", numbers="i")  # 1 for backwards
_reservoir = _draws("reservoir", "int64", integers=("count",), preconditions=("0 <= count", "count <= n"))
_choose = Kernel("random/generators", "choose", {"chances": "float32 (rows, classes)", "numbers": "float32 (rows, draws)"},
                 {"chosen": "int64 (rows, draws)", "done": "uint8 (rows)"}, preconditions=("classes >= 1",), sizes=("rows", "classes", "draws"),
                 work="rows * classes")
_logarithms = Kernel("random/generators", "logarithms", {"numbers": "float32 (n)"}, sizes=("n",), threads=False)
_powers = Kernel("random/generators", "powers", {"numbers": "float32 (n)"}, sizes=("n",), numbers="f", threads=False)
_NAMES = {torch.float32: "float32", torch.float64: "float64", torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8"}


def classes(chances: torch.Tensor, numbers: torch.Tensor) -> Optional[tuple[torch.Tensor, bool]]:
    """Map uniform `numbers` (rows, draws) to classes by `chances` (rows, classes); the second result is True if all rows are valid weights.

    Returns None where no kernel fits: for other types than float32, and for few chances.
    """
    arrays = (chances.contiguous(), numbers)
    plan = None if torch.compiler.is_compiling() else _choose.plan(arrays, (), _WORTHWHILE)
    if plan is None:
        return None
    chosen, done = plan(arrays)
    return chosen, bool(done.all())


def available() -> bool:
    """Return True if the kernels of `Bank` are available."""
    return _start_single.available()


class Bank:
    """The generators of one thread, in the memory that `generators.cpp` describes."""

    def __init__(self) -> None:
        self._memory = np.zeros((STATES + 2) * ROW, np.uint32)
        self._bank = torch.from_numpy(self._memory)
        self.seed(0, 0)

    def seed(self, states: int, single: int) -> None:
        """Seed state i with ``states + i``, when it is first used, and the single generator with `single`."""
        self._memory[_SEED], self._memory[_SEEDED] = states % 2 ** 32, 0
        self._start_single(single % 2 ** 32)

    def state(self) -> np.ndarray:
        """Return a copy of all generators used since `seed`, for `restore`."""
        memory = self._memory
        return np.concatenate([memory[:int(memory[_SEEDED]) * ROW], memory[_SINGLE:]])

    def restore(self, state: np.ndarray) -> None:
        """Restore the generators to the point at which `state` was called.

        Raises
        ------
        MXNetError
            If `state` is not a result of `Bank.state`.
        """
        rest = self._memory.size - _SINGLE
        if not rest <= state.size <= self._memory.size or state.size - rest != ROW * int(state[_SEEDED - self._memory.size]) \
                or (np.append(state[:-rest].reshape(-1, ROW)[:, _WORDS], state[_WORDS - rest]) > _WORDS).any():
            raise MXNetError(f"the state of a random generator expected, received {state.size} numbers that are none")
        self._memory[_SINGLE:] = state[-rest:]
        self._memory[:state.size - rest] = state[:-rest]

    def draws(self, distribution: str) -> bool:
        """Return True if the bank draws from a distribution, named as MXNet's operators."""
        return distribution in _DISTRIBUTIONS

    # -- from the states -----------------------------------------------------------------------------------------------------

    def draw(self, distribution: str, count: int, dtype: torch.dtype, first: Any, second: Any = 0.0) -> torch.Tensor:
        """Draw `count` floats or doubles. Parameters are numbers, or float or double vectors whose elements apply to equally long runs."""
        kind = _DISTRIBUTIONS[distribution]
        if not isinstance(first, torch.Tensor):
            return _draw[_NAMES[dtype]]((self._bank,), (count,), (kind, first, second))[0]
        if not count:
            return torch.empty(0, dtype=dtype)
        return _draw_each[_NAMES[dtype]]((self._bank, first, second if isinstance(second, torch.Tensor) else None), (count,), (kind,))[0]

    def integers(self, count: int, dtype: torch.dtype, low: int, high: int) -> torch.Tensor:
        """Draw `count` int32 or int64 numbers in [low, high)."""
        return _integers[_NAMES[dtype]]((self._bank,), (count,), (low, high - low))[0]

    def bernoulli(self, count: int, dtype: torch.dtype, chance: float, scale: float = 1.0, wide: bool = False,
                  inclusive: bool = True) -> torch.Tensor:
        """Return `count` bytes, floats or doubles: `scale` for each uniform number up to `chance`, else 0.

        `wide` draws doubles; without `inclusive`, numbers equal to the chance give 0.
        """
        return _bernoulli[_NAMES[dtype]]((self._bank,), (count,), (wide, chance, scale, inclusive))[0]

    def state_numbers(self, count: int, state: int) -> torch.Tensor:
        """Draw uniform doubles from one of the states."""
        return _state_numbers((self._bank,), (count, state))[0]

    # -- from the single generator -------------------------------------------------------------------------------------------

    def _start_single(self, seed):
        _start_single((self._bank,), numbers=(seed,))

    def words(self, count: int) -> np.ndarray:
        """Return the next uint32 words of the single generator."""
        return _next_words((self._bank,), (count,))[0].numpy()

    def numbers(self, count: int, dtype: torch.dtype = torch.float32, normal: bool = False) -> torch.Tensor:
        """Draw floats or doubles, uniform in [0, 1) or standard normal."""
        return _next[_NAMES[dtype]]((self._bank,), (count,), (normal,))[0]

    def order(self, count: int, backwards: bool) -> torch.Tensor:
        """Return the numbers below `count` in random order; with `backwards`, the shuffle swaps from the end."""
        return _order((self._bank,), (count,), (backwards,))[0]

    def reservoir(self, count: int, exchanged: int) -> torch.Tensor:
        """Return a reservoir sample: the numbers below `count` after the last `exchanged` were swapped at random with earlier ones."""
        return _reservoir((self._bank,), (count, exchanged))[0]

    # -- functions of the numbers ------------------------------------------------------------------------------------------------

    def log(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the logarithms of floats with the C library's rounding, from which torch's may differ."""
        out = numbers.flatten().clone()
        _logarithms((out,))
        return out.view(numbers.shape)

    def pow(self, numbers: torch.Tensor, exponent: float) -> torch.Tensor:
        """Return the powers of floats with the C library's rounding."""
        out = numbers.flatten().clone()
        _powers((out,), numbers=(exponent,))
        return out.view(numbers.shape)
