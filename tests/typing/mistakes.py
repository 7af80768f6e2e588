"""Mistakes that users make: a type checker finds each line that says `wrong`, and no other. See tests/test_typing.py."""
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


def arrays(x: mx.nd.NDArray) -> None:
    x.asnumpi()  # wrong: misspelt
    mx.nd.relu(x).sum(axs=1)  # wrong: no such keyword
    mx.nd.Convolution(x, x, kernel=(3, 3), no_bias=True)  # wrong: num_filter is missing
    mx.nd.Activation(x, act_type="rellu")  # wrong: not one of the choices
    mx.nd.clip(x, "0", 1)  # wrong: a number is expected
    x + "1"  # wrong: neither array nor number
    count: int = x.max()  # wrong: an array
    mx.nd.sofmax(x, count)  # wrong: misspelt
    mx.nd.zeros(shap=(2, 3))  # wrong: no such keyword


def networks(x: mx.nd.NDArray) -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense("10"))  # wrong: a number is expected
    nn.Conv2D(8)  # wrong: kernel_size is missing
    net.initialise()  # wrong: misspelt
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    trainer.step()  # wrong: batch_size is missing
    gluon.loss.L3Loss()  # wrong: misspelt
    gluon.data.DataLoader([x], batch_size="4")  # wrong: a number is expected
    gluon.dat.DataLoader([x])  # wrong: misspelt


def symbols() -> None:
    data = mx.sym.var("data")
    out = mx.sym.FullyConnected(data, name="fc")  # wrong: num_hidden is missing
    mx.sym.SoftmaxOutput(out, 3)  # wrong: not a Symbol
    out.list_argument()  # wrong: misspelt
    out.infer_shapes(data=(1, 2))  # wrong: misspelt
    mx.mod.Module(out, contexts=mx.cpu())  # wrong: no such keyword
    mx.mod.Module(out).fit("train", num_epoch=1)  # wrong: an iterator is expected
    executor = out.bind(mx.cpu(), {"data": mx.nd.ones((2, 2))})
    executor.foward()  # wrong: misspelt
    mx.io.NDArrayIter(batch_size=4)  # wrong: data is missing
    mx.gluno  # wrong: misspelt


def numpy_arrays() -> None:
    x = mx.np.zeros((2, 3))
    x.sum(axs=0)  # wrong: no such keyword
    mx.np.zeross((2, 3))  # wrong: misspelt
    flat: int = x.reshape(-1)  # wrong: an array
    x.reshape(flat).astype()  # wrong: dtype is missing
    total: str = (x + 1).sum()  # wrong: an array
    mx.npx.relu(total)  # wrong: not an array
