"""Passes: graph to graph, one file for each."""
