"""Programs for the command line, each run with ``python -m mxnet.tools.<name>``."""
from __future__ import annotations

import os
import sys
from typing import Any as _Any


def progress_bar(path: str, total: int | None = None, unit: str = "image", logged: bool = False) -> _Any:
    """Return tqdm's bar on standard error with the name of the calling file: shown on terminals, and, if `logged`, in logs too."""
    from ..display import progress_bar
    return progress_bar(total=total, unit=unit, desc=os.path.basename(path), logged=logged)
