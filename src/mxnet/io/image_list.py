"""List files (``.lst``): a line for each image, with its number, its labels and its path."""
from collections.abc import Callable, Iterator
from typing import NamedTuple, Optional

from ..base import MXNetError
from ..files import open_stream


class ListedImage(NamedTuple):
    """A line of a list file."""

    number: int
    labels: list[float]
    path: str


def read_image_list(path: str, label_width: Optional[int] = None, unlabelled: bool = False,
                    report: Optional[Callable[[str], None]] = None) -> Iterator[ListedImage]:
    """Yield the images of a list file, in its order.

    Fields are separated by tabs; in a line without tabs, by spaces.

    Parameters
    ----------
    path : str
    label_width : int, optional
        The number of labels to read after the image's number; further fields except the path are ignored. By default all fields between
        number and path are labels.
    unlabelled : bool
        Allow lines without labels.
    report : callable, optional
        Receives a message about each invalid line, which is skipped; by default an invalid line is an error.

    Raises
    ------
    MXNetError
        If the file cannot be read, or a line is invalid.
    """
    with open_stream(path) as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.decode("utf-8", "surrogateescape").strip()
            if not line:
                continue
            fields = [field.strip() for field in line.split("\t")] if "\t" in line else line.split()
            labels = fields[1:-1] if label_width is None else fields[1:label_width + 1]
            try:
                if len(fields) < 2 or len(labels) < (not unlabelled if label_width is None else label_width):
                    raise ValueError
                image = ListedImage(int(fields[0]), [float(label) for label in labels], fields[-1])
            except ValueError:
                count = "labels" if label_width is None else f"{label_width} label{'' if label_width == 1 else 's'}"
                message = f"{path}, line {number}: expected a number, {count} and a path, separated by tabs; found {line[:80]!r}"
                if report is None:
                    raise MXNetError(message) from None
                report(message)
                continue
            yield image
