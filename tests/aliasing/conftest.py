"""Which files here hold calls, not tests: collecting them for doctests would import them a second time."""
collect_ignore = ["aliasing_calls.py", "aliasing_cases.py", "aliasing_data.py", "aliasing_programs.py"]
