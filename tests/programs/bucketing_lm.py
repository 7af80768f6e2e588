"""A language model over sentences of several lengths: BucketingModule, mx.rnn's cells, perplexity."""
import random

import numpy as np

import mxnet as mx

WORDS = 12


def sentences(count, seed=0):
    """Each word decides the next one but for every tenth, which is drawn."""
    rng = np.random.RandomState(seed)
    made = []
    for _ in range(count):
        words = [int(rng.randint(1, WORDS))]
        for _ in range(rng.randint(5, 14)):
            words.append(int(rng.randint(1, WORDS)) if rng.uniform() < 0.1 else words[-1] * 5 % (WORDS - 1) + 1)
        made.append(words)
    return made


def train(epochs=5, fused=False):
    """Perplexity after the first and the last epoch; a model that knows only how often words come has about 11."""
    random.seed(3)
    np.random.seed(3)
    mx.random.seed(3)
    buckets = [8, 14]
    batches = mx.rnn.BucketSentenceIter(sentences(600), 32, buckets=buckets, invalid_label=0)
    if fused:
        stack = mx.rnn.FusedRNNCell(32, num_layers=1, mode="lstm", prefix="lstm_")
    else:
        stack = mx.rnn.SequentialRNNCell()
        stack.add(mx.rnn.LSTMCell(num_hidden=32, prefix="lstm_l0_"))
        stack.add(mx.rnn.DropoutCell(0.1))

    def symbol(length):
        data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        embedded = mx.sym.Embedding(data, input_dim=WORDS, output_dim=16, name="embed")
        stack.reset()
        outputs, _ = stack.unroll(length, inputs=embedded, merge_outputs=True, layout="NTC")
        scores = mx.sym.FullyConnected(mx.sym.Reshape(outputs, shape=(-1, 32)), num_hidden=WORDS, name="pred")
        loss = mx.sym.SoftmaxOutput(scores, mx.sym.Reshape(label, shape=(-1,)), use_ignore=True, ignore_label=0, name="softmax")
        return loss, ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(symbol, default_bucket_key=batches.default_bucket_key, context=mx.cpu())
    seen = []
    module.fit(batches, eval_metric=mx.metric.Perplexity(0), num_epoch=epochs, optimizer="adam", optimizer_params={"learning_rate": 0.02},
               initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
               batch_end_callback=lambda param: seen.append((param.epoch, param.eval_metric.get()[1])))
    return tuple([value for epoch, value in seen if epoch == wanted][-1] for wanted in (0, epochs - 1))


if __name__ == "__main__":
    print(train(), train(fused=True))
