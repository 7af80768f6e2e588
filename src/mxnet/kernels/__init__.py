"""Kernels in C++, compiled for the processor that runs them; the package knows torch only.

They come with the wheel, or need g++ (or what ``CXX`` names) once: compiling takes two seconds, and the result is kept in
``$MXNET_HOME/kernels`` (`runtime.libraries`). Where there is neither the same is computed with torch's operators. Each declares its contract
beside its signature, and is called through a check of it (`runtime.contract`).
"""
from .runtime.heap import own_heap
from .runtime.libraries import load

__all__ = ["load", "own_heap"]
