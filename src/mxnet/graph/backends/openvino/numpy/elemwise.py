"""Elementwise operators of `mx.np` in OpenVINO."""
from ..conversion import converts
from ..elemwise.binary import BINARY, binary, hypot
from ..elemwise.unary import UNARY, logarithm, reciprocal, square, unary

for _name, _function in UNARY.items():
    if _name not in ("softsign", "erf"):
        converts(f"_npx_{_name}" if _name in ("relu", "sigmoid") else f"_npi_{_name}")(unary(_function))
for _name, _key in {"add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "div", "power": "power"}.items():
    converts(f"_npi_{_name}")(binary(BINARY[_key]))
converts("_npi_hypot")(hypot)
converts("_npi_square")(square)
converts("_npi_reciprocal")(reciprocal)
converts("_npi_log2", "_npi_log10")(logarithm)
