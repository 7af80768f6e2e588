import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

GRAMS = dict(ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5, 6], pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7], min_gram_length=1,
             max_gram_length=2)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skips", [0, 5])
def test_sequences_of_numbers(mode, skips):
    data = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
    weights = {} if mode == "TF" else {"weights": [0.5, 1.0, 2.0, 3.0, 1.5, 0.25, 4.0]}
    agrees(node("TfIdfVectorizer", "x", mode=mode, max_skip_count=skips, **GRAMS, **weights), {"x": data}, opset=9)
    agrees(node("TfIdfVectorizer", "x", mode=mode, max_skip_count=skips, **GRAMS, **weights), {"x": data[1]}, opset=9)


def test_as_many_places_as_sequences():
    with pytest.raises(MXNetError, match="7 sequences have 2 places and 7 weights"):
        run(model_of([node("TfIdfVectorizer", "x", mode="TF", max_skip_count=0, **{**GRAMS, "ngram_indexes": [0, 1]})], {"x": (2,)}, types={"x": 7}),
            x=np.array([1, 2]))
