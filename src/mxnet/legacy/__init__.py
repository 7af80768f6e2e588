"""The training interface before `Module`: `FeedForward`, and its data-parallel executors.

Kept for old programs, which import it as ``mx.model.FeedForward`` and ``mx.executor_manager``. No other module depends on it.
"""
