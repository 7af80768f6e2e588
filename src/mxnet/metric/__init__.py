"""Metrics: how good the outputs of a network are, batch by batch.

Give one to ``Module.fit(eval_metric=...)`` by name, or use it by hand::

    metric = mx.metric.create(['acc', 'ce'])
    metric.update([labels], [outputs])
    print(metric.get_name_value())

The numbers come as Python floats. Sums and counts since `reset_local` (each logging interval) and since `reset` (each epoch)
are kept side by side; `get` gives the former, `get_global` the latter.
"""
from .base import CompositeEvalMetric, CustomMetric, EvalMetric, alias, check_label_shapes, create, np, register
from .classification import F1, MCC, PCC, Accuracy, CrossEntropy, NegativeLogLikelihood, Perplexity, TopKAccuracy
from .regression import MAE, MSE, RMSE, Caffe, Loss, PearsonCorrelation, Torch

__all__ = ["Accuracy", "Caffe", "CompositeEvalMetric", "CrossEntropy", "CustomMetric", "EvalMetric", "F1", "Loss", "MAE", "MCC", "MSE",
           "NegativeLogLikelihood", "PCC", "PearsonCorrelation", "Perplexity", "RMSE", "TopKAccuracy", "Torch", "alias", "check_label_shapes",
           "create", "np", "register"]
