"""A factorization machine on sparse rows, with row-sparse weights that a kvstore keeps."""
import numpy as np

import mxnet as mx

FEATURES, FACTORS = 1000, 4


def rows(count, seed=0):
    """Rows of 6 features out of 1,000, and whether a hidden quadratic form of them is positive."""
    rng = np.random.RandomState(7)
    weights, factors = rng.normal(0, 1, FEATURES), rng.normal(0, 0.7, (FEATURES, 2))
    rng = np.random.RandomState(seed)
    chosen = np.array([rng.choice(FEATURES // 10, 6, replace=False) for _ in range(count)])
    chosen.sort(axis=1)
    summed = factors[chosen].sum(axis=1)
    score = weights[chosen].sum(axis=1) + 0.5 * ((summed ** 2).sum(axis=1) - (factors[chosen] ** 2).sum(axis=(1, 2)))
    data = mx.nd.sparse.csr_matrix((np.ones(chosen.size, "float32"), chosen.ravel(), np.arange(count + 1) * 6), shape=(count, FEATURES))
    return data, (score > 0).astype("float32")


class Batches(mx.io.DataIter):
    """Slices of a CSR matrix, which stay sparse."""

    def __init__(self, data, label, batch_size):
        super().__init__(batch_size)
        self.data, self.label, self.at = data, label, 0

    @property
    def provide_data(self):
        return [mx.io.DataDesc("data", (self.batch_size, FEATURES))]

    @property
    def provide_label(self):
        return [mx.io.DataDesc("softmax_label", (self.batch_size,))]

    def reset(self):
        self.at = 0

    def next(self):
        first, self.at = self.at, self.at + self.batch_size
        if self.at > self.data.shape[0]:
            raise StopIteration
        return mx.io.DataBatch([self.data[first:self.at]], [mx.nd.array(self.label[first:self.at])], pad=0)


def machine():
    x = mx.sym.Variable("data", stype="csr")
    v = mx.sym.Variable("v", shape=(FEATURES, FACTORS), stype="row_sparse", init=mx.init.Normal(0.1))
    w = mx.sym.Variable("w", shape=(FEATURES, 1), stype="row_sparse", init=mx.init.Normal(0.01))
    bias = mx.sym.Variable("bias", shape=(1,), init=mx.init.Constant(0))
    linear = mx.sym.broadcast_add(mx.sym.sparse.dot(x, w), bias)
    squares = mx.sym.sum(mx.sym.square(mx.sym.sparse.dot(x, v)), axis=1, keepdims=True)
    rest = mx.sym.sum(mx.sym.sparse.dot(mx.sym.square(x), mx.sym.square(v)), axis=1, keepdims=True)
    return mx.sym.LogisticRegressionOutput(linear + 0.5 * (squares - rest), mx.sym.Variable("softmax_label"))


def train(epochs=8):
    """Accuracy on rows that were not trained on, before and after."""
    np.random.seed(4)
    mx.random.seed(4)
    batches, held = Batches(*rows(2000), 100), Batches(*rows(500, seed=1), 100)
    module = mx.mod.Module(machine(), data_names=["data"], label_names=["softmax_label"])
    module.bind(batches.provide_data, batches.provide_label)
    module.init_params()
    kv = mx.kv.create("local")
    module.init_optimizer(kvstore=kv, optimizer=mx.optimizer.create("adam", learning_rate=0.02, lazy_update=True, rescale_grad=1 / 100))

    def right(label, pred):
        return float(((pred > 0.5) == (label.reshape(pred.shape) > 0.5)).mean())

    metric = mx.metric.CustomMetric(right, "right")

    def touched(batch):
        return {"v": batch.data[0].indices, "w": batch.data[0].indices}

    def score():
        metric.reset()
        held.reset()
        for batch in held:
            module.prepare(batch, sparse_row_id_fn=touched)
            module.forward(batch, is_train=False)
            module.update_metric(metric, batch.label)
        return metric.get()[1]

    before = score()
    for _ in range(epochs):
        batches.reset()
        for batch in batches:
            module.prepare(batch, sparse_row_id_fn=touched)
            module.forward_backward(batch)
            module.update()
    return before, score()


if __name__ == "__main__":
    print(train())
