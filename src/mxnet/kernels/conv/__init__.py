"""Convolutions in two dimensions."""
