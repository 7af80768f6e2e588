"""Numbers in text files."""
