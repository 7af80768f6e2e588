"""Measurements and decisions: the backend that runs a graph, and the cache of these choices."""
