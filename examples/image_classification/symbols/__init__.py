"""Image classifiers as Symbols.

Each module has ``get_symbol(num_classes, ...)``; ``--network resnet`` of the programs beside this folder means ``symbols/resnet.py``.
Parameter and layer names are MXNet's, so published checkpoints fit.
"""
