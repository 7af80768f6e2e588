"""Random numbers of MXNet's generators."""
