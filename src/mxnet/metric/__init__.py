"""Metrics of the quality of a network's outputs, updated batch by batch.

Pass one to ``Module.fit(eval_metric=...)`` by name, or call it directly::

    metric = mx.metric.create(['acc', 'ce'])
    metric.update([labels], [outputs])
    print(metric.get_name_value())

The values are Python floats. Sums and counts since `reset_local` (each logging interval) and since `reset` (each epoch)
are kept separately; `get` returns the former, `get_global` the latter.
"""
from .base import CompositeEvalMetric, CustomMetric, EvalMetric, alias, check_label_shapes, create, np, register
from .classification import F1, MCC, PCC, Accuracy, CrossEntropy, NegativeLogLikelihood, Perplexity, TopKAccuracy
from .regression import MAE, MSE, RMSE, Caffe, Loss, PearsonCorrelation, Torch

__all__ = ["Accuracy", "Caffe", "CompositeEvalMetric", "CrossEntropy", "CustomMetric", "EvalMetric", "F1", "Loss", "MAE", "MCC", "MSE",
           "NegativeLogLikelihood", "PCC", "PearsonCorrelation", "Perplexity", "RMSE", "TopKAccuracy", "Torch", "alias", "check_label_shapes",
           "create", "np", "register"]
