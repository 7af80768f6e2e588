"""Common modules of the training, scoring and benchmark programs."""
