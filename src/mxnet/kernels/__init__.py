"""Kernels in C++, compiled for the processor that runs them; the package knows torch only.

The wheel contains them, or g++ (or the compiler in ``CXX``) compiles each once, in two seconds, into ``$MXNET_HOME/kernels`` (`runtime.libraries`).
Without both, torch's operators compute the same. Each kernel declares its contract beside its signature; each call checks it
(`runtime.contract`).
"""
from .runtime.heap import own_heap
from .runtime.libraries import load

__all__ = ["load", "own_heap"]
