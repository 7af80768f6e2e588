"""Random numbers: drawing them (`sampling`), drawing out of what there is (`choices`), and how likely they are (`densities`)."""
from . import choices, densities, sampling
