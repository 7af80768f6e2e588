"""What the training, scoring and benchmark programs share."""
