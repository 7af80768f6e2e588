"""Modules that the benchmark commands share: tasks, models, workers, measurement and reports."""
