"""Infrastructure of the kernels: building and loading libraries, contracts of arguments, autotuning."""
