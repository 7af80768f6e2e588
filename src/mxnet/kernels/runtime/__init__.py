"""Kernels' libraries: built, found and loaded; contracts of their arguments; comparisons of algorithms."""
