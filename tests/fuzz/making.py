"""Files for the targets: where they are, and how a good one becomes a target's cases; and what a writer of files is."""
import contextlib
import functools
import pathlib
import tempfile
from collections.abc import Callable
from typing import NamedTuple

from .campaign import Target
from .mutations import mutated
from .supervise import shared_memory

DATA = pathlib.Path(__file__).parents[1] / "data"


@functools.cache
def folder():
    """Where the files of this process are."""
    made = tempfile.TemporaryDirectory(prefix="remex-fuzz-", dir=tempfile.tempdir or shared_memory())
    folder.kept = made  # removed with the process
    return pathlib.Path(made.name)


def file(content, name):
    """The path of a file with this content."""
    path = f"{folder()}/{name}"
    with open(path, "wb") as f:
        f.write(content)
    return path


def written(write):
    """What a function writes to the path that it gets."""
    path = folder() / "seed"
    write(str(path))
    return path.read_bytes()


@contextlib.contextmanager
def unless(*texts):
    """Forgive a ValueError with one of these texts: MXNet raises it too, where a program and its file do not go together."""
    try:
        yield
    except ValueError as error:
        if not any(text in str(error) for text in texts):
            raise


def target(name, seeds, read, text=False, structure=None, share=1, **more):
    """A target of mutated files: `seeds` gives the good ones, `structure(data, rng, others)` is a mutation that keeps their form."""
    seeds = functools.cache(seeds)

    def make(rng):
        data = rng.choice(seeds())
        if structure is not None and rng.random() < 0.7:
            return structure(data, rng, seeds())
        return mutated(data, rng, seeds(), text and rng.random() < 0.9)

    return Target(name, make, read, share=share, seeds=seeds, **more)


class Writer(NamedTuple):
    """``save(version)`` writes it, ``load()`` gives the version that is there; `files` are all that may be in the folder."""

    save: Callable[[int], object]
    load: Callable[[], int]
    files: tuple[str, ...]
