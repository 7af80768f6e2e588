"""Random numbers: drawing them (`sampling`) and how likely they are (`densities`)."""
from . import densities, sampling
