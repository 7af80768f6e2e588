"""Gradients that go out during backward, in real processes: how many are under way when it ends, and that the weights are those of sending later."""
from job_checks import outputs

_NETWORK = """
    numbers = np.random.RandomState(kv.rank)
    X, Y = numbers.rand(8, 8, 50).astype('float32'), numbers.randint(0, 10, (8, 8))

    class Later(type(kv)):
        '''Sends everything in the step.'''
        def _expect(self, names, arrays):
            return None
"""


def test_a_changed_gradient_is_sent_again_and_all_workers_give_up_sending_early():
    found = outputs(_NETWORK + """
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    def train(store, change, **options):
        mx.random.seed(3)
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Dense(1100, activation='tanh', in_units=50), mx.gluon.nn.Dense(1000, in_units=1100), mx.gluon.nn.Dense(10, in_units=1000))
        net.initialize(mx.init.Xavier())
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', optimizer_params={'learning_rate': 0.1, 'momentum': 0.9}, kvstore=store, **options)
        under_way = []
        for step in range(6):
            with mx.autograd.record():
                out = loss(net(mx.nd.array(X[step])), mx.nd.array(Y[step]))
            out.backward(retain_graph=True)
            change(step, net, out)
            under_way.append(len(store._overlap._flights))
            trainer.step(16)
        return [p.data().asnumpy() for p in net.collect_params().values()], under_way

    def clip(step, net, out):
        if step == 3 and kv.rank == 1:
            mx.gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], 0.01)

    def again(step, net, out):
        if step == 3:
            out.backward()

    for options in {}, {'update_on_kvstore': False}:
        for change in (lambda *_: None), clip, again:
            weights, under_way = train(mx.kv.create('dist_sync'), change, **options)
            expected, _ = train(Later('dist_sync'), change, **options)
            print(under_way, all((a == b).all() for a, b in zip(weights, expected)))
    """, kind="dist_sync")
    assert found == [["[0, 0, 3, 3, 3, 3] True", "[0, 0, 3, 3, 0, 0] True", "[0, 0, 3, 3, 0, 0] True"] * 2] * 2


def test_writing_one_gradient_leaves_those_that_are_sent_unchanged():
    """The sums of small gradients come in one piece of memory; the next gradients are copied to it, some while others are in flight."""
    found = outputs(_NETWORK + """
    class Kept(mx.autograd.Function):
        '''Has a gradient that it goes on to use, so that it is copied.'''
        def __init__(self, gradient):
            super().__init__()
            self.gradient = gradient
        def forward(self, x, weight):
            return x + weight[0]
        def backward(self, head):
            return head, self.gradient

    def train(store):
        sizes = [3, 5, 300_000]
        weights = [mx.gluon.Parameter(f'w{i}', shape=size, init='ones') for i, size in enumerate(sizes)]
        for weight in weights:
            weight.initialize()
        kept = [mx.nd.ones(size) * (i + 1 + kv.rank) for i, size in enumerate(sizes)]
        trainer = mx.gluon.Trainer(weights, 'sgd', {'learning_rate': 0.25}, kvstore=store, update_on_kvstore=False)
        store.keeps_sums = False  # as in a store that the trainer makes
        under_way = []
        for step in range(5):
            with mx.autograd.record():
                x = mx.nd.zeros(1)
                for i in 1, 2, 0:  # the gradients come in the order 0, 2, 1
                    x = Kept(kept[i])(x, weights[i].data())
            x.backward()
            under_way.append(len(store._overlap._flights))
            trainer.step(1)
        return [w.data()[-1].asscalar().item() for w in weights], [w.grad()[-1].asscalar().item() for w in weights], under_way

    print(*train(mx.kv.create('dist_sync')))
    print(*train(Later('dist_sync'))[:2])
    """, kind="dist_sync")
    values = "[-2.75, -5.25, -7.75] [3.0, 5.0, 7.0]"
    assert found == [[f"{values} [0, 0, 3, 3, 3]", values]] * 2


def test_gradients_travel_in_their_order_in_memory_if_all_workers_have_the_same():
    found = outputs(_NETWORK + """
    from mxnet.ndarray import memory_format
    images, loss = numbers.rand(8, 4, 64, 8, 8).astype('float32'), mx.gluon.loss.SoftmaxCrossEntropyLoss()
    def train(store, alike, **options):
        mx.random.seed(3)
        net = mx.gluon.nn.HybridSequential()
        net.add(*[mx.gluon.nn.Conv2D(channels, 3, in_channels=64, use_bias=False) for channels in (64, 64, 10)])
        net.add(mx.gluon.nn.GlobalAvgPool2D(), mx.gluon.nn.Flatten())
        net.initialize(mx.init.Xavier())
        weights = [p.data() for p in net.collect_params().values()]
        trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.1, 'momentum': 0.9}, kvstore=store, **options)
        for step in range(6):
            with mx.autograd.record():
                out = loss(net(mx.nd.array(images[step])), mx.nd.array(Y[step][:4]))
            out.backward()
            for weight in weights:
                order = memory_format.standard if kv.rank and (not alike or step == 4) else memory_format.channels_last
                order(weight.grad)
            trainer.step(8)
        return [w.asnumpy() for w in weights], len(store._overlap._last)

    for options in {}, {'update_on_kvstore': False}:
        for alike in True, False:
            weights, last = train(mx.kv.create('dist_sync'), alike, **options)
            expected, _ = train(Later('dist_sync'), alike, **options)
            print(last, all((a == b).all() for a, b in zip(weights, expected)))
    """, kind="dist_sync")
    assert found == [["3 True", "0 True"] * 2] * 2


def test_module_and_other_stores():
    found = outputs(_NETWORK + """
    net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=1100, name='a')
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type='tanh'), num_hidden=1000, name='b')
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=10, name='c'), name='softmax')
    def train(store, context=mx.cpu(), fp16=False):
        mx.random.seed(3)
        module = mx.mod.Module(net, context=context, compression_params={'type': 'fp16'} if fp16 else None)
        module.bind([('data', (8, 50))], [('softmax_label', (8,))])
        module.init_params(mx.init.Xavier())
        module.init_optimizer(store, 'adam')
        under_way = []
        for step in range(5):
            module.forward_backward(mx.io.DataBatch([mx.nd.array(X[step])], [mx.nd.array(Y[step])]))
            under_way.append(len(store._overlap._flights))
            if step == 3 and store.type == 'dist_sync':  # of other keys: nothing is lost, and nothing goes out early from then on
                store.init('other', mx.nd.zeros(1))
                store.push('other', mx.nd.ones(1))
            module.update()
        return [a.asnumpy() for a in module.get_params()[0].values()], under_way

    for kind, options in [('dist_sync', {}), ('dist_device_sync', {'context': [mx.cpu(0), mx.cpu(1)]}), ('dist_device_sync', {'fp16': True}),
                          ('horovod', {}), ('p3', {})]:
        store = mx.kv.create(kind)
        weights, under_way = train(store, **options)
        class Later(type(store)):
            def _expect(self, names, arrays):
                return None
        expected, _ = train(Later(kind), **options)
        print(under_way, all((a == b).all() for a, b in zip(weights, expected)))
    """, kind="dist_sync")
    assert found == [["[0, 0, 3, 3, 0] True", *["[0, 0, 3, 3, 3] True"] * 4]] * 2
