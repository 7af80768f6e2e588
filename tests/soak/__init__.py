"""Work that goes on for long, and what must not grow meanwhile: `python -m tests.soak --steps N --epochs N --seed S`, and a short run in the tests.

``measure``
    What a process holds, over time, and whether that grows.
``training``
    Four loops of training: imperative, hybridized, with Module, and recurrent.
``loading``
    Epochs of a DataLoader that are broken off, and whose workers fail and are killed.
``interrupts``
    Ctrl-C at any moment, in the loops of both.
"""
