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
