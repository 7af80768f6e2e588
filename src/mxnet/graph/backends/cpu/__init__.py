"""The backend `kernels`: inference on CPUs with prepacked weights."""
