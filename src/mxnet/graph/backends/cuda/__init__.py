"""CUDA graphs and layers of graphs on GPUs."""
