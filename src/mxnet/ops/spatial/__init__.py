"""Operators on images and feature maps: sampling, pooling of regions, boxes and anchors for detection."""
from . import boxes, correlation, deformable, grids, multibox, proposal, regions, sampling
