"""The rows of `distributed.py`, by subject."""
