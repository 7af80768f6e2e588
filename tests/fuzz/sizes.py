"""Sizes that fit together, for each kernel's declaration: what `kernels` makes right cases of."""
from mxnet.kernels.conv import convolution, few_channels
from mxnet.kernels.gemm import fused_mlp, mlp_training
from mxnet.kernels.nn import max_pooling, optimizer_update


def normalized(rng):
    return {"T": rng.choice(("float32", "float32", "bfloat16")), "n": rng.randint(1, 4), "c": rng.choice((1, 3, 16, 19, 64)),
            "h": rng.randint(1, 9), "w": rng.randint(1, 9)}


def convolved(rng):
    while True:
        names = {"T": rng.choice(("float32", "float32", "bfloat16")), "n": rng.randint(1, 3), "c": 16 * rng.randint(1, 4),
                 "k": 16 * rng.randint(1, 4), "h": rng.randint(1, 12), "w": rng.randint(1, 12),
                 "r": rng.choice((1, 1, 2, 3, 3, 5)), "s": rng.choice((1, 1, 2, 3, 3, 7)),
                 "stride_h": rng.randint(1, 3), "stride_w": rng.randint(1, 3), "pad_h": rng.choice((0, 0, 1, 2, 4)),
                 "pad_w": rng.choice((0, 0, 1, 2, 4)), "dilate_h": rng.choice((1, 1, 2)), "dilate_w": rng.choice((1, 1, 3)),
                 "biased": rng.randrange(2)}
        if rng.random() < 0.03:
            names.update(r=rng.choice((8, 11)), s=rng.choice((11, 16)), c=16, k=16)
        names["p"], names["q"] = (eval(text, {}, names) for text in (convolution._HEIGHT, convolution._WIDTH))
        if min(names["p"], names["q"]) >= 1 and names["r"] * names["s"] <= 128:
            return names


def framed(rng):
    while True:
        names = {**convolved(rng), "c": rng.randint(1, few_channels.MOST), "k": rng.choice((1, 5, 16, 20, 33, 64, 70)), "dilate_w": 1}
        try:
            names["p"], names["q"] = (eval(text, {}, names) for text in (few_channels.HEIGHT, few_channels.WIDTH))
        except ZeroDivisionError:
            continue
        if all(eval(d, {}, names) for d in few_channels.PRECONDITIONS):
            return names


def kept(rng):
    names = {**convolved(rng), "c": rng.choice((1, 3, 5, 16, 24)), "k": rng.choice((1, 8, 16, 24, 33, 64, 70))}
    names.update(first=rng.choice((0, 0, 3, 16)), lines=int(names["dilate_w"] == 1 and rng.random() < 0.5))
    return {**names, "total": names["first"] + names["k"] + rng.choice((0, 0, 5)), "columns": -(-names["k"] // 16) * 16,
            "height": names["h"] + 2 * names["pad_h"], "width": names["w"] + 2 * names["pad_w"],
            "size": -(-names["k"] // 16) * 16 * names["c"] * names["r"] * names["s"]}


def planes(rng):
    while True:
        names = kept(rng)
        if names["lines"]:
            return names


def depthwise(rng):
    names = {**kept(rng), "c": rng.choice((16, 17, 24, 32, 40))}
    return {**names, "total": names["first"] + names["c"] + rng.choice((0, 0, 5))}


def pooled_last(rng):
    while True:
        names = {"n": rng.randint(1, 3), "c": rng.choice((16, 17, 24, 48)), "h": rng.randint(1, 20), "w": rng.randint(1, 20),
                 "first": rng.choice((0, 0, 3)), "average": rng.randrange(2), "padded": rng.randrange(2)}
        for axis, size in (("h", "p"), ("w", "q")):
            kernel, stride = rng.choice((1, 2, 3, 3, 7)), rng.randint(1, 3)
            pad = rng.randrange(kernel)
            names.update({f"kernel_{axis}": kernel, f"stride_{axis}": stride, f"pad_{axis}": pad,
                          size: (names[axis] + 2 * pad - kernel) // stride + 1 + rng.randrange(2)})
        names["total"] = names["first"] + names["c"] + rng.choice((0, 5))
        if all(names[size] >= 1 and (names[size] - 1) * names[f"stride_{axis}"] - names[f"pad_{axis}"] < names[axis] for axis, size in ("hp", "wq")):
            return names


def chained(rng):
    widths = [rng.choice((1, 5, 31, 32, 33, 70)) for _ in range(rng.randint(1, fused_mlp.MOST))]
    names = {"n": rng.choice((1, 2, 3, 11, 12, 13, 40)), "c": rng.choice((1, 3, 17, 32)), "last": widths[-1]}
    panels = [-(-width // 32) * 32 for width in widths]
    names.update(relu_mask=rng.randrange(1 << fused_mlp.MOST), columns=sum(panels))
    names["cells"] = sum(wide * deep for wide, deep in zip(panels, [names["c"], *widths]))
    return {**names, **{f"k{i + 1}": width for i, width in enumerate([*widths, *[0] * (fused_mlp.MOST - len(widths))])}}


def trained(rng):
    widths = [rng.choice((1, 5, 16, 31, 33, 70)) for _ in range(rng.randint(1, mlp_training.MOST))]
    places = range(1, len(widths) + 1)
    some = [f"{kind}{i}" for kind in ("b", "dw", "db") for i in places if rng.random() < 0.7]
    return {"n": rng.choice((1, 3, 4, 12, 13, 50)), "c": rng.choice((1, 5, 16, 17, 64)), "activations": rng.randrange(4 ** len(widths)),
            **{f"k{i + 1}": width for i, width in enumerate([*widths, *[0] * (mlp_training.MOST - len(widths))])},
            "given": [*some, *[f"{kind}{i}" for kind in "wy" for i in places], *["dx"] * rng.randrange(2)]}


def squares(rng, taps):
    while True:
        names = {"T": rng.choice(("float32", "float32", "bfloat16")), "n": rng.randint(1, 3), "c": 16 * rng.randint(1, 4),
                 "k": 16 * rng.randint(1, 9), "h": rng.randint(1, 20), "w": rng.randint(1, 20),
                 "pad_h": rng.choice((0, 1, 1, 2, 4)), "pad_w": rng.choice((0, 1, 1, 2, 4)), "turned": rng.randrange(2),
                 "biased": rng.randrange(2), "first": rng.choice((0, 0, 3, 16))}
        names["total"] = names["first"] + names["k"] + rng.choice((0, 0, 5))
        names["p"], names["q"] = names["h"] + 2 * names["pad_h"] - taps[0] + 1, names["w"] + 2 * names["pad_w"] - taps[1] + 1
        if min(names["p"], names["q"]) >= 1:
            return names


def product(rng):
    return {"n": rng.choice((1, 2, 5, 12, 13, 24, 25, 50)), "c": 16 * rng.randint(1, 5), "k": 16 * rng.randint(1, 5)}


def few_rows(rng):
    return {"T": rng.choice(("float32", "bfloat16")), "n": rng.choice((1, 2, 3, 4, 11, 12, 13, 25)), "c": rng.choice((1, 3, 4, 17, 32)),
            "k": rng.choice((1, 5, 31, 32, 33, 64, 70))}


def steps(rng):
    names = {"T": rng.choice(("float32", "bfloat16")), "t": rng.randint(1, 4), "b": rng.choice((1, 2, 3, 4, 5, 6, 7, 13)),
             "u": rng.choice((32, 64, 96)), "reverse": rng.randrange(2), "keep": rng.randrange(2), "wide": rng.randrange(2)}
    if names["T"] == "float32":
        names["u"] = rng.choice((1, 5, 16, 27, 32, 40, 48, 64, 96))
        if names["u"] % 32:  # no projection
            names["given"] = [a for a in ("bias", "packed", "cell", "counts", "dhidden", "dcell", "states") if rng.random() < 0.5]
    names.update(n=names["t"] * names["b"], d=names["u"])
    return {**names, "kept": names["n"] if names["keep"] else names["b"]}


def image(rng):
    return {"n": rng.randint(0, 3), "h": rng.randint(0, 9), "w": rng.randint(1, 9)}


def quantized(rng):
    bins = rng.choice((1, 2, 7, 16))
    return {"n": bins + rng.choice((0, 1, 2, 50)), "bins": bins}


def picture(rng):
    return {"T": rng.choice(("float32", "float16", "uint8", "int8")), "n": rng.choice((0, 1, 12, 300, 1000)), "c": rng.choice((1, 3, 4)),
            "h": rng.randint(1, 9), "w": rng.randint(1, 20)}


def file(rng):
    return {"n": rng.choice((0, 1, 12, 300)), "m": rng.choice((0, 1, 300, 1000)), "c": rng.choice((1, 3))}


def boxes(rng):
    return {"n": rng.choice((0, 1, 2, 17, 40)), "m": rng.choice((0, 1, 3, 16, 33))}


def text(rng):
    return {"n": rng.choice((1, 2, 3, 10, 1000)), "width": rng.choice((1, 2, 3, 600))}


def updated(rng):
    rows = rng.choice((0, 1, 2, 10))
    return {"rows": rows, "count": rows, "width": rng.choice((1, 3, 16, 33, 20_000))}


def updated_together(rng):
    count = rng.randint(1, optimizer_update.UPDATED_TOGETHER)
    places = range(1, optimizer_update.UPDATED_TOGETHER + 1)
    return {**{f"n{i}": rng.choice((1, 5, 16, 33, 100)) if i <= count else 0 for i in places},
            "given": [f"{letter}{i}" for letter in "wgms" for i in range(1, count + 1)]}


def classified(rng):
    return {**matrices(rng), "T": rng.choice(("float32", "int64"))}


def counted(rng):
    return {"T": rng.choice(("float32", "float64")), "n": rng.choice((0, 1, 7, 1000)), "bins": rng.choice((1, 2, 10, 100))}


def responding(rng):
    names = {"n": rng.randint(0, 3), "c": rng.choice((1, 2, 7, 19)), "h": rng.choice((1, 9, 17)), "w": rng.choice((0, 1, 13, 40))}
    return {**names, "reach": rng.randrange(min(names["c"], 6))}


def moved(rng):
    names = {name: rng.choice((1, 1, 2, 3)) for name in ("down", "across", "stride_down", "stride_across", "dilate_down", "dilate_across", "groups")}
    names.update(pad_down=rng.randrange(3), pad_across=rng.randrange(3), fades=rng.randrange(2), c=names["groups"] * rng.choice((1, 7, 16, 35)))
    return {**names, **{name: rng.choice((1, 2, 5, 9)) for name in "hwpq"}, "n": rng.randrange(3)}


def systems(rng):
    return {"count": rng.choice((0, 1, 3)), "n": rng.choice((1, 2, 7, 17, 70)), "columns": rng.choice((0, 1, 9, 65)), "upper": rng.randrange(2)}


def matrices(rng):
    return {"n": rng.choice((0, 1, 3, 17, 40)), "h": rng.choice((1, 3, 16, 35)), "w": rng.choice((1, 7, 16, 70))}


def window(rng):
    while True:
        names = {"n": rng.randint(1, 3), "c": rng.randint(1, 3), "h": rng.randint(1, 20), "w": rng.randint(1, 40),
                 "kernel_h": rng.choice((1, 2, 3, 3, 5, 16)), "kernel_w": rng.choice((1, 2, 3, 3, 4, 16)),
                 "stride_h": rng.randint(1, 4), "stride_w": rng.randint(1, 4), "ceil": rng.randrange(2)}
        names["pad_h"], names["pad_w"] = rng.randint(0, names["kernel_h"] // 2), rng.randint(0, names["kernel_w"] // 2)
        try:
            names["p"], names["q"] = (eval(text, {}, names) for text in (max_pooling._HEIGHT, max_pooling._WIDTH))
        except ZeroDivisionError:
            continue
        if all(eval(d, {}, names) for d in max_pooling._PRECONDITIONS):
            return names


def maps(rng):
    down, right, depth = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3)
    grouped = rng.random() < 0.5
    return {"n": rng.randint(1, 3), "c": down * right * depth if grouped else rng.choice((1, 5, 33)), "h": rng.randint(1, 9), "w": rng.randint(1, 9),
            "r": rng.randint(0, 4), "p": rng.randint(1, 4), "q": rng.randint(1, 4), "down": down if grouped else 1, "right": right if grouped else 1,
            "depth": depth, "marked": rng.randrange(2)}


def groups(rng):
    names = maps(rng)
    return {**names, "c": names["down"] * names["right"] * names["depth"]}


def numbers(rng):
    names = {"n": rng.choice((0, 1, 7, 63, 64, 65, 1000, 5000)), "m": 1, "state": rng.choice((0, 1, 15, 16, 17, 600, 1023)),
             "P": rng.choice(("float32", "float64")), "T": rng.choice(("float32", "bool", "int32")),
             "rows": rng.choice((0, 1, 5)), "classes": rng.choice((1, 2, 9, 70)), "draws": rng.choice((0, 1, 33))}
    if rng.random() < 0.5 and names["n"]:
        names["m"] = rng.choice([m for m in (1, 5, 7, 9, 64, names["n"]) if names["n"] % m == 0])
    names["count"] = rng.randint(0, names["n"])
    return names


def rows(rng):
    names = {"a": rng.choice((0, 1, 5, 17)), "b": rng.choice((1, 3, 7)), "w": rng.choice((0, 1, 7, 16, 33)), "first": rng.randrange(2),
             "n": rng.choice((0, 1, 9, 30)), "k": rng.choice((0, 1, 8, 40)), "T": rng.choice(("float32", "int32", "int64")),
             "length": rng.choice((0, 1, 6)), "backwards": rng.randrange(2)}
    names["s"] = names["a"] if names["first"] else names["b"]
    return names


def filled_rows(rng):
    names = rows(rng)
    return {**names, "n": names["n"] or 1, "w": names["w"] or 1}


def pixels(rng):
    return {"T": rng.choice(("float32", "uint8")), "n": rng.choice((0, 1, 63, 64, 65, 300)), "h": rng.choice((0, 1, 7)),
            "w": rng.choice((1, 2, 31)), "c": rng.choice((1, 3))}
