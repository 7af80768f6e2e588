"""Networks ready to use, with pretrained parameters where they are published."""
from . import model_store, vision

__all__ = ["model_store", "vision"]
