"""Checkpoints of trainings: every rank writes its part of the weights and states in the background, and a job of any number of ranks resumes.

``entries``
    The arrays of a checkpoint, and the division of equal ones among ranks.
``shard_file``
    One rank's file, in the format of safetensors.
``storage``
    Planners and storage of `torch.distributed.checkpoint`, which is imported at the first checkpoint.
``saves``
    The folder: numbers, the commit of all ranks' files in one step, and the removal of old ones.
``training``
    The content: weights, optimizer, states, counters, random generators and position.
"""
from .saves import PendingSave
from .training import Resumed, StatePart, Training, Weight

__all__ = ["PendingSave", "Resumed", "StatePart", "Training", "Weight"]
