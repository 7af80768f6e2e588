"""Simulated GPUs stand in where there are none: with a real one these tests are not collected."""
import torch

collect_ignore_glob = ["test_simulated*.py"] if torch.cuda.is_available() else []
