"""Gather, scatter and transposing copies."""
