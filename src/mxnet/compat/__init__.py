"""Modules that only old programs use; nothing else in this package depends on them.

`table` lists paths and names of MXNet's files outside of its documentation, and `finder` resolves them on import. `feedforward` and
`executor_manager` are the training interface before `Module` (``mx.model.FeedForward``, ``mx.executor_manager``). `misc` has the schedules before
``mx.lr_scheduler``, and `data_workers` the parts of data loaders before `DataLoader`'s pool. `helpers` and `operator_names` are the functions to
which private names of MXNet lead.
"""
