"""Docstrings in numpy's style as Markdown, and signatures as text."""
import inspect
import re
import textwrap

_HEADING = re.compile(r"^(\S[^\n]*)\n(-{3,})[ ]*$", re.M)
_CODE = re.compile(r"(``[^`]+``|`[^`\n]+`)")
_SPECIAL = re.compile(r"([\\*_\[\]<>$#|{}~^&])")
_ENTRY = re.compile(r"^(\S.*?)(?: : (.*))?$")
_LISTS = {"Parameters", "Attributes", "Raises", "Returns", "Yields", "Other Parameters"}


def sections(doc):
    """Return (title, text) pairs of a docstring; the description has the title ''."""
    doc = inspect.cleandoc(doc or "")
    results, start, title = [], 0, ""
    for heading in _HEADING.finditer(doc):
        results.append((title, doc[start:heading.start()].strip("\n")))
        title, start = heading[1].strip(), heading.end()
    results.append((title, doc[start:].strip("\n")))
    return [(title, text) for title, text in results if title or text]


def markdown(doc, leave_out=()):
    """Return the docstring as Markdown, without the sections of the titles in `leave_out`."""
    parts = []
    for title, text in sections(doc):
        if title in leave_out:
            continue
        if title:
            parts.append(f"**{escaped(title)}**")
        parts.append(_entries(text) if title in _LISTS and not text.startswith(">>>") else prose(text))
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(doc):
    """Return the first sentence of a docstring, or its first line, as Markdown for a table."""
    first = " ".join(inspect.cleandoc(doc or "").split("\n\n")[0].split())
    return inline(re.split(r"(?<=[a-z)`\]])\.\s", first, maxsplit=1)[0].rstrip(".:"))


def _entries(text):
    """Return the entries of a section such as Parameters as a list; a description begins a line of its own."""
    lines = []
    for line in text.split("\n"):
        if line and not line[0].isspace():
            name, kind = _ENTRY.match(line).groups()
            lines.append(f"- **{escaped(name)}**" + (f": {inline(kind)}" if kind else ""))
        else:
            if line.strip() and lines and lines[-1].startswith("- "):
                lines[-1] += "\\"  # Markdown's line break
            lines.append(f"  {inline(line.strip())}" if line.strip() else "")
    return "\n".join(lines)


def prose(text):
    """Return paragraphs, lists, literal blocks and examples as Markdown."""
    result = []
    for block in re.split(r"\n[ ]*\n", text):
        stripped = block.strip("\n")
        if not stripped.strip():
            continue
        if stripped.lstrip().startswith(">>>"):
            result.append(fenced(textwrap.dedent(stripped), "pycon"))
        elif result and result[-1].endswith("\x00") and stripped[0].isspace():
            result.append(fenced(textwrap.dedent(stripped), "text") + "\x00")
        else:
            literal = stripped.rstrip().endswith("::")
            result.append(_paragraph(stripped.rstrip().removesuffix("::") + ":" if literal else stripped) + ("\x00" if literal else ""))
    return "\n\n".join(result).replace("\x00", "")


def _paragraph(text):
    lines, example = [], []
    for line in textwrap.dedent(text).split("\n"):
        if line.startswith(">>>") or example:  # an example right behind a sentence
            example.append(line)
        elif re.match(r"\s*(?:[-*]|\d+\.) ", line):
            indent, mark, rest = re.match(r"(\s*)([-*]|\d+\.) (.*)", line).groups()
            lines.append(f"{indent}{mark} {inline(rest)}")
        else:
            lines.append(inline(line))
    return "\n".join(lines) + ("\n\n" + fenced("\n".join(example), "pycon") if example else "")


def inline(text):
    """Return a line with its code as Markdown's, and all else escaped."""
    return "".join(f"`{part.strip('`')}`" if i % 2 else escaped(part, first=i == 0) for i, part in enumerate(_CODE.split(text)))


def escaped(text, first=True):
    """Return text that Markdown shows as it is; `first` if it begins a line."""
    text = _SPECIAL.sub(r"\\\1", text)
    return re.sub(r"^(\s*)([-+=:])", r"\1\\\2", text) if first else text


def fenced(text, language):
    """Return a block of code."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def signature(function, name):
    """Return ``name(parameters)``; defaults that have no short text are shown as ``...``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return f"{name}(...)"
    shown = []
    for p in parameters:
        if p.name == "self" and not shown:
            continue
        default = p.default
        if default is not p.empty and not isinstance(default, (int, float, str, bool, type(None), tuple)):
            default = _NAMED(getattr(default, "__name__", "..."))
        shown.append(p.replace(default=default, annotation=_NAMED(p.annotation) if isinstance(p.annotation, str) else p.annotation))
    try:
        text = str(inspect.Signature(shown))
    except ValueError:
        text = "(" + ", ".join(str(p) for p in shown) + ")"
    return name + re.sub(r"\s+", " ", text).replace("'", '"')


class _NAMED(str):  # a default, or a postponed annotation, that is shown without quotes
    __slots__ = ()

    def __repr__(self):
        return str(self)
