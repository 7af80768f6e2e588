"""Samplers that may still change."""
from .sampler import *  # noqa: F403
