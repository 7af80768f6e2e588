"""Blocks that add losses of their own, such as a divergence, to the training loss."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..hybrid_block import HybridBlock
from ..utils import UsageError

__all__ = ["StochasticBlock", "StochasticSequential"]


class UncollectedLossError(UsageError, ValueError):
    """A StochasticBlock's `forward` is not decorated with `StochasticBlock.collectLoss`. MXNet 2 raises a ValueError."""


class StochasticBlock(HybridBlock):
    """A block whose `forward` may call `add_loss`; after a call ``losses`` holds the added losses.

    Decorate `forward` with `StochasticBlock.collectLoss`.

    Example
    -------
    >>> from mxnet.gluon import probability as mgp
    >>> import mxnet as mx
    >>> class Noisy(mgp.StochasticBlock):
    ...     @mgp.StochasticBlock.collectLoss
    ...     def forward(self, x):
    ...         self.add_loss(mgp.kl_divergence(mgp.Normal(x, 1), mgp.Normal(0, 1)))
    ...         return x + 1
    >>> net = Noisy()
    >>> net(mx.np.ones(1)), net.losses
    (array([2.]), [array([0.5])])
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._losses: list[Any] = []
        self._losscache: list[Any] = []
        self._collected = False

    def add_loss(self, loss: Any) -> None:
        """Add a loss; to be called in `forward`."""
        self._losscache.append(loss)

    @staticmethod
    def collectLoss(func: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator for `forward` that returns the losses beside its result."""
        @functools.wraps(func)
        def collecting(self: StochasticBlock, *args: Any, **kwargs: Any) -> Any:
            self._losscache = []
            out = func(self, *args, **kwargs)
            losses, self._losscache = self._losscache, []
            self._collected = True
            return out, losses

        return collecting

    def __call__(self, *args: Any) -> Any:
        self._collected = self._collected and self._active
        out = super().__call__(*args)
        if not self._collected:
            raise UncollectedLossError(f"{type(self).__name__}: decorate forward with StochasticBlock.collectLoss")
        out, self._losses = out
        return out

    @property
    def losses(self) -> list[Any]:
        """The losses of the last call."""
        return list(self._losses)


class StochasticSequential(StochasticBlock):
    """Blocks one after the other; ``losses`` holds the list of losses of each block that has some."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._layers: list[Any] = []

    def add(self, *blocks: Any) -> None:
        """Add blocks at the end."""
        for block in blocks:
            self._layers.append(block)
            self.register_child(block)

    @StochasticBlock.collectLoss
    def forward(self, x: Any, *args: Any) -> Any:
        """Return the output of the last block."""
        for block in self._children.values():
            x = block(x, *args)
            args = ()
            if isinstance(x, (tuple, list)):
                x, args = x[0], tuple(x[1:])
            if isinstance(block, StochasticBlock):
                self.add_loss(block.losses)
        return (x, *args) if args else x

    def __len__(self) -> int:
        return len(self._children)

    def __getitem__(self, key: Any) -> Any:
        layers = list(self._children.values())[key]
        if not isinstance(layers, list):
            return layers
        part = type(self)(prefix=self._prefix)
        with part.name_scope():
            part.add(*layers)
        return part
