"""Training as it was before `Module`: `FeedForward`, and the executors on several devices that it trains with.

Kept for old programs, which find it as ``mx.model.FeedForward`` and ``mx.executor_manager``. Nothing else of the project stands on it.
"""
