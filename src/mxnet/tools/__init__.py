"""Programs for the command line, each run with ``python -m mxnet.tools.<name>``."""
