"""The parts of `scripts/make_docs.py`."""
