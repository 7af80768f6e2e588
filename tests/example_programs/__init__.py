"""The programs of MXNet's folder `example/`, run on the real MXNet 1.9.1 and on Remex: ``python -m tests.example_programs --help``."""
