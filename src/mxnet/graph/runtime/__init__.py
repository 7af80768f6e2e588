"""Execution of Symbols: the caches of lowered and compiled graphs, sessions, monitors."""
