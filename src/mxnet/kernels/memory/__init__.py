"""Copies: gathered rows, other orders of axes."""
