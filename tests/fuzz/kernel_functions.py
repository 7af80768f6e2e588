"""What the rest of the program calls of the kernels, with gradients, and what torch computes instead."""
import contextlib

import cv2
import numpy as np
import torch

from mxnet import MXNetError
from mxnet.kernels.conv import winograd
from mxnet.kernels.gemm import conv_gemm
from mxnet.kernels.image import nchw_to_nhwc, transform
from mxnet.kernels.memory import gather_scatter
from mxnet.kernels.nn import max_pooling, nms, recurrent, roi_pooling
from mxnet.kernels.runtime import contract
from mxnet.ops.nn import training_layers
from mxnet.ops.spatial import boxes
from mxnet.ops.spatial import regions as region_operators

from . import sizes
from .arrays import INTEGERS, described
from .kernel_checks import Wrong, compare, kernels_for_all, on_torch

FUNCTIONS = {}


def _function(make):
    """Registers ``make(rng)``, which describes arrays and attributes by name, and the function below it that runs them."""
    def register(run):
        FUNCTIONS[run.__name__.strip("_")] = make, run
        return run
    return register


def _with_gradients(function, arrays, wanted, heads=1):
    """Results and gradients of the arrays named in `wanted`; the gradients that these begin with follow from the shapes."""
    arrays = {k: t.detach().clone().requires_grad_() if k in wanted and t is not None and t.is_floating_point() else t for k, t in arrays.items()}
    results = function(arrays)
    given = [(r, torch.linspace(-1, 1, r.numel(), dtype=r.dtype).view(r.shape)) for r in results[:heads] if r.requires_grad]
    inputs = [t for k, t in arrays.items() if k in wanted and t is not None and t.requires_grad]
    if not given or not inputs:
        return results
    found = torch.autograd.grad([r for r, _ in given], inputs, [g for _, g in given], allow_unused=True)
    return [*results, *found]


def _describe_batch_norm(rng):
    names = sizes.normalized(rng)
    shape, vector = [names[k] for k in "nchw"], [names["c"]]
    arrays = {"data": described("float32", shape, rng, rng.choice(("last", "last", "plain"))), "gamma": described("float32", vector, rng),
              "beta": described("float32", vector, rng), "moving_mean": described("float32", vector, rng),
              "moving_var": described("float32", vector, rng, low=1, high=3),
              "residual": rng.choice((None, described("float32", shape, rng, rng.choice(("last", "plain")))))}
    return arrays, {"relu": rng.random() < 0.5, "fix_gamma": rng.random() < 0.5, "eps": 1e-3, "momentum": 0.8}


@_function(_describe_batch_norm)
def _batch_norm(arrays, attributes, threads, compares):
    def run(a):
        a = {**a, "moving_mean": made_again(a["moving_mean"]), "moving_var": made_again(a["moving_var"])}
        return [training_layers.batch_norm(**a, training=True, **attributes), a["moving_mean"], a["moving_var"]]

    wanted = ("data", "beta", "residual", *(() if attributes["fix_gamma"] else ("gamma",)))
    with kernels_for_all(threads):
        found = _with_gradients(run, arrays, wanted)
    # One row has no variance, and what depends on it is noise.
    if compares and arrays["data"].numel() // arrays["data"].shape[1] > 8 and not attributes["relu"]:
        with on_torch():
            compare(found, _with_gradients(run, arrays, wanted), "batch_norm", 2e-3)


def made_again(tensor):
    """A copy of what is written to."""
    return None if tensor is None else tensor if tensor.is_meta or tensor.is_sparse else tensor.clone(memory_format=torch.preserve_format)


def _describe_convolution(rng):
    names = sizes.framed(rng) if rng.random() < 0.2 else sizes.convolved(rng)
    if rng.random() < 0.1:
        names["c"] = 8
    arrays = {"data": described("float32", [names[k] for k in "nchw"], rng, "last"),
              "weight": described("float32", [names[k] for k in "kcrs"], rng, "last"),
              "bias": described("float32", [names["k"]], rng) if names["biased"] else None}
    return arrays, {"stride": [names["stride_h"], names["stride_w"]], "pad": [names["pad_h"], names["pad_w"]],
                    "dilate": [names["dilate_h"], names["dilate_w"]], "kernel": [names["r"], names["s"]], "num_filter": names["k"],
                    "no_bias": not names["biased"]}


@_function(_describe_convolution)
def _convolution(arrays, attributes, threads, compares):
    wanted = ("data", "weight", "bias")
    with kernels_for_all(threads):
        found = _with_gradients(lambda a: [training_layers.ConvolutionLayer(exact=True)(**a, **attributes)], arrays, wanted)
    if compares:
        expected = _with_gradients(lambda a: [torch.conv2d(*(None if t is None else t.double() for t in a.values()),
                                                           *(attributes[k] for k in ("stride", "pad", "dilate")))], arrays, wanted)
        compare(found, expected, "convolution")


def _describe_winograd(rng):
    name = rng.choice(sorted(winograd.FORMS))
    taps = winograd.FORMS[name].taps
    names = sizes.squares(rng, taps)
    turned = bool(names["turned"])
    return {"data": described("float32", [names[k] for k in "nchw"], rng, "last"),
            "weight": described("float32", [names[k] for k in ("ck" if turned else "kc")] + [*taps], rng, "last"),
            "bias": described("float32", [names["k"]], rng)}, \
        {"name": name, "pad": [names["pad_h"], names["pad_w"]], "turned": turned}


@_function(_describe_winograd)
def _winograd(arrays, attributes, threads, compares):
    with kernels_for_all(threads):
        found = winograd.run(**arrays, **attributes)
    if compares:
        data, weight, bias = (t.double() for t in arrays.values())
        if attributes["turned"]:
            weight = weight.transpose(0, 1).flip(2, 3)
        compare([found], [torch.conv2d(data, weight, bias, 1, attributes["pad"])], "winograd")


def _describe_dense(rng):
    names = sizes.product(rng)
    return {"rows": described("float32", [names["n"], names["c"]], rng, rng.choice(("plain", "turned"))),
            "weight": described("float32", [names["k"], names["c"]], rng, rng.choice(("plain", "turned"))),
            "bias": described("float32", [names["k"]], rng), "dout": described("float32", [names["n"], names["k"]], rng)}, {}


@_function(_describe_dense)
def _dense(arrays, attributes, threads, compares):
    rows, weight, bias, dout = arrays.values()
    with kernels_for_all(threads):
        found = [conv_gemm.forward(rows, weight, bias), conv_gemm.backward_data(dout, weight), conv_gemm.backward_weight(dout, rows)]
    if compares:
        compare(found, [rows.double() @ weight.double().t() + bias, dout.double() @ weight.double(), dout.double().t() @ rows.double()], "dense")


def _describe_recurrent(rng):
    names, layers, directions, mode = sizes.steps(rng), rng.choice((1, 1, 2)), rng.choice((1, 2)), rng.choice(sorted(recurrent._KERNELS))
    width, units, gates = rng.choice((1, 5, 16, 32)), names["u"], recurrent._GATES[mode]
    # A projection; of as many as units torch thinks that there is none.
    handed = rng.choice([n for n in (0, 32, 64) if n != units]) if mode == "lstm" and units % 32 == 0 else 0
    size = handed or units
    arrays = {"data": described("float32", [names["t"], names["b"], width], rng),
              "hidden": described("float32", [layers * directions, names["b"], size], rng)}
    if mode == "lstm":
        arrays["cell"] = described("float32", [layers * directions, names["b"], units], rng)
    for i in range(layers * directions):
        inputs = width if i < directions else directions * size
        shapes = [gates * units, inputs], [gates * units, size], [gates * units], [gates * units], *[[handed, units]] * bool(handed)
        for j, shape in enumerate(shapes):
            arrays[f"{i}.{j}"] = described("float32", shape, rng)
    return arrays, {"layers": layers, "directions": directions, "mode": mode, "each": len(shapes)}


@_function(_describe_recurrent)
def _recurrent(arrays, attributes, threads, compares):
    layers, directions, mode = attributes["layers"], attributes["directions"], attributes["mode"]
    compares = compares and mode != "rnn_relu"  # a gradient at its kink is decided by the last digit
    first = 3 if mode == "lstm" else 2
    # Weights of the size that initializers give: where gates saturate, the last digits decide.
    arrays = {k: t * 0.1 if "." in k and t is not None and t.is_floating_point() and not t.is_sparse else t for k, t in arrays.items()}

    def run(a):
        tensors = list(a.values())
        each = attributes["each"]
        cells = [tensors[i:i + each] for i in range(first, len(tensors), each)]
        if any(t is None for t in tensors):
            raise MXNetError("the operator refuses this")
        if recurrent.suits(mode, tensors[0], tensors[1:first], cells, layers, directions):
            out, last = recurrent.run(mode, tensors[0], tensors[1:first], cells, layers, directions)
            return [out, *last]
        if compares:
            raise Wrong("a right case is refused")
        raise MXNetError("torch has this")

    def on_torch(a):
        tensors = [t.double() for t in a.values()]
        return list(getattr(torch._VF, mode)(tensors[0], tensors[1:3] if mode == "lstm" else tensors[1], tensors[first:], True, layers, 0.0, False,
                                             directions == 2, False))

    with kernels_for_all(threads):
        found = _with_gradients(run, arrays, arrays, heads=first)
    if compares:
        compare(found, _with_gradients(on_torch, arrays, arrays, heads=first), mode, 1e-4)


def _describe_image(rng):
    channels, kind = rng.choice((1, 3, 3, 4)), rng.choice(("float32", "float16", "uint8", "int8"))
    height, width, resized = rng.randint(1, 20), rng.randint(1, 40), [rng.randint(1, 30), rng.randint(1, 30)]
    top, left = rng.randrange(height), rng.randrange(width)
    window = [rng.randint(1, side) for side in resized]
    pixels = rng.random() < 0.3
    cut = [height, width, top, left, rng.randint(1, height - top), rng.randint(1, width - left), *resized,
           *(rng.randint(0, side - part) for side, part in zip(resized, window)), rng.randrange(2), rng.randrange(2)]
    if rng.random() < 0.2:
        cut[rng.randrange(10)] = rng.choice(INTEGERS)
    arrays = {"image": described("uint8", [height * width * channels + rng.choice((0, 0, 5))], rng, rng.choice(("plain", "the end")), 0, 255),
              "table": described(kind, [channels, 256], rng, "plain", -100, 100),
              "out": described(kind, [*window, channels] if pixels else [channels, *window], rng, rng.choice(("plain", "the end")), 0, 1)}
    return arrays, {"cut": cut, "pixels": pixels}


@_function(_describe_image)
def _image(arrays, attributes, threads, compares):
    cut, pixels = transform.Cut(*attributes["cut"]), attributes["pixels"]
    data, table, out = arrays.values()
    whole_numbers = all(isinstance(n, int) for n in cut)
    if compares and not (whole_numbers and cut.fits(data.numel(), len(table), *(out.shape[:2] if pixels else out.shape[1:]))):
        with contextlib.suppress(MXNetError):
            transform.finish(data, cut, table, out, pixels)
            raise Wrong(f"{cut} is taken")
        return
    transform.finish(data, cut, table, out, pixels)
    if compares:
        cut = transform.Cut(*map(int, cut))  # True is a number
        whole = data[:cut.height * cut.width * len(table)].view(cut.height, cut.width, len(table)).numpy()
        part = np.ascontiguousarray(whole[cut.top:cut.top + cut.rows, cut.left:cut.left + cut.columns])
        resized = cv2.resize(part, (cut.resized_columns, cut.resized_rows)).reshape(cut.resized_rows, cut.resized_columns, len(table))
        height, width = out.shape[:2] if pixels else out.shape[1:]
        window = resized[cut.crop_top:cut.crop_top + height, cut.crop_left:cut.crop_left + width]
        window = window[:, ::-1] if cut.mirrored else window
        order = [2, 1, 0, 3][:len(table)] if cut.reversed and len(table) > 1 else list(range(len(table)))
        expected = np.stack([table[c].numpy()[window[:, :, source]] for c, source in enumerate(order)], 2 if pixels else 0)
        compare([out], [torch.from_numpy(expected)], "image", 0)


def _describe_interleave(rng):
    names, channels = sizes.image(rng), rng.choice((2, 3, 4))
    order = rng.choice(("plain", "last", "turned"))
    return {"images": described("float32", [names["n"], channels, names["h"], names["w"]], rng, order),
            "out": described("float32", [names["n"], names["h"], names["w"], channels], rng)}, {}


@_function(_describe_interleave)
def _interleave(arrays, attributes, threads, compares):
    if any(t is None for t in arrays.values()):
        return
    nchw_to_nhwc.Interleaver(tuple(arrays["images"].shape), arrays["out"])(arrays["images"])
    if compares:
        compare([arrays["out"]], [arrays["images"].permute(0, 2, 3, 1)], "interleave", 0)


def _describe_rows(rng):
    names = sizes.rows(rng)
    data, others = [names["n"] or 1, names["w"] or 1], [names["k"], names["w"] or 1]
    return {"data": described("float32", data, rng), "index": described("int64", others[:1], rng, low=0, high=data[0] - 1),
            "others": described("float32", others, rng), "chosen": described("bool", data[:1], rng, low=0, high=1),
            "column": described(rng.choice(("float32", "int32", "int64")), data[:1], rng, low=-2, high=data[1] + 1),
            "lengths": described("int64", data[1:], rng, low=-1, high=data[0] + 1)}, {}


@_function(_describe_rows)
def _rows(arrays, attributes, threads, compares):
    def run(a):
        data, index, others, chosen, column, lengths = a.values()
        unique = index.unique()  # of rows that meet torch takes one or the other
        masked = gather_scatter.mask(data.unsqueeze(-1), lengths, 0.5, False)
        if masked is None:
            steps = torch.arange(len(data)).unsqueeze(1)
            masked = torch.where((steps < lengths).unsqueeze(-1), data.unsqueeze(-1), 0.5)
        return [gather_scatter.select(data, index), gather_scatter.chosen(data, chosen), gather_scatter.replace(data, unique, others[:len(unique)]),
                gather_scatter.picked(data, column),
                gather_scatter.nearest(data, column), gather_scatter.scattered(others[:len(unique)], unique, len(data)), gather_scatter.summed(data,
                                                                                                                                               0),
                                                                                                                                               masked]

    if any(t is None for t in arrays.values()):
        return
    wanted = ("data", "others")
    with kernels_for_all(threads):
        found = _with_gradients(run, arrays, wanted, 8)
    if compares:
        with on_torch():
            compare(found, _with_gradients(run, arrays, wanted, 8), "rows", 1e-6)


def _describe_overlaps(rng):
    names = sizes.boxes(rng)
    return {"lhs": described("float32", [names["n"], 4], rng), "rhs": described("float32", [names["m"], 4], rng)}, {}


@_function(_describe_overlaps)
def _overlaps(arrays, attributes, threads, compares):
    lhs, rhs = arrays.values()
    if lhs is None or rhs is None:
        return
    with kernels_for_all(threads):
        found = nms.overlaps(lhs, rhs)
    if compares:
        with _without(contract, "_function"):
            compare([found], [boxes.overlaps(lhs, rhs)], "overlaps", 1e-5)


@contextlib.contextmanager
def _without(module, name):
    """No kernel is there."""
    before = getattr(module, name)
    setattr(module, name, lambda *_: None)
    kept = [(each, dict(each._checked)) for each in contract._contracts]
    for each, _ in kept:
        each.forget()
    try:
        yield
    finally:
        setattr(module, name, before)
        for each, results in kept:
            each._checked.clear()
            each._checked.update(results)


def _describe_suppress(rng):
    n = rng.choice((0, 1, 2, 17, 40))
    return {"boxes": described("float32", [n, 4], rng, rng.choice(("plain", "turned")), 0, 9),
            "classes": rng.choice((None, described(rng.choice(("int64", "float32")), [n], rng, low=0, high=2)))}, \
        {"threshold": rng.choice((0.0, 0.3, 0.5, 1.0)), "border": rng.randrange(2), "limit": rng.choice((None, 0, 1, 7, 1000)),
         "inclusive": rng.random() < 0.5}


@_function(_describe_suppress)
def _suppress(arrays, attributes, threads, compares):
    if any(t is not None and (t.is_meta or t.is_sparse or t.dtype is torch.bfloat16) for t in arrays.values()) or arrays["boxes"] is None:
        return
    given = [None if t is None else t.numpy() for t in arrays.values()]
    found = nms.suppress(given[0], attributes["threshold"], given[1], attributes["border"], attributes["limit"], attributes["inclusive"])
    if compares:
        with np.errstate(all="ignore"):
            expected = boxes._greedy_suppression(given[0], np.float32(attributes["threshold"]), given[1], attributes["border"], attributes["limit"],
                                                 attributes["inclusive"])
        if found.tolist() != expected.tolist():
            raise Wrong(f"suppress: {found.tolist()} is not {expected.tolist()}")


def _describe_max_pool(rng):
    names = sizes.window(rng)
    return {"data": described("float32", [names[k] for k in "nchw"], rng)}, \
        {"kernel": [names["kernel_h"], names["kernel_w"]], "stride": [names["stride_h"], names["stride_w"]],
         "pad": [names["pad_h"], names["pad_w"]], "ceil": bool(names["ceil"])}


@_function(_describe_max_pool)
def _max_pool(arrays, attributes, threads, compares):
    if arrays["data"] is None:
        return
    arguments = attributes["kernel"], attributes["stride"], attributes["pad"], attributes["ceil"]
    with kernels_for_all(threads):
        found = _with_gradients(lambda a: [max_pooling.max_pool2d(a["data"], *arguments)], arrays, ("data",))
        with torch.no_grad():
            plain = max_pooling.max_pool2d(arrays["data"], *arguments)
    if compares:
        expected = _with_gradients(lambda a: [torch.max_pool2d(a["data"], *arguments[:3], 1, arguments[3])], arrays, ("data",))
        compare([*found, plain], [*expected, expected[0]], "max_pool2d", 1e-6)


def _describe_largest(rng):
    names = sizes.maps(rng)
    across = {"top": "p", "bottom": "p", "left": "q", "right": "q"}
    return {"data": described("float32", [names[k] for k in "nchw"], rng), "images": described("int64", [names["r"]], rng, low=-1, high=3),
            **{k: described("int64", [names["r"], names[v]], rng, low=-2, high=11) for k, v in across.items()}}, {}


@_function(_describe_largest)
def _largest(arrays, attributes, threads, compares):
    data, images, *bins = arrays.values()
    if any(t is None for t in arrays.values()):
        return
    limits = [b.clamp(0, s) if b.dim() == 2 and not b.is_sparse else b for b, s in zip(bins, (*data.shape[2:3] * 2, *data.shape[3:4] * 2))]

    def in_torch(maps):
        return region_operators._pool_largest(maps, images, limits[:2], limits[2:])

    def refuse(maps):
        raise MXNetError("torch has this")

    with kernels_for_all(threads):
        found = _with_gradients(lambda a: [roi_pooling.largest(a["data"], images, bins, refuse)], arrays, ("data",))
    if compares:
        compare(found, _with_gradients(lambda a: [in_torch(a["data"])], arrays, ("data",)) if len(images) else found, "largest", 1e-5)


def _describe_weighted(rng):
    names = sizes.maps(rng)
    groups = [names["down"], names["right"]] if rng.random() < 0.5 else None
    if groups:
        names["c"] = names["down"] * names["right"] * names["depth"]
    arrays = {"data": described("float32", [names[k] for k in "nchw"], rng),
              "images": described("int64", [names["r"]], rng, low=0, high=names["n"] - 1),
              "rows": described("float32", [names["r"], names["p"], names["h"]], rng),
              "columns": described("float32", [names["r"], names["q"], names["w"]], rng)}
    return arrays, {"groups": groups}


@_function(_describe_weighted)
def _weighted(arrays, attributes, threads, compares):
    data, images, rows, columns = arrays.values()
    if any(t is None for t in arrays.values()):
        return
    groups = attributes["groups"]

    def refuse(maps):
        raise MXNetError("torch has this")

    def in_torch(maps):
        return region_operators._pool_by_weights(maps, images, rows, columns) if groups is None \
            else region_operators._pool_position_sensitive(maps, images, rows, columns, groups)

    with kernels_for_all(threads):
        found = _with_gradients(lambda a: [roi_pooling.weighted(a["data"], images, rows, columns, groups, refuse)], arrays, ("data",))
    if compares and len(images):
        compare(found, _with_gradients(lambda a: [in_torch(a["data"])], arrays, ("data",)), "weighted")
