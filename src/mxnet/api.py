"""Where MXNet keeps functions that its C++ library registers from outside of operators. There is no such library here, and no such function."""
