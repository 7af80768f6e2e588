"""Print the number of words of the sentences of Markdown pages: the mean, and those that are too long.

    python scripts/sentence_lengths.py [PAGE ...] [--longest 45] [--mean 22]

By default README.md and ARCHITECTURE.md. Code blocks do not count, and a name in code is one word. A cell of a table and an entry of a list end
a sentence. The script exits 1 if a page is above a limit.
"""
import argparse
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "ARCHITECTURE.md")


def sentences(text):
    """Return the sentences of a page in Markdown.

    Example
    -------
    >>> sentences("# Title\\n\\nOne `a.b. c` two. Three\\nfour: [five](six.md)!\\n\\n| a b | c |\\n|---|---|\\n")
    ['Title', 'One Code two.', 'Three four: five!', 'a b', 'c']
    """
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.M | re.S)
    text = re.sub(r"`[^`]*`", "Code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    blocks = []
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            blocks += [cell for cell in line.strip().strip("|").split("|") if not re.fullmatch(r"[\s:-]*", cell)] + [""]
        elif re.match(r"\s*([-*]|\d+\.|#+)\s", line):
            blocks += ["", re.sub(r"^\s*([-*]|\d+\.|#+)\s+", "", line)] + ([""] if line.startswith("#") else [])
        elif not line.strip() or not blocks or not blocks[-1]:
            blocks.append(line.strip())
        else:
            blocks[-1] += " " + line.strip()
    return [s.strip() for block in blocks for s in re.split(r"(?<=[.!?])\s+(?=[\"*(]*[A-Z])", block.strip()) if re.search(r"\w", s)]


def words(sentence):
    """Return the number of words of a sentence."""
    return len(re.findall(r"[^\W_][\w.,'’-]*", sentence))


def main():
    """Print a line for each page, and its sentences that are too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", default=[str(ROOT / page) for page in PAGES], help="files; by default those two")
    parser.add_argument("--longest", type=int, default=45, help="words of a sentence, at most")
    parser.add_argument("--mean", type=float, default=22, help="words of the sentences of a page, on average, at most")
    args = parser.parse_args()
    failed = False
    for page in args.pages:
        text = pathlib.Path(page).read_text("utf-8")
        lengths = {sentence: words(sentence) for sentence in sentences(text)}
        mean, most = statistics.mean(lengths.values()) if lengths else 0, max(lengths.values(), default=0)
        print(f"{page}: {len(text.splitlines())} lines, {len(lengths)} sentences, {mean:.1f} words on average, {most} at most")
        for sentence, length in lengths.items():
            if length > args.longest:
                print(f"  {length}: {sentence}")
                failed = True
        failed |= mean > args.mean
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
