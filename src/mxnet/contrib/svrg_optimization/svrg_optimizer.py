"""The optimizer of `SVRGModule`: it forwards updates, and stores full gradients in the kvstore beside the weights."""
import inspect

from ... import optimizer as opt

FULL = "_full"


@opt.register
class _AssignmentOptimizer(opt.Optimizer):
    """Replaces the weight by the array passed as its gradient."""

    def update(self, index, weight, grad, state):
        """Replace the weight."""
        weight[:] = grad


@opt.register
class _SVRGOptimizer(opt.Optimizer):
    """Updates weights by another optimizer, and assigns those whose names end with ``_full``.

    Parameters
    ----------
    default_optimizer : str or Optimizer
    **kwargs
        For it.
    """

    def __init__(self, default_optimizer, **kwargs):
        known = inspect.signature(opt.Optimizer.__init__).parameters
        super().__init__(**{name: value for name, value in kwargs.items() if name in known})
        self.default_opt = opt.create(default_optimizer, **kwargs) if isinstance(default_optimizer, str) else default_optimizer
        self.aux_opt = _AssignmentOptimizer()

    def _responsible(self, index):
        """Return the optimizer for a parameter, given by its name or its index."""
        return self.aux_opt if str(self.idx2name.get(index, index)).endswith(FULL) else self.default_opt

    def create_state(self, index, weight):
        """Return the state that the optimizer in charge keeps for a weight."""
        return self._responsible(index).create_state(index, weight)

    def update(self, index, weight, grad, state):
        """Have the optimizer in charge update a weight."""
        self._responsible(index).update(index, weight, grad, state)
