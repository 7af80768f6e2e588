"""Random numbers: distributions (`sampling`), choices from given elements (`choices`), and densities (`densities`)."""
from . import choices, densities, sampling
