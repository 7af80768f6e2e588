"""OpenVINO's counterparts of the operators in `ops/quantization`."""
