"""Stochastic variance reduced gradient: ``SVRGModule``."""
from . import svrg_module, svrg_optimizer

__all__ = ["svrg_module", "svrg_optimizer"]
