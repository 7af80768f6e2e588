"""Which files here hold samples, not tests: collecting them for doctests would import them a second time."""
collect_ignore = ["records.py", "numpy_records.py", "array_cases.py"]
