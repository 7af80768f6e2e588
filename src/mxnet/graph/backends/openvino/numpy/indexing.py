"""Choosing by conditions of `mx.np` in OpenVINO."""
from ..conversion import converts
from ..elemwise.binary import where

converts("_npi_where")(where)
