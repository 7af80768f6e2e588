"""Notebooks: whether the program runs in one, HTML tables, and progress bars for notebooks, terminals and logs."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

_TABLE = "border-collapse:collapse;font-family:ui-monospace,monospace;font-size:0.9em"
_CELL = "padding:0.1em 0.7em;border:1px solid #8884;text-align:"


def escaped(text: Any) -> str:
    """Return text with the characters that HTML reserves written as entities.

    Example
    -------
    >>> mx.display.escaped('a < b')
    'a &lt; b'
    """
    from html import escape  # not when mxnet is imported
    return escape(str(text))


def in_notebook() -> bool:
    """Return True in a Jupyter kernel, which shows HTML.

    Example
    -------
    >>> mx.display.in_notebook()
    False
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def progress_bar(iterable: Iterable[Any] | None = None, *, logged: bool = False, **options: Any) -> Any:
    """Return tqdm's progress bar: a widget in notebooks, on standard error elsewhere; hidden where that is no terminal, unless `logged`.

    Parameters
    ----------
    iterable : iterable, optional
    logged : bool
        Show it in logs, too.
    **options
        The arguments of ``tqdm.tqdm``.

    Example
    -------
    >>> [x * 2 for x in mx.display.progress_bar([1, 2], desc='doubling')]
    [2, 4]
    """
    from tqdm.auto import tqdm
    shown = logged or in_notebook()
    return tqdm(iterable, file=sys.stderr, disable=False if shown else None, **options)


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], footer: str = "", numbers: bool = False) -> str:
    """Return an HTML table: the first cell of a row is text, the others are aligned to the right; with `numbers` the first one, too.

    Example
    -------
    >>> '<td' in mx.display.table('Layers', ['layer', 'parameters'], [['Dense', 12]])
    True
    """
    def row(cells: Sequence[Any], tag: str) -> str:
        sides = ["right" if numbers or i else "left" for i in range(len(cells))]
        return "<tr>" + "".join(f'<{tag} style="{_CELL}{side}">{escaped(cell)}</{tag}>' for cell, side in zip(cells, sides)) + "</tr>"

    head = f"<thead>{row(columns, 'th')}</thead>" if columns else ""
    end = f'<div style="font-size:0.9em">{escaped(footer)}</div>' if footer else ""
    return (f'<div><div style="font-size:0.9em;opacity:0.75">{escaped(caption)}</div><table style="{_TABLE}">{head}'
            f"<tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>{end}</div>")


def plain(text: str) -> str:
    """Return text as preformatted HTML.

    Example
    -------
    >>> mx.display.plain('<Symbol x>')
    '<pre>&lt;Symbol x&gt;</pre>'
    """
    return f"<pre>{escaped(text)}</pre>"


def show(text: str) -> None:
    """Show HTML below the notebook's cell that runs.

    Example
    -------
    >>> mx.display.show('<b>bold</b>')     # doctest: +SKIP
    """
    from IPython.display import HTML, display
    display(HTML(text))


__all__ = ["escaped", "in_notebook", "plain", "progress_bar", "show", "table"]
