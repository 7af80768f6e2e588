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
    """The images of a list file, in its order.

    Fields stand between tabs; in a line that has none, between spaces.

    Parameters
    ----------
    path : str
    label_width : int, optional
        Read so many labels behind the number, and nothing of what follows but the path; by default all fields between number and path.
    unlabelled : bool
        Whether a line may be without labels.
    report : callable, optional
        Gets a message about each line of another form, which is then left out; by default that is an error.

    Raises
    ------
    MXNetError
        If the file cannot be read, or a line has another form.
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
                found = ListedImage(int(fields[0]), [float(label) for label in labels], fields[-1])
            except ValueError:
                count = "labels" if label_width is None else f"{label_width} label{'' if label_width == 1 else 's'}"
                message = f"{path}, line {number}: expected a number, {count} and a path, separated by tabs; found {line[:80]!r}"
                if report is None:
                    raise MXNetError(message) from None
                report(message)
                continue
            yield found
