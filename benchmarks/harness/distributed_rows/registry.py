"""The table of `distributed.py`, to which the modules here add their rows."""
from harness.goals import Table

TABLE = Table("Distributed training", "distributed")
row = TABLE.row
