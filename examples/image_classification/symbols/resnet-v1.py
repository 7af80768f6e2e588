"""ResNet v1 under the name that the training programs know it by."""
from .resnetv1 import get_symbol  # noqa: F401
