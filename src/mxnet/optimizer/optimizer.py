"""All optimizers under their module path in MXNet's pickles."""
from ..ndarray import abs as NDabs
from .adaptive import AdaDelta, AdaGrad, Adam, Adamax, Nadam, RMSProp
from .base import Optimizer, create, register
from .large_batch import LAMB, LARS, LBSGD
from .later import LANS, AdaBelief, AdamW
from .leader import FTML, Ftrl
from .sgd import DCASGD, NAG, SGD, SGLD, Signum, Test, ccSGD
from .updater import Updater, get_updater

__all__ = ["AdaBelief", "AdaDelta", "AdaGrad", "Adam", "AdamW", "Adamax", "DCASGD", "FTML", "Ftrl", "LAMB", "LANS", "LARS", "LBSGD", "NAG",
           "NDabs", "Nadam", "Optimizer", "RMSProp", "SGD", "SGLD", "Signum", "Test", "Updater", "ccSGD", "create", "get_updater", "register"]

# Optimizer states that are saved with their optimizer refer to its class by this module.
for _class in list(globals().values()):
    if isinstance(_class, type) and _class.__module__.startswith(__package__):
        _class.__module__ = __name__
