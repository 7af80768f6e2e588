"""Backends, which compile and run lowered graphs."""
