"""Reductions of `mx.np` in OpenVINO."""
from ..conversion import converts
from ..reduce import REDUCTIONS, reduction

for _name, _function in REDUCTIONS.items():
    converts("_npi_mean" if _name == "mean" else f"_np_{_name}")(reduction(_function))
