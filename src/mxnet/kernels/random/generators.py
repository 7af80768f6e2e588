"""The numbers that MXNet draws on a CPU, to the last bit: `generators.cpp`, and without a compiler NumPy (`fallback`).

MXNet has two kinds of generators there, all Mersenne Twisters. Of 1024 *states* each makes a run of neighbours in a result, so that threads may
share the work and yet the numbers do not depend on how many there are; the *single* one makes one number after the other.
"""
from typing import Optional

import numpy as np
import torch

from ...base import MXNetError
from ..runtime.contract import Kernel

STATES, ROW, _WORDS = 1024, 640, 624  # a row: so many words, the position in them, and space up to whole cache lines
_SINGLE, _SEED, _SEEDED = STATES * ROW, (STATES + 1) * ROW, (STATES + 1) * ROW + 1
_DISTRIBUTIONS = {name: i for i, name in enumerate(("uniform", "normal", "exponential", "gamma", "poisson", "negative_binomial",
                                                    "generalized_negative_binomial"))}
_WORTHWHILE = 1 << 10  # chances; fewer are done before a kernel would have been called
_BANK = f"uint32 ({(STATES + 2) * ROW})"


def _draws(entry, dtype, *, takes=None, integers=(), numbers="", threads=False, **options):
    """A kernel that makes `n` numbers."""
    return Kernel("random/generators", entry, {"bank": _BANK, **(takes or {})}, {"out": f"{dtype} (n)"}, integers=("n", *integers),
                  sizes=("n", *options.pop("sizes", integers)), numbers=numbers, threads=threads, **options)


_start_single = Kernel("random/generators", "start_single", {"bank": _BANK}, numbers="l", threads=False)
# Distribution, and two parameters.
_draw = {t: _draws(f"draw_{t}", t, numbers="iff", threads=True) for t in ("float32", "float64")}
_draw_each = {t: _draws(f"draw_{t}_{{P}}", t, takes={"first": "P (m)", "second": "P (m) optional"}, sizes=("m",), demands=("m > 0", "n % m == 0"),
                        numbers="i", threads=True) for t in ("float32", "float64")}
_integers = {t: _draws(f"integers_{t}", t, numbers="ll", threads=True) for t in ("int32", "int64")}  # the first, how many
_kept = {t: _draws(f"kept_{t}", t, numbers="iffi", threads=True) for t in ("uint8", "float32", "float64")}  # wide, chance, scale, inclusive
_state_numbers = _draws("state_numbers", "float64", integers=("state",), demands=("0 <= state", f"state < {STATES}"))
_next_words = _draws("next_words", "uint32")
_next = {t: _draws(f"next_{t}", t, numbers="i") for t in ("float32", "float64")}  # whether they are normal ones
_order = _draws("order", "int64", numbers="i")  # whether backwards
_reservoir = _draws("reservoir", "int64", integers=("count",), demands=("0 <= count", "count <= n"))
_choose = Kernel("random/generators", "choose", {"chances": "float32 (rows, classes)", "numbers": "float32 (rows, draws)"},
                 {"chosen": "int64 (rows, draws)", "done": "uint8 (rows)"}, demands=("classes >= 1",), sizes=("rows", "classes", "draws"),
                 work="rows * classes")
_logarithms = Kernel("random/generators", "logarithms", {"numbers": "float32 (n)"}, sizes=("n",), threads=False)
_powers = Kernel("random/generators", "powers", {"numbers": "float32 (n)"}, sizes=("n",), numbers="f", threads=False)
_NAMES = {torch.float32: "float32", torch.float64: "float64", torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8"}


def classes(chances: torch.Tensor, numbers: torch.Tensor) -> Optional[tuple[torch.Tensor, bool]]:
    """The classes that uniform `numbers` (rows, draws) stand for by `chances` (rows, classes), and whether all rows are chances, or weights.

    None where no kernel does that: for others than float32, and where there are few.
    """
    arrays = (chances.contiguous(), numbers)
    plan = None if torch.compiler.is_compiling() else _choose.plan(arrays, (), _WORTHWHILE)
    if plan is None:
        return None
    chosen, done = plan(arrays)
    return chosen, bool(done.all())


def available() -> bool:
    """Whether `Bank` can be had: its kernels are compiled."""
    return _start_single.available()


class Bank:
    """The generators of one thread, in the memory that `generators.cpp` describes."""

    def __init__(self) -> None:
        self._memory = np.zeros((STATES + 2) * ROW, np.uint32)
        self._bank = torch.from_numpy(self._memory)
        self.seed(0, 0)

    def seed(self, states: int, single: int) -> None:
        """Start anew: state i with ``states + i``, when it is first needed, and the single generator."""
        self._memory[_SEED], self._memory[_SEEDED] = states % 2 ** 32, 0
        self._start_single(single % 2 ** 32)

    def state(self) -> np.ndarray:
        """What `restore` brings back: a copy of all that was drawn from since `seed`."""
        memory = self._memory
        return np.concatenate([memory[:int(memory[_SEEDED]) * ROW], memory[_SINGLE:]])

    def restore(self, state: np.ndarray) -> None:
        """Go back to where `state` was asked.

        Raises
        ------
        MXNetError
            If it is no such state.
        """
        rest = self._memory.size - _SINGLE
        if not rest <= state.size <= self._memory.size or state.size - rest != ROW * int(state[_SEEDED - self._memory.size]) \
                or (np.append(state[:-rest].reshape(-1, ROW)[:, _WORDS], state[_WORDS - rest]) > _WORDS).any():
            raise MXNetError(f"the state of a random generator expected, received {state.size} numbers that are none")
        self._memory[_SINGLE:] = state[-rest:]
        self._memory[:state.size - rest] = state[:-rest]

    def draws(self, distribution: str) -> bool:
        """Whether there are numbers of a distribution, named as MXNet's operators."""
        return distribution in _DISTRIBUTIONS

    # -- from the states -----------------------------------------------------------------------------------------------------

    def draw(self, distribution: str, count: int, dtype: torch.dtype, first, second=0.0) -> torch.Tensor:
        """`count` floats or doubles; each of the parameters' values, numbers or float or double vectors, serves equally many."""
        kind = _DISTRIBUTIONS[distribution]
        if not isinstance(first, torch.Tensor):
            return _draw[_NAMES[dtype]]((self._bank,), (count,), (kind, first, second))[0]
        if not count:
            return torch.empty(0, dtype=dtype)
        return _draw_each[_NAMES[dtype]]((self._bank, first, second if isinstance(second, torch.Tensor) else None), (count,), (kind,))[0]

    def integers(self, count: int, dtype: torch.dtype, low: int, high: int) -> torch.Tensor:
        """`count` int32 or int64 numbers from `low` on, below `high`."""
        return _integers[_NAMES[dtype]]((self._bank,), (count,), (low, high - low))[0]

    def kept(self, count: int, dtype: torch.dtype, chance: float, scale: float = 1.0, wide: bool = False, inclusive: bool = True) -> torch.Tensor:
        """`count` bytes, floats or doubles: `scale` for each uniform number up to `chance`, else 0.

        `wide` draws doubles, and without `inclusive` numbers equal to the chance give 0.
        """
        return _kept[_NAMES[dtype]]((self._bank,), (count,), (wide, chance, scale, inclusive))[0]

    def state_numbers(self, count: int, state: int) -> torch.Tensor:
        """Uniform doubles of one of the states."""
        return _state_numbers((self._bank,), (count, state))[0]

    # -- from the single generator -------------------------------------------------------------------------------------------

    def _start_single(self, seed):
        _start_single((self._bank,), numbers=(seed,))

    def words(self, count: int) -> np.ndarray:
        """The next uint32 words."""
        return _next_words((self._bank,), (count,))[0].numpy()

    def numbers(self, count: int, dtype: torch.dtype = torch.float32, normal: bool = False) -> torch.Tensor:
        """Uniform floats or doubles in [0, 1), or standard normal ones."""
        return _next[_NAMES[dtype]]((self._bank,), (count,), (normal,))[0]

    def order(self, count: int, backwards: bool) -> torch.Tensor:
        """The numbers below `count` in random order; `backwards` says from which end on they are exchanged."""
        return _order((self._bank,), (count,), (backwards,))[0]

    def reservoir(self, count: int, exchanged: int) -> torch.Tensor:
        """The numbers below `count`, of which the last ones have been exchanged for others at random."""
        return _reservoir((self._bank,), (count, exchanged))[0]

    # -- what is made of them ------------------------------------------------------------------------------------------------

    def log(self, numbers: torch.Tensor) -> torch.Tensor:
        """The logarithms of floats as the C library rounds them, which torch does not always do alike."""
        out = numbers.flatten().clone()
        _logarithms((out,))
        return out.view(numbers.shape)

    def pow(self, numbers: torch.Tensor, exponent: float) -> torch.Tensor:
        """The powers of floats as the C library rounds them."""
        out = numbers.flatten().clone()
        _powers((out,), numbers=(exponent,))
        return out.view(numbers.shape)
