"""Backends: what runs a lowered graph."""
