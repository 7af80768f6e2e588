"""Checks of optimizers: comparison of the updates of two optimizers."""
from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import random as mx_random
from .arrays import rand_ndarray
from .compare import assert_almost_equal
from .system import default_context

if TYPE_CHECKING:
    from ..optimizer import Optimizer


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """Compare (nested) tuples of arrays; entries beside None are skipped.

    Example
    -------
    >>> mx.test_utils.compare_ndarray_tuple((mx.nd.ones(2), None), (mx.nd.ones(2), None))
    """
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        for a, b in zip(t1, t2):
            compare_ndarray_tuple(a, b, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def compare_optimizer(opt1: Optimizer, opt2: Optimizer, shape: Any, dtype: Any, w_stype: str = "default", g_stype: str = "default",
                      rtol: float | None = 1e-4, atol: float | None = 1e-5, compare_states: bool = True, ntensors: int | None = None) -> None:
    """Compare the updates of two optimizers for the same weight, gradient and state.

    Parameters
    ----------
    opt1, opt2 : Optimizer
        The optimizers; the first one always gets dense arrays.
    shape : tuple of int, or list of tuple
        The shape of the weight; for a list both update weights of these shapes at once.
    dtype : str or type
    w_stype, g_stype : str
        The storage types of the second one's weight and gradient.
    rtol, atol : float
    compare_states : bool
    ntensors : int, optional
        The number of shapes to use, whose dense weights only `opt2` updates at once; by default all, and both do.

    Example
    -------
    >>> opt = mx.optimizer.SGD
    >>> mx.test_utils.compare_optimizer(opt(learning_rate=0.1), opt(learning_rate=0.1), [(3, 4)], 'float32')
    """
    if isinstance(shape, list):
        if ntensors is None:
            _compare_lists(opt1, opt2, shape, dtype, w_stype, g_stype, rtol, atol, compare_states)
        else:
            _compare_aggregated(opt1, opt2, shape, dtype, rtol, atol, compare_states, ntensors)
        return
    (w1, w2), (g1, g2) = (_pair(shape, dtype, stype, density) for stype, density in ((w_stype, 1), (g_stype, None)))
    states = [opt.create_state_multi_precision(0, w) for opt, w in ((opt1, w1), (opt2, w2))]
    if compare_states:
        compare_ndarray_tuple(*states)
    for opt, w, g, state in zip((opt1, opt2), (w1, w2), (g1, g2), states):
        opt.update_multi_precision(0, w, g, state)
    if compare_states:
        compare_ndarray_tuple(*states, rtol=rtol, atol=atol)
    assert_almost_equal(w1, w2, rtol=rtol, atol=atol)


def compare_optimizer_noise_seeded(opt1: Optimizer, opt2: Optimizer, shapes: Sequence[Any], dtype: Any, noise_seed: int, w_stype: str = "default",
                                   g_stype: str = "default", rtol: float | None = 1e-4, atol: float | None = 1e-5,
                                   compare_states: bool = True) -> None:
    """Compare optimizers with random noise as `compare_optimizer` does, each after the seed `noise_seed`.

    Example
    -------
    >>> opt = mx.optimizer.SGLD
    >>> mx.test_utils.compare_optimizer_noise_seeded(opt(learning_rate=0.1), opt(learning_rate=0.1), [(3, 4)], 'float32', noise_seed=7)
    """
    _compare_lists(opt1, opt2, shapes, dtype, w_stype, g_stype, rtol, atol, compare_states, noise_seed)


def _compare_lists(opt1, opt2, shapes, dtype, w_stype, g_stype, rtol, atol, compare_states, seed=None):
    """Compare the updates of weights of several shapes in one call; the second optimizer gets them in the given storage types."""
    weights, grads = (list(zip(*(_pair(shape, dtype, stype, density) for shape in shapes))) for stype, density in ((w_stype, 1), (g_stype, None)))
    states = [[opt.create_state_multi_precision(i, w) for i, w in enumerate(ws)] for opt, ws in zip((opt1, opt2), weights)]
    if compare_states:
        compare_ndarray_tuple(*map(tuple, states))
    for opt, ws, gs, own in zip((opt1, opt2), weights, grads, states):
        if seed is not None:
            mx_random.seed(seed)
        opt.update_multi_precision(list(range(len(shapes))), list(ws), list(gs), own)
    if compare_states:
        compare_ndarray_tuple(*map(tuple, states), rtol=rtol, atol=atol)
    compare_ndarray_tuple(*weights, rtol=rtol, atol=atol)


def _pair(shape, dtype, stype, density):
    """Return a random array twice: dense, and in the storage type `stype`."""
    if stype == "default":
        array = mx_random.uniform(shape=shape, ctx=default_context(), dtype=dtype)
        return array.copyto(default_context()), array
    if stype not in ("row_sparse", "csr"):
        raise ValueError(f"compare_optimizer: storage type {stype!r} is not supported; expected 'default', 'row_sparse' or 'csr'")
    array = rand_ndarray(shape, stype, density=density, dtype=dtype)
    return array.copyto(default_context()).tostype("default"), array


def _compare_aggregated(opt1, opt2, shapes, dtype, rtol, atol, compare_states, ntensors):
    weights, grads = ([mx_random.uniform(shape=s, ctx=default_context(), dtype=dtype) for s in shapes] for _ in range(2))
    weights2, grads2 = copy.deepcopy(weights), copy.deepcopy(grads)
    states2 = [opt2.create_state_multi_precision(0, w) for w in weights2[:ntensors]]
    opt2.update_multi_precision(list(range(ntensors)), weights2, grads2, states2)
    for i, (w, g, w2, state2) in enumerate(zip(weights, grads, weights2, states2)):
        state = opt1.create_state_multi_precision(i, w)
        opt1.update_multi_precision(i, w, g, state)
        if compare_states:
            compare_ndarray_tuple(state, state2, rtol, atol)
        compare_ndarray_tuple(w, w2, rtol, atol)
