"""``python -m mxnet.tools COMMAND``: the console command ``remex``, where scripts are not on the search path."""
import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
