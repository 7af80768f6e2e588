"""``mx.np.linalg``: linear algebra."""
from . import fallback, functions  # noqa: F401  (fills the table)
from .frontend import TABLE, arrays
from .frontend import bind as _bind

globals().update(fallback.linalg_functions())
for _name, _function in TABLE["linalg"].items():
    globals()[_name] = _bind(_function, arrays, _name, __name__)
__all__ = sorted([*TABLE["linalg"], *fallback.linalg_functions()])
