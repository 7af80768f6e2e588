"""Parsers of numbers in text files."""
