"""Soon."""
LOOPS = {}
