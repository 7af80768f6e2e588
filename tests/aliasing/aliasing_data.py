"""Programs whose arrays may share memory: functions written in Python, optimizers, stores, data and images; see `aliasing_cases`."""
import copy
import pickle

import numpy as np
from aliasing_cases import array, flat, named, program, sequence, several

import mxnet as mx

nn = mx.gluon.nn


# -- operators and functions in Python -----------------------------------------------------------------------------------
class _Handing(mx.operator.CustomOp):
    seen = {}

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])
        _Handing.seen = {"in": in_data[0], "out": out_data[0]}

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("handing_aliasing")
class _HandingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return _Handing()


@program
def custom_operator():
    given = array(2, 3)
    out = mx.nd.Custom(given, op_type="handing_aliasing")
    out.wait_to_read()
    return {"x": given, "y": out}


@program
def custom_operator_in_a_graph():
    executor = mx.sym.Custom(mx.sym.var("x"), op_type="handing_aliasing").bind(mx.cpu(), {"x": array(2, 3)})
    out = executor.forward()[0]
    out.wait_to_read()
    return {"x": executor.arg_dict["x"], "y": out}


class _Function(mx.autograd.Function):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)

    def backward(self, dy):
        return dy


@several({"x": lambda x: x, "reshape": lambda x: x.reshape((-1,)), "flatten": lambda x: x.flatten(), "row": lambda x: x[0:1],
    "twice": lambda x: (x * 2, x * 2)})
def autograd_function(function):
    given = array(2, 3)
    given.attach_grad()
    with mx.autograd.record():
        out = _Function(function)(given)
    return {"x": given, **named("y", flat(out))}


@program
def autograd_function_not_recorded():
    given = array(2, 3)
    return {"x": given, **named("y", flat(_Function(lambda x: x)(given)))}


# -- optimizers and stores -----------------------------------------------------------------------------------------------
OPTIMIZERS = {name: name for name in ("sgd", "nag", "adam", "adagrad", "adadelta", "rmsprop", "ftrl", "ftml", "nadam", "adamax", "signum", "dcasgd",
"sgld", "lamb",
                                      "lars", "lbsgd", "test")}
MOMENTUM = ("sgd", "nag", "signum", "dcasgd", "lbsgd", "lars")


@several(OPTIMIZERS)
def states_of_an_optimizer(name):
    optimizer = mx.optimizer.create(name, **({"momentum": 0.9} if name in MOMENTUM else {}))
    weight = array(2, 3)
    return {"weight": weight, **named("state", flat(optimizer.create_state_multi_precision(0, weight)))}


@several(OPTIMIZERS)
def states_of_an_optimizer_in_half_precision(name):
    options = {"momentum": 0.9} if name in MOMENTUM else {}
    optimizer = mx.optimizer.create(name, multi_precision=True, **options)
    weight = array(2, 3, dtype="float16")
    return {"weight": weight, **named("state", flat(optimizer.create_state_multi_precision(0, weight)))}


@several(OPTIMIZERS)
def updated(name):
    optimizer = mx.optimizer.create(name, **({"momentum": 0.9} if name in MOMENTUM else {}))
    weight, gradient = array(2, 3), array(2, 3)
    updater = mx.optimizer.get_updater(optimizer)
    updater(0, gradient, weight)
    updater(0, gradient, weight)
    return {"weight": weight, "gradient": gradient, **named("state", flat(updater.states[0]))}


@program
def trainer():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    weight = net.weight.data()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    for _ in range(2):
        with mx.autograd.record():
            out = net(array(2, 3))
        out.backward()
        trainer.step(1)
    return {"weight": weight, "data": net.weight.data(), "grad": net.weight.grad(), "out": out,
        **named("state", flat(list(trainer._updaters[0].states.values())))}


@several({"local": "local", "device": "device"})
def store(kind):
    kv, given, pulled, pushed = mx.kv.create(kind), array(2, 3), mx.nd.zeros((2, 3)), array(2, 3)
    kv.init("k", given)
    kv.pull("k", out=pulled)
    kv.push("k", pushed)
    again = mx.nd.zeros((2, 3))
    kv.pull("k", out=again)
    both = array(2, 3)
    kv.pushpull("k", both)
    mx.nd.waitall()
    return {"given": given, "pulled": pulled, "pushed": pushed, "again": again, "both": both}


@program
def store_broadcasts():
    kv, given, out = mx.kv.create("local"), array(2, 3), [mx.nd.zeros((2, 3)), mx.nd.zeros((2, 3))]
    kv.broadcast("k", given, out)
    return {"given": given, **named("out", out)}


# -- data ----------------------------------------------------------------------------------------------------------------
@several({"pad": "pad", "discard": "discard", "roll_over": "roll_over"})
def array_iterator(last):
    given = array(4, 3)
    batches = [b.data[0] for b in mx.io.NDArrayIter(given, batch_size=2, last_batch_handle=last)]
    return {"given": given, **named("batch", batches)}


@program
def shuffled_array_iterator():
    given = array(4, 3)
    batches = [b.data[0] for b in mx.io.NDArrayIter(given, batch_size=2, shuffle=True)]
    return {"given": given, **named("batch", batches)}


@program
def padded_array_iterator():
    given = array(3, 3)
    batches = [b.data[0] for b in mx.io.NDArrayIter(given, batch_size=2)]
    return {"given": given, **named("batch", batches)}


@program
def array_dataset():
    given, label = array(4, 3), array(4)
    dataset = mx.gluon.data.ArrayDataset(given, label)
    return {"given": given, "label": label, **named("item", flat(dataset[1]))}


@program
def dataset_of_one():
    given = array(4, 3)
    dataset = mx.gluon.data.SimpleDataset(given)
    return {"given": given, "item": dataset[1], "taken": dataset.take(2)[1], "changed": dataset.transform(lambda v: v)[1]}


@program
def loader():
    given = array(4, 3)
    return {"given": given, **named("batch", list(mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(given), batch_size=2)))}


@program
def loader_of_whole_batches():
    given = array(4, 3)
    return {"given": given, **named("batch", list(mx.gluon.data.DataLoader(given, batch_size=1)))}


@several({"array": lambda a: mx.nd.array(a), "copy": lambda a: a.copy(), "NDArray": lambda a: mx.nd.NDArray(a.handle),
    "dlpack": lambda a: mx.nd.from_dlpack(mx.nd.to_dlpack_for_write(a)),
          "dlpack for reading": lambda a: mx.nd.from_dlpack(mx.nd.to_dlpack_for_read(a)), "numpy": lambda a: mx.nd.array(a.asnumpy()),
          "np": lambda a: mx.np.array(a.as_np_ndarray()),
          "copy.copy": lambda a: copy.copy(a), "copy.deepcopy": lambda a: copy.deepcopy(a), "pickle": lambda a: pickle.loads(pickle.dumps(a)),
          "empty like": lambda a: mx.nd.zeros_like(a), "iterated": lambda a: list(a), "reversed": lambda a: a[::-1],
          "row of row": lambda a: a[0][1:2], "column": lambda a: a[:, 1],
          "element": lambda a: a[0, 1], "part of a row": lambda a: a[0, 1:3], "every other row": lambda a: a[::2], "rows": lambda a: a[0:2],
          "last": lambda a: a[-1],
          "ellipsis": lambda a: a[...], "new axis": lambda a: a[None], "new axis behind": lambda a: a[:, None], "by a list": lambda a: a[[0, 1]],
          "by an array": lambda a: a[mx.nd.array([0, 1])],
          "by NumPy's array": lambda a: a[np.array([0, 1])], "by a mask": lambda a: mx.nd.contrib.boolean_mask(a, mx.nd.array([1, 1, 0, 0])),
          "reshape": lambda a: a.reshape((3, 4)),
          "reshape of reshape": lambda a: a.reshape((3, 4)).reshape((-1,)), "reshape of rows": lambda a: a[1:3].reshape((-1,)),
          "rows of a reshape": lambda a: a.reshape((2, 6))[1],
          "reshape of a column": lambda a: a[:, 1:2].reshape((-1,)), "T": lambda a: a.T, "T of a vector": lambda a: a[0].T,
          "detach of rows": lambda a: a[0:2].detach()})
def derived(function):
    given = array(4, 3)
    return {"x": given, **named("y", flat(function(given)))}


@several({"row": lambda a: a[0], "rows": lambda a: a[0:2], "column": lambda a: a[:, 1], "element": lambda a: a[0, 1],
    "every other row": lambda a: a[::2], "all": lambda a: a[:], "ellipsis": lambda a: a[...],
          "nothing": lambda a: a[()], "new axis": lambda a: a[None], "new axis behind": lambda a: a[:, None], "by a list": lambda a: a[[0, 1]],
          "by an array": lambda a: a[mx.np.array([0, 1])],
          "by a mask": lambda a: a[a > 2], "reversed": lambda a: a[::-1], "iterated": lambda a: list(a), "reshape": lambda a: a.reshape(3, 4),
          "reshape_view": lambda a: a.reshape_view(3, 4),
          "ravel": lambda a: a.ravel() if hasattr(a, "ravel") else a.flatten(), "T": lambda a: a.T, "transpose": lambda a: a.transpose(0, 1),
          "row of row": lambda a: a[0][1:2],
          "as_nd_ndarray": lambda a: a.as_nd_ndarray().reshape((-1,)), "array": lambda a: mx.np.array(a),
          "astype": lambda a: a.astype("float32", copy=False), "astype copy": lambda a: a.astype("float32"),
          "copy": lambda a: a.copy(), "deepcopy": lambda a: copy.deepcopy(a), "squeeze": lambda a: a[None].squeeze(),
          "flatten": lambda a: a.flatten(), "swapaxes": lambda a: a.swapaxes(0, 0),
          "repeat": lambda a: a.repeat(1, 0), "scalar": lambda a: mx.np.array(3.0).reshape(()), "detach": lambda a: a[0:2].detach()})
def derived_numpy(function):
    with mx.util.np_shape(True), mx.util.np_array(True):
        given = mx.np.array(sequence(4, 3))
        return {"x": given, **named("y", flat(function(given)))}


@several({"row": lambda a: a[0], "rows": lambda a: a[0:2], "reshape": lambda a: a.reshape((-1,)), "ellipsis": lambda a: a[...],
    "new axis": lambda a: a[None], "detach": lambda a: a.detach(),
          "flatten": lambda a: a.flatten(), "T": lambda a: a[0].T, "column": lambda a: a[:, 1], "stop": lambda a: mx.nd.BlockGrad(a),
          "all": lambda a: a[:], "inplace": lambda a: a.expand_dims(0, inplace=True)})
def derived_recorded(function):
    given = array(4, 3)
    given.attach_grad()
    with mx.autograd.record():
        out = function(given)
    return {"x": given, **named("y", flat(out)), "grad": given.grad}


# -- images --------------------------------------------------------------------------------------------------------------
AUGMENTERS = {
    "CastAug": lambda: mx.image.CastAug(), "HorizontalFlipAug(0)": lambda: mx.image.HorizontalFlipAug(0),
    "HorizontalFlipAug(1)": lambda: mx.image.HorizontalFlipAug(1),
    "CenterCropAug": lambda: mx.image.CenterCropAug((4, 4)), "ForceResizeAug": lambda: mx.image.ForceResizeAug((4, 4)),
    "ResizeAug": lambda: mx.image.ResizeAug(4),
    "BrightnessJitterAug": lambda: mx.image.BrightnessJitterAug(0.0), "ContrastJitterAug": lambda: mx.image.ContrastJitterAug(0.0),
    "SaturationJitterAug": lambda: mx.image.SaturationJitterAug(0.0),
    "HueJitterAug": lambda: mx.image.HueJitterAug(0.0), "LightingAug": lambda: mx.image.LightingAug(0.0, np.zeros(3), np.zeros((3, 3))),
    "RandomGrayAug(0)": lambda: mx.image.RandomGrayAug(0),
    "ColorNormalizeAug": lambda: mx.image.ColorNormalizeAug(mx.nd.array([0.0, 0, 0]), mx.nd.array([1.0, 1, 1])),
    "SequentialAug": lambda: mx.image.SequentialAug([]),
    "RandomOrderAug": lambda: mx.image.RandomOrderAug([]), "RandomCropAug": lambda: mx.image.RandomCropAug((4, 4)),
}


@several(AUGMENTERS)
def augmenter(make):
    given = array(4, 4, 3)
    return {"x": given, **named("y", flat(make()(given)))}


TRANSFORMS = {
    "Cast": lambda t: t.Cast("float32"), "ToTensor": lambda t: t.ToTensor(), "CenterCrop": lambda t: t.CenterCrop(4),
    "Resize": lambda t: t.Resize(4), "CropResize": lambda t: t.CropResize(0, 0, 4, 4),
    "RandomFlipLeftRight": lambda t: t.RandomFlipLeftRight(), "RandomBrightness": lambda t: t.RandomBrightness(0.0),
    "RandomContrast": lambda t: t.RandomContrast(0.0),
    "RandomSaturation": lambda t: t.RandomSaturation(0.0), "RandomHue": lambda t: t.RandomHue(0.0),
    "RandomColorJitter": lambda t: t.RandomColorJitter(0.0), "RandomLighting": lambda t: t.RandomLighting(0.0),
    "Compose": lambda t: t.Compose([]), "RandomApply": lambda t: t.RandomApply(t.Cast("float32"), 0.0), "Normalize": lambda t: t.Normalize(0.0, 1.0),
}


@several(TRANSFORMS)
def transform(make):
    given = array(3, 4, 4) if make is TRANSFORMS["Normalize"] else array(4, 4, 3)
    return {"x": given, **named("y", flat(make(mx.gluon.data.vision.transforms)(given)))}


@several({"imresize": lambda s: mx.image.imresize(s, 4, 4), "resize_short": lambda s: mx.image.resize_short(s, 4),
    "fixed_crop": lambda s: mx.image.fixed_crop(s, 0, 0, 4, 4),
          "fixed_crop of rows": lambda s: mx.image.fixed_crop(s, 0, 0, 4, 2), "center_crop": lambda s: mx.image.center_crop(s, (4, 4))[0],
          "random_crop": lambda s: mx.image.random_crop(s, (4, 4))[0],
          "color_normalize": lambda s: mx.image.color_normalize(s, mx.nd.array([0.0, 0, 0])),
          "copyMakeBorder": lambda s: mx.image.copyMakeBorder(s, 0, 0, 0, 0)})
def image_function(function):
    given = array(4, 4, 3)
    return {"x": given, **named("y", flat(function(given)))}
