import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "image_classification"


@pytest.fixture(autouse=True, scope="session")
def programs():
    """Make the programs and their packages importable, as when one of them runs."""
    sys.path.insert(0, str(FOLDER))
    yield FOLDER
    sys.path.remove(str(FOLDER))
