"""The folder that Sphinx reads: the repository's pages at their paths, links to its other files, and generated pages."""
import os
import pathlib
import re
import shutil

PAGES = ("docs/**/*.md", "docs/**/*.png", "benchmarks/results/**/*.md", "benchmarks/results/**/*.png", "examples/*/README.md",
         "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
LINKED = ("src", "tests", "scripts")  # pages link to single files of these, which become downloads
_LINK = re.compile(r"(\]\()([^)#\s]+)([)#])")


def write(root, target, generated):
    """Bring the folder `target` up to date; `generated` are the contents of further files by path.

    Files that stay the same keep their time, so that Sphinx reads only the pages that changed.
    """
    wanted = pages(root)
    wanted.update(generated)
    for name in ("LICENSE", "NOTICE", "pyproject.toml", "Makefile"):
        wanted[name] = (root / name).read_bytes()
    for path in sorted(p for p in (root / "examples").rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        wanted.setdefault(str(path.relative_to(root)), path.read_bytes())
    target.mkdir(parents=True, exist_ok=True)
    for name in LINKED:
        if not (target / name).is_symlink():
            (target / name).symlink_to(root / name, target_is_directory=True)
    for name, content in wanted.items():
        update(target / name, content)
    remove_others(target, wanted)


def pages(root):
    """Return the content of every page and picture, by its path in the repository and in the site."""
    results = {}
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            name = str(path.relative_to(root))
            content = path.read_bytes()
            results[name] = content if path.suffix != ".md" else with_pages_for_folders(root, path, content.decode()).encode()
    return results


def with_pages_for_folders(root, path, text):
    """Return the page `text` with links to folders replaced by links to the pages that stand for them."""
    def replace(match):
        place = (path.parent / match[2])
        if "://" in match[2] or not place.is_dir():
            return match[0]
        readme = place / "README.md"
        if not readme.exists():
            readme = next(iter(sorted(place.glob("*.md"))), root / "benchmarks" / "results" / "README.md")
        return match[1] + os.path.relpath(readme, path.parent) + match[3]
    return _LINK.sub(replace, text)


def update(path, content):
    """Write `content` to `path` unless it is there."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def remove_others(target, wanted):
    """Remove the files of an earlier mirror that are not in `wanted`."""
    for folder, folders, files in os.walk(target):
        folders[:] = [name for name in folders if not (pathlib.Path(folder) / name).is_symlink()]
        for name in files:
            path = pathlib.Path(folder) / name
            if str(path.relative_to(target)) not in wanted:
                path.unlink()
    for folder, folders, files in os.walk(target, topdown=False):
        if not folders and not files and pathlib.Path(folder) != target:
            shutil.rmtree(folder)
