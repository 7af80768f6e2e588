"""A module whose last layer is divided among contexts and ranks: outputs, parameters and files are those of the module that is not."""
import inspect
import logging
import textwrap

import numpy as np
import pytest

import mxnet as mx
from job_checks import outputs
from mxnet import sym
from mxnet.contrib.svrg_optimization.svrg_module import SVRGModule
from simulated_gpus import gpus

CPUS = [mx.cpu(i) for i in range(3)]


def network(group=None):
    x = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=8, name="body"), act_type="tanh")
    with mx.AttrScope(**({"ctx_group": group} if group else {})):
        return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=11, name="head"), name="softmax")


def module(groups=None, kvstore=None, batch=6, optimizer="adam", ctx=mx.cpu(), saved=None):
    mx.random.seed(3)
    made = mx.mod.Module(network("sharded" if groups else None), context=ctx, group2ctxs=groups)
    made.bind([("data", (batch, 5))], [("softmax_label", (batch,))])
    if saved:
        made.init_params(None, *mx.model.load_checkpoint(saved, 1)[1:])
    else:
        made.init_params(mx.init.Xavier())
    made.init_optimizer(kvstore, optimizer, {"learning_rate": 0.1, "wd": 0.01})
    if saved:
        made.load_optimizer_states(f"{saved}-0001.states")
    return made


def train(made, own=lambda batch: batch, steps=4):
    numbers = np.random.RandomState(0)
    x, y = numbers.uniform(-1, 1, (24, 5)).astype("float32"), numbers.randint(0, 11, 24).astype("float32")
    for i in range(steps):
        rows = own(slice(6 * i, 6 * i + 6))
        made.forward_backward(mx.io.DataBatch([mx.nd.array(x[rows])], [mx.nd.array(y[rows])]))
        made.update()
    return [made.get_outputs()[0].asnumpy(), *(value.asnumpy() for _, value in sorted(made.get_params()[0].items()))]


def close(found, expected):
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(found, expected))


@pytest.mark.parametrize("groups", [{"sharded": CPUS}, [{"sharded": CPUS[:2]}]])
def test_contexts_of_a_process(groups):
    divided = module(groups)
    assert close(train(divided), train(module()))
    bound = {name: array.shape for name, array in divided._exec_group.execs[0].arg_dict.items()}
    assert "head_weight" not in bound and bound["head_weight[1]"] == ((4, 8) if isinstance(groups, dict) else (6, 8))
    assert sorted(divided.get_params()[0]) == ["body_bias", "body_weight", "head_bias", "head_weight"]


def test_files_are_those_of_the_module_that_is_not_divided(tmp_path):
    for name, groups in [("divided", {"sharded": CPUS}), ("whole", None)]:
        made = module(groups)
        train(made)
        made.save_checkpoint(str(tmp_path / name), 1, save_optimizer_states=True)
        made.save_training(tmp_path / f"{name}-training").wait()
    expected = train(module(saved=str(tmp_path / "whole")))
    for name in "whole", "divided":
        for groups in None, {"sharded": CPUS[:2]}:
            assert close(train(module(groups, saved=str(tmp_path / name))), expected)
    going_on = [module(groups) for groups in (None, {"sharded": CPUS[:2]})]
    for name, made in zip(("divided", "whole"), going_on):
        assert made.resume_training(tmp_path / f"{name}-training").exact
    assert close(*map(train, going_on))


def test_multipliers_and_fixed_parameters_have_the_names_of_the_unsplit_ones():
    found = []
    for groups in None, {"sharded": CPUS}:
        made = mx.mod.Module(network("sharded" if groups else None), fixed_param_names=["head_bias"], group2ctxs=groups)
        made.bind([("data", (6, 5))], [("softmax_label", (6,))], grad_req={"body_bias": "null"})
        mx.random.seed(3)
        made.init_params(mx.init.Normal(1))
        optimizer = mx.optimizer.SGD(learning_rate=0.5, rescale_grad=1 / 6)
        optimizer.set_lr_mult({"head_weight": 0.1})
        made.init_optimizer(None, optimizer)
        found.append(train(made))
    assert close(*found)


def test_buckets_share_the_parts():
    def bucketed(groups):
        def generate(width):
            x = sym.mean(sym.Embedding(sym.var("data"), input_dim=5, output_dim=8, name="table"), axis=1)
            with mx.AttrScope(ctx_group="sharded"):
                return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=11, name="head"), name="softmax"), ["data"], ["softmax_label"]
        mx.random.seed(3)
        made = mx.mod.BucketingModule(generate, 3, group2ctxs=groups)
        made.bind([("data", (4, 3))], [("softmax_label", (4,))])
        made.init_params(mx.init.Normal(1))
        made.init_optimizer(None, "adam", {"learning_rate": 0.1})
        for width in 3, 2, 3, 2:
            data, label = mx.nd.ones((4, width)), mx.nd.arange(4)
            made.forward_backward(mx.io.DataBatch([data], [label], bucket_key=width, provide_data=[("data", data.shape)],
                                                  provide_label=[("softmax_label", (4,))]))
            made.update()
        return [value.asnumpy() for _, value in sorted(made.get_params()[0].items())]
    assert close(bucketed({"sharded": CPUS}), bucketed(None))


def test_each_gpu_has_its_rows():
    expected = train(module())
    with gpus():
        divided = module({"sharded": [mx.gpu(0), mx.gpu(1)]}, ctx=mx.gpu(0))
        found = train(divided)
        arrays = divided._exec_group.execs[0].arg_dict
        assert [arrays[f"head_weight[{i}]"].ctx for i in range(2)] == [mx.gpu(0), mx.gpu(1)]
        states = divided._exec_group.split.updater.states
        numbers = map(divided._exec_group.split.number, divided._exec_group.split.parts["head_weight"])
        assert [states[number][0].ctx for number in numbers] == [mx.gpu(0), mx.gpu(1)]
        with pytest.raises(mx.MXNetError, match=r"an executor has a weight in one array, which gpu\(0\), gpu\(1\) do not share; use mx.mod.Module"):
            network("sharded").simple_bind(mx.gpu(0), group2ctx={"sharded": [mx.gpu(0), mx.gpu(1)]}, data=(2, 5))
    assert close(found, expected)


def test_a_list_with_several_contexts_of_the_module_keeps_its_meaning():
    made = module({"sharded": [mx.cpu(2), mx.cpu(3)]}, ctx=[mx.cpu(0), mx.cpu(1)], kvstore="device")
    assert [executor.arg_dict["head_weight"].ctx for executor in made._exec_group.execs] == [mx.cpu(2), mx.cpu(3)]
    assert close(train(made), train(module()))


def test_what_modules_refuse():
    with pytest.raises(mx.MXNetError, match=r"divided among cpu\(0\), cpu\(1\), cpu\(2\), which a module on one context does; received the contexts"):
        module([{"sharded": CPUS}] * 2, ctx=CPUS[:2])
    with pytest.raises(mx.MXNetError, match="head_weight: the network has 11 rows, received a value of shape"):
        module({"sharded": CPUS}).set_params({"head_weight": mx.nd.zeros((10, 8))}, {}, allow_missing=True)
    with pytest.raises(mx.MXNetError, match="as_torch: head_weight, head_bias are divided among contexts or ranks"):
        module({"sharded": CPUS}).as_torch()
    special = SVRGModule(network("sharded"), update_freq=1, group2ctxs={"sharded": CPUS}, logger=logging)
    special.bind([("data", (6, 5))], [("softmax_label", (6,))])
    special.init_params()
    with pytest.raises(mx.MXNetError, match="SVRGModule: head_weight, head_bias are divided"):
        special.init_optimizer()


@pytest.mark.parametrize("optimizer, reason", [("lamb", "LAMB needs the norms of whole weights"), ("lars", "LARS needs the norms of whole weights"),
                                               ("nadam", "Nadam advances its schedule with each array")])
def test_optimizers_that_depend_on_the_division_are_refused(optimizer, reason):
    with pytest.raises(mx.MXNetError, match=f"head_weight, head_bias: divided by rows, and {reason}; use an optimizer that updates each element"):
        module({"sharded": CPUS}, optimizer=optimizer)
    train(module({"sharded": CPUS[:1]}, optimizer=optimizer))


def test_ranks():
    shared = "from mxnet import sym\n" + "".join(map(inspect.getsource, (network, module, train, close)))
    found = outputs(shared + textwrap.dedent("""
    import os, tempfile
    kv = mx.kv.create('dist_sync')
    own = lambda batch: slice(batch.start + 3 * kv.rank, batch.start + 3 * kv.rank + 3)
    expected = train(module())
    mine = [expected[0][3 * kv.rank:3 * kv.rank + 3], *expected[1:]]
    for groups, in_store in [({'sharded': mx.cpu()}, '1'), ({'sharded': CPUS}, '0')]:
        os.environ['MXNET_UPDATE_ON_KVSTORE'] = in_store
        made = module(groups, mx.kv.create('dist_sync'), 3)
        print(close(train(made, own), mine), made._exec_group.execs[0].arg_dict['head_weight[0]'].shape)
    saved = f'{tempfile.mkdtemp()}/saved'
    made.save_checkpoint(saved, 1, save_optimizer_states=True)
    expected = train(module(saved=saved))
    os.environ['MXNET_UPDATE_ON_KVSTORE'] = '1'
    print(close(train(module({'sharded': mx.cpu()}, mx.kv.create('dist_sync'), 3, saved=saved), own)[1:], expected[1:]))
    try:
        module({'sharded': mx.cpu()}, None, 3)
    except mx.MXNetError as error:
        print('2 ranks, which need a kvstore in step' in str(error))
    """).replace("CPUS", "[mx.cpu(0), mx.cpu(1)]"))
    assert found == [["True (5, 8)", "True (2, 8)", "True", "True"], ["True (6, 8)", "True (3, 8)", "True", "True"]]
