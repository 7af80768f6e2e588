"""Programs for the command line, each run with ``python -m mxnet.tools.<name>``."""
import os
import sys


def progress_bar(path, total=None, unit="image", logged=False):
    """tqdm's bar on standard error, called as the file is: on terminals, and, if `logged`, in logs too."""
    from tqdm import tqdm
    return tqdm(total=total, unit=unit, desc=os.path.basename(path), file=sys.stderr, disable=False if logged else None)
