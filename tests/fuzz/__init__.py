"""Mutated files, and whatever else a stranger may hand over: `python -m tests.fuzz --cases N --seed S`, and a short run in the tests.

``mutations``
    How a good file becomes a bad one.
``readers``
    A target for each reader of files.
``onnx_files``
    A target for the reader of ONNX files.
``calls``, ``frontends``
    Targets that call every operator, as a function, in graphs and compiled, and what is written in Python above the operators; from ``hostile``
    come the values.
``kernels``, ``kernel_functions``, ``kernel_checks``, ``jpegs``, ``arrays``, ``sanitizer``
    Targets for the kernels in C++; tensors as text; kernels compiled for AddressSanitizer.
``campaign``
    Runs targets on cases and says what broke a promise; forbids a process to execute anything or to take much memory.
``supervise``, ``progress``
    Run such processes, go on behind one that dies or hangs, and report.
``kills``, ``writers``, ``data_writers``
    Kill those who write files, at any moment.
``cases``
    What failed once: `<target>--<digest>`, read again by each run of the tests.

A target is a `campaign.Target`; its module has a list ``TARGETS`` and stands in ``campaign.MODULES``.
"""
