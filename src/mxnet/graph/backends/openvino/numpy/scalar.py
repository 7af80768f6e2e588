"""Operators of `mx.np` on an array and a number in OpenVINO."""
from ..conversion import converts
from ..elemwise.binary import BINARY
from ..elemwise.scalar import reversed_scalar, scalar

for _name, _key in {"add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "div", "power": "power"}.items():
    converts(f"_npi_{_name}_scalar")(scalar(BINARY[_key]))
    if _key not in ("add", "mul"):
        converts(f"_npi_r{_name}_scalar")(reversed_scalar(BINARY[_key]))
