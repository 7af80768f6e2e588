"""New shapes of `mx.np` in OpenVINO."""
from ..conversion import converts
from ..shape import repeating, reshaping

converts("_np_reshape", "_npx_reshape", "_np_squeeze")(reshaping.reshape)
converts("_np_transpose")(reshaping.transpose)
converts("_npi_broadcast_to")(repeating.broadcast)
