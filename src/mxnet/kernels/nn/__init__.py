"""Layers, losses and updates of neural networks."""
