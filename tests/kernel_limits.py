"""Limits of kernels, which tests replace so that small arrays reach them; the only place in the tests that knows their private names."""
from mxnet.kernels.runtime import tuning


def used_from(monkeypatch, size, *modules):
    """Use the kernels of `modules` from arrays of `size` (in the unit of each module) on; 0 is always."""
    for module in modules:
        monkeypatch.setattr(module, "_WORTHWHILE", size)


def tuned_from(monkeypatch, size, module):
    """Let a module of convolutions choose its algorithm by a benchmark from layers of `size` on, whatever it has chosen before."""
    monkeypatch.setattr(module, "_TUNED", size)
    forget_choices(monkeypatch, module)


def forget_choices(monkeypatch, module):
    """Let a module of convolutions choose its algorithms anew, whatever other programs do meanwhile."""
    monkeypatch.setattr(tuning, "unreliable", lambda: False)
    monkeypatch.setattr(module, "_found", {})
