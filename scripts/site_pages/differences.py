"""The rows of docs/differences.md that concern an operator."""
import fnmatch
import re

_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| `([^|]*)` \| (.*?) \|$", re.M)


def table(root):
    """Return the rows of the page: (patterns of operators, kind, case, reason). Rows about all operators are left out."""
    text = (root / "docs" / "differences.md").read_text()
    return [(match[1].split(","), match[2].strip(), match[3], match[4].strip()) for match in _ROW.finditer(text) if match[1] != "*"]


def of(op, rows):
    """Return (kind, case, reason) of the rows that name the operator. "The same" takes the reason of the row above."""
    results, last = [], ""
    for patterns, kind, case, reason in rows:
        if re.match(r"The same\b", reason):
            reason = f"{last} {reason.partition('.')[2].strip()}".strip() if "." in reason else last
        else:
            last = reason
        if any(fnmatch.fnmatchcase(op.name, pattern) for pattern in patterns):
            results.append((kind, case, reason))
    return results
