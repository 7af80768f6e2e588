"""Targets for the kernels: right arguments, whose results are compared with torch's, and wrong ones, which are refused.

``handles``
    Each kernel's handle, with what its declaration asks for, or something near it.
``functions``
    What the rest of the program calls, with gradients; see `kernel_functions`.
``operators``
    Networks and operators that use kernels, with hostile parameters.
``jpeg``
    Mutated files for the decoder of JPEGs; see `jpegs`.
``heap``
    The allocator of large tensors.

With ``--sanitize`` the kernels are compiled for AddressSanitizer and UndefinedBehaviorSanitizer, and all tensors come from malloc, with a
guarded zone on both sides; `sanitizer` says how.
"""
import contextlib
import functools
import json

import numpy as np
import torch

import mxnet as mx
from mxnet.gluon.cached_op import CachedOp
from mxnet.kernels import own_heap
from mxnet.kernels.conv import few_channels, prepacked_conv, winograd
from mxnet.kernels.gemm import fused_mlp, mlp_training
from mxnet.kernels.image import jpeg, nchw_to_nhwc, transform
from mxnet.kernels.nn import kl_divergence, nms, optimizer_update, pooling_nhwc, recurrent, roi_pooling
from mxnet.kernels.random import generators
from mxnet.kernels.runtime import contract
from mxnet.kernels.text import numbers
from mxnet.ndarray import dispatch

from . import jpegs, sizes
from .arrays import INTEGERS, NUMBERS, all_made, described, made, spoil
from .campaign import Target
from .kernel_checks import SMALL, TORCHS, Wrong, kernels_for_all, usual
from .kernel_functions import FUNCTIONS

# -- handles ---------------------------------------------------------------------------------------------------------

_NAMES = {"batch_norm": sizes.normalized, "color_jitter": sizes.pixels, "convolution": sizes.convolved, "deformable": sizes.moved,
          "conv_gemm": sizes.product, "few_channels": sizes.framed,
          "kl_divergence": sizes.quantized, "prepacked_skinny": sizes.few_rows, "histogram": sizes.counted, "transform": sizes.picture,
          "nchw_to_nhwc": sizes.image,
          "jpeg": sizes.file, "prepacked_conv": sizes.kept, "prepacked_conv.depthwise": sizes.depthwise,
          "prepacked_conv.forward_planes": sizes.planes,
          "pooling_nhwc": sizes.pooled_last, "fused_mlp": sizes.chained, "lrn": sizes.responding, "nms": sizes.boxes,
          "pointwise": sizes.numbers, "max_pooling": sizes.window, "generators": sizes.numbers, "recurrent": sizes.steps, "roi_pooling": sizes.maps,
          "gather_scatter": sizes.rows, **{f"gather_scatter.{name}": sizes.filled_rows for name in ("_gather", "_mark", "_pick", "_place")},
          "softmax": sizes.matrices, **{f"softmax.{name}": sizes.classified for name in ("_likelihoods", "_likelihood_gradients", "_minus_one_hot")},
          "optimizer_update": sizes.updated, "optimizer_update._adam_together": sizes.updated_together, "mlp_training": sizes.trained,
          "triangular_solve": sizes.systems, "numbers": sizes.text, "transpose": sizes.matrices,
          **{f"winograd.{kernel.entry}": functools.partial(sizes.squares, taps=winograd.FORMS[form].taps)
             for kinds in (winograd.weights, winograd.forward, winograd.backward) for form, kernel in kinds.items()}}
_HANDLES = {f"{module.__name__.rpartition('.')[2]}.{name}": value
            for module in (*SMALL, few_channels, fused_mlp, kl_divergence, transform, jpeg, prepacked_conv, nms, pooling_nhwc, roi_pooling,
                           optimizer_update, mlp_training) if module is not recurrent
            for name, value in vars(module).items() if isinstance(value, contract.Kernel)}
_HANDLES.update({f"nchw_to_nhwc.{kernel.entry}": kernel for kernel in nchw_to_nhwc._BY_CHANNELS.values()})
_HANDLES.update({kernel.name.rpartition("/")[2]: kernel for pair in recurrent._KERNELS.values() for kernel in pair})
_HANDLES.update({f"winograd.{kernel.entry}": kernel for kernel in (*winograd.weights.values(), *winograd.forward.values(),
                                                             *winograd.backward.values())})
_HANDLES.update({f"numbers.{kernel.entry}": kernel for kernel in (*numbers._CSV.values(), numbers._libsvm)})
_HANDLES.update({f"generators.{kernel.entry}": kernel for value in vars(generators).values()
                 for kernel in (value.values() if isinstance(value, dict) else (value,)) if isinstance(kernel, contract.Kernel)})
_VALUES = {"images": (-1, 3), "top": (-2, 11), "bottom": (-2, 11), "left": (-2, 11), "right": (-2, 11), "classes": (0, 2), "marks": (-1, 300),
           "bank": (0, 2**32 - 1), "plan": (-2, 30), "asked": (0, 9), "index": (-2, 12), "lengths": (-2, 9), "counts": (-2, 9), "chosen": (0, 2)}


def _fitting(name, rng):
    """A right case for a kernel's handle: descriptions of arrays, integers, numbers."""
    kernel = _HANDLES[name]
    names = (sizes.groups if "sensitive" in name else _NAMES.get(name) or _NAMES[name.split(".")[0]])(rng)
    if "widened" in name:
        names["T"] = "bfloat16"  # the one type that can be
    arrays: list = []
    there = names.pop("given", None)
    for array in kernel.takes:
        given = {a.name for a, content in zip(kernel.takes, arrays) if content is not None}
        if array.optional and (array.name not in there if there is not None else rng.random() < 0.5 or array.name == "copy" and "index" in given):
            arrays.append(None)  # a step writes to rows or to a copy, not to both
            continue
        low, high = _VALUES.get(array.name, (None, None))
        shape = [eval(kernel._where.get(d, d), {}, {**{a.name: a.name in given for a in kernel.takes}, **names}) for d in array.dims]
        order = "last" if array.order is torch.channels_last else rng.choice(("plain", "plain", "the end", "parameter"))
        arrays.append(described(names.get(array.dtype, array.dtype), shape, rng, order, low, high))
    numbers = [rng.choice((0.5, 0.9, 1e-3, 0.0)) if letter in "fd" else rng.randrange(2 if letter == "i" else 50) for letter in kernel.numbers]
    return {"kernel": name, "right": True, "arrays": arrays, "integers": [names[i] for i in kernel.integers], "numbers": numbers,
            "threads": rng.choice((1, 1, 2, 3))}


@functools.cache
def _loaded():
    """All kernels, so that no case has to wait for a compiler."""
    for kernel in _HANDLES.values():
        kernel.available(T="float32", P="float32")


def _make_handle(rng):
    _loaded()
    case = _fitting(rng.choice(sorted(_HANDLES)), rng)
    if rng.random() < 0.7:
        case["right"] = False
        for _ in range(rng.choice((1, 1, 2, 4))):
            _spoil_case(case, rng)
    return json.dumps(case).encode()


def _spoil_case(case, rng):
    way = rng.random()
    if way < 0.25 and case["integers"]:
        i = rng.randrange(len(case["integers"]))
        old = case["integers"][i]
        case["integers"][i] = rng.choice(INTEGERS) if rng.random() < 0.5 or not isinstance(old, int) else old + rng.choice((-2, -1, 1, 2))
        if case["kernel"].startswith("generators.") and case["integers"][i] == 2**31 - 1:  # a right count, of which the numbers take a minute
            case["integers"][i] = 2**17
    elif way < 0.3 and case["numbers"]:
        case["numbers"][rng.randrange(len(case["numbers"]))] = rng.choice(NUMBERS)
    elif way < 0.34:
        kind = rng.choice(("arrays", "integers", "numbers"))
        if rng.random() < 0.5 and case[kind]:
            del case[kind][rng.randrange(len(case[kind]))]
        else:
            case[kind].append(None if kind == "arrays" else 1)
    elif case["arrays"]:
        spoil(case["arrays"], rng)


def _run_handle(content):
    case = json.loads(content)
    kernel, arrays = _HANDLES[case["kernel"]], all_made(case["arrays"])
    with kernels_for_all(case["threads"]):
        if not case["right"]:
            try:
                kernel(arrays, case["integers"], case["numbers"])
            except RuntimeError as error:
                if "allocate memory" not in str(error):  # a gradient of the size that it asked for
                    raise
            return
        if kernel.plan(arrays, case["integers"]) is None:
            if "bfloat16" in content.decode() and not kernel.available(T="bfloat16"):
                return
            raise Wrong(f"a right case is refused: {kernel.error(arrays, case['integers'])}")
        kernel(arrays, case["integers"], case["numbers"])


# -- functions -------------------------------------------------------------------------------------------------------

def _make_function(rng):
    _loaded()
    name = rng.choice(sorted(FUNCTIONS))
    arrays, attributes = FUNCTIONS[name][0](rng)
    right = rng.random() < 0.5
    names, specs = list(arrays), list(arrays.values())
    for _ in range(0 if right else rng.choice((1, 1, 2, 4))):
        spoil(specs, rng)
    return json.dumps({"function": name, "right": right, "arrays": dict(zip(names, specs)), "attributes": attributes,
                       "threads": rng.choice((1, 1, 2, 3))}).encode()


def _run_function(content):
    case = json.loads(content)
    arrays = dict(zip(case["arrays"], all_made(list(case["arrays"].values()))))
    attributes = {k: tuple(v) if isinstance(v, list) else v for k, v in case["attributes"].items()}
    try:
        FUNCTIONS[case["function"]][1](arrays, attributes, case["threads"], case["right"] and usual(*case["arrays"].values()))
    except TORCHS as error:
        if case["right"]:
            raise Wrong(f"a right case is refused: {error!r}") from error
        raise


# -- operators and networks ------------------------------------------------------------------------------------------

@functools.cache
def _network(kind):
    data = mx.sym.var("data")
    if kind == "rnn":
        out = mx.sym.RNN(data, mx.sym.var("parameters"), mx.sym.var("state"), mx.sym.var("state_cell"), mode="lstm", state_size=32, num_layers=1)
    else:
        out = mx.sym.Convolution(data, num_filter=16, kernel=(3, 3), pad=(1, 1), name="conv")
        out = mx.sym.BatchNorm(out, name="bn", fix_gamma=kind == "fixed")
        out = mx.sym.Activation(out + data if kind == "residual" else out, act_type="relu")
        out = mx.sym.Pooling(out, kernel=(3, 3), stride=(2, 2), pool_type="max")
    return out, CachedOp(out)


_CONVOLVES = {"data": (2, 16, 8, 8), "conv_weight": (16, 16, 3, 3), "conv_bias": (16,), "bn_gamma": (16,), "bn_beta": (16,), "bn_moving_mean": (16,),
              "bn_moving_var": (16,)}
_RECURS = {"data": (3, 2, 8), "parameters": (4 * 32 * (8 + 32 + 2),), "state": (1, 2, 32), "state_cell": (1, 2, 32)}
_CALLS = {
    "RNN": (_RECURS, {"mode": "lstm", "state_size": 32, "num_layers": 1}),
    "_contrib_box_nms": ({"data": (2, 9, 6)}, {"id_index": 0, "coord_start": 2, "score_index": 1}),
    "_contrib_box_iou": ({"lhs": (5, 4), "rhs": (3, 4)}, {}),
    "ROIPooling": ({"data": (2, 3, 8, 9), "rois": (4, 5)}, {"pooled_size": [2, 3], "spatial_scale": 0.5}),
    "_contrib_ROIAlign": ({"data": (2, 12, 8, 9), "rois": (4, 5)}, {"pooled_size": [2, 3], "spatial_scale": 0.5, "position_sensitive": True}),
    "_contrib_PSROIPooling": ({"data": (2, 8, 8, 9), "rois": (4, 5)}, {"spatial_scale": 0.5, "output_dim": 2, "pooled_size": 2}),
    "Pooling": ({"data": (2, 3, 40, 41)}, {"kernel": [3, 3], "stride": [2, 2], "pad": [1, 1], "pooling_convention": "full"}),
    "_contrib_MultiBoxDetection": ({"cls_prob": (1, 3, 5), "loc_pred": (1, 20), "anchor": (1, 5, 4)}, {}),
}


def _make_operator(rng):
    _loaded()
    if rng.random() < 0.5:
        kind = rng.choice(("plain", "fixed", "residual", "rnn"))
        shapes, attributes = _RECURS if kind == "rnn" else _CONVOLVES, {"training": rng.random() < 0.7, "recorded": rng.random() < 0.7}
    else:
        kind = rng.choice(sorted(_CALLS))
        shapes, attributes = _CALLS[kind]
        attributes = dict(attributes)
        for name, value in attributes.items():
            if isinstance(value, list) and rng.random() < 0.3:
                attributes[name] = [rng.choice((0, 1, 2, 3, 5, 40, -1)) for _ in value]
            elif type(value) in (int, float) and rng.random() < 0.2:
                attributes[name] = rng.choice((0, 1, 2, 3, -1))
    specs = [described("float32", shape, rng) for shape in shapes.values()]
    for _ in range(rng.choice((0, 1, 1, 2))):
        i = rng.randrange(len(specs))
        one = [specs[i]]
        spoil(one, rng)
        if one[0] is not None:
            specs[i] = {**one[0], "order": "plain"}
    return json.dumps({"operator": kind, "arrays": dict(zip(shapes, specs)), "attributes": attributes}).encode()


def _run_operator(content):
    case = json.loads(content)
    kind, attributes = case["operator"], case["attributes"]
    arrays = {k: mx.nd.from_numpy(made(v).float().numpy()).astype(v["dtype"]) if v["dtype"] != "bool" else mx.nd.zeros(v["shape"], dtype="bool")
              for k, v in case["arrays"].items() if v["dtype"] != "bfloat16" and (0 not in v["shape"])}
    if len(arrays) < len(case["arrays"]):
        return
    with kernels_for_all(1):
        if kind in _CALLS:
            found = getattr(mx.nd, kind, None) or getattr(mx.nd.contrib, kind.removeprefix("_contrib_"))
            found = found(*arrays.values(), **{k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()})
            for out in found if isinstance(found, list) else [found]:
                out.asnumpy()
            return
        symbol, network = _network(kind)
        if attributes["recorded"]:
            for array in arrays.values():
                if array.dtype in (np.float32, np.float64, np.float16):
                    array.attach_grad()
        with mx.autograd.record(attributes["training"]) if attributes["recorded"] else contextlib.nullcontext():
            out = network(*[arrays[name] for name in symbol.list_inputs()])
        if attributes["recorded"] and dispatch.in_graph(out):
            out.backward()
        out.asnumpy()


# -- heap ------------------------------------------------------------------------------------------------------------

def _make_heap(rng):
    steps = []
    for _ in range(rng.randint(1, 30)):
        way = rng.random()
        steps.append(["take", rng.choice((1, 100, 1 << 14, 16383, 16385, 20000, 1 << 16, 300000, rng.randrange(1, 1 << 19)))] if way < 0.55
                     else ["trim", 0] if way < 0.6 else ["grow" if way < 0.7 else "give", rng.randrange(1000)])
    return json.dumps(steps).encode()


def _run_heap(content):
    own_heap()
    held, number = [], 0

    def check(value, tensor):
        if tensor.numel() and not (bool(tensor[0] == value) and bool(tensor[-1] == value) and bool((tensor == value).all())):
            raise Wrong(f"a tensor of {tensor.numel()} numbers was overwritten")

    for step, argument in json.loads(content):
        number += 1
        if step == "take":
            held.append((number, torch.full((argument,), number, dtype=torch.int32)))
        elif step == "trim":
            mx.cpu().empty_cache()
        elif held:
            value, tensor = held.pop(argument % len(held))
            check(value, tensor)
            if step == "grow":
                tensor.resize_(tensor.numel() * 2 + 1).fill_(value)
                held.append((value, tensor))
    spans = sorted((t.data_ptr(), t.data_ptr() + t.untyped_storage().nbytes()) for _, t in held)
    if any(a[1] > b[0] for a, b in zip(spans, spans[1:])):
        raise Wrong(f"two tensors share memory: {spans}")
    for value, tensor in held:
        check(value, tensor)


TARGETS = [Target("kernels.handles", _make_handle, _run_handle, share=10),
           Target("kernels.functions", _make_function, _run_function, TORCHS, share=3),
           Target("kernels.operators", _make_operator, _run_operator),
           Target("kernels.heap", _make_heap, _run_heap), *jpegs.TARGETS]
