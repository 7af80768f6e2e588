"""Programs for the command line, each run with ``python -m mxnet.tools.<name>``."""
import os
import sys


def progress_bar(path, total=None, unit="image", logged=False):
    """Return tqdm's bar on standard error with the name of the calling file: shown on terminals, and, if `logged`, in logs too."""
    from tqdm import tqdm
    return tqdm(total=total, unit=unit, desc=os.path.basename(path), file=sys.stderr, disable=False if logged else None)
