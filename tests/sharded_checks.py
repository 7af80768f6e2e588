"""A network with split layers, and the same without, for tests: csr batches of 11 features, 5 hidden units, 9 classes."""
PROGRAM = """
    from mxnet import gluon, nd
    numbers = np.random.RandomState(0)
    X = (numbers.rand(6, 8, 11) * (numbers.rand(6, 8, 11) < 0.4)).astype('float32')
    Y = numbers.randint(0, 9, (6, 8))

    def build(split, ctx=None, **options):
        net = gluon.nn.Sequential(prefix='net_')
        with net.name_scope():
            if split:
                net.add(gluon.nn.ShardedEmbedding(11, 6, sparse_grad=False), gluon.nn.Dense(5, activation='tanh', in_units=6),
                        gluon.nn.ShardedDense(9, in_units=5, **options))
            else:
                net.add(gluon.nn.Dense(6, in_units=11, use_bias=False), gluon.nn.Dense(5, activation='tanh', in_units=6),
                        gluon.nn.Dense(9, in_units=5))
        net.initialize(ctx=ctx)
        numbers = np.random.RandomState(5)
        table = nd.array(numbers.uniform(-1, 1, (11, 6)))
        net[0].weight.set_data(table if split else table.T)
        for layer in net[1], net[2]:
            layer.weight.set_data(nd.array(numbers.uniform(-1, 1, layer.weight.shape)))
            layer.bias.set_data(nd.array(numbers.uniform(-1, 1, layer.bias.shape)))
        return net

    def trainer_of(net, kvstore='dist_sync', **options):
        numbers = {'learning_rate': 0.5, 'momentum': 0.9, 'wd': 0.01}
        return gluon.Trainer(net.collect_params(), 'sgd', numbers, kvstore=kvstore, **options)

    def train(net, trainer, steps, split, own=slice(None)):
        loss = gluon.loss.ShardedSoftmaxCELoss() if split else gluon.loss.SoftmaxCELoss()
        for step in steps:
            x = nd.array(X[step, own])
            with mx.autograd.record():
                out = loss(net(x.tostype('csr') if split else x), nd.array(Y[step, own]))
            out.backward()
            trainer.step(8)
        return out.asnumpy()

    def values(net, split):
        found = [p._reduce().asnumpy() for p in net._collect_params_with_prefix().values()]
        return [found[0] if split else found[0].T, *found[1:]]

    def far(net, expected):
        return max(float(abs(a - b).max()) for a, b in zip(values(net, True), expected))

    def reference(steps):
        net = build(False)
        last = train(net, trainer_of(net, None), range(steps), False)
        return values(net, False), last
"""
