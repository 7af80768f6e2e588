"""Running a Symbol: the cache of what was lowered and compiled, sessions, monitors."""
