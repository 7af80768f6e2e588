"""Command-line options from tables."""


def add_options(group, rows):
    """Add options to an argparse group. A row is the flag, its type, its default and its help."""
    for flag, kind, default, text in rows:
        group.add_argument(flag, type=kind, default=default, help=text)
    return group


def numbers(text, kind=float):
    """'0.1,2' as [0.1, 2.0]"""
    return [kind(part) for part in text.split(",")]
