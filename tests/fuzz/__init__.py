"""Mutated files, and whatever else a stranger may hand over: `python -m tests.fuzz --minutes N --seed S`, and a short run in the tests.

``mutations``
    How a good file becomes a bad one.
``readers``
    A target for each reader of files.
``campaign``
    Runs targets on cases and says what broke a promise.
``cases``
    What did so once: `<target>--<digest>`, read again by each run of the tests.

A target is a `campaign.Target`; those of operator calls and of kernels belong in modules of their own beside ``readers``, and into
``campaign.targets``.
"""
