"""Kernels of layers, losses and optimizer updates."""
