"""The Triton kernel of `updates_on_gpu`. The module imports triton, so it is imported at the first use only.

A program updates a piece of a weight. Its row of `table` has the addresses of weight, gradient, three states and the copy, and the number of elements
of the piece. Each rule is a function of blocks of float32. It receives the gradient after scaling, coupled weight decay and clipping. The optimizers
have the same formulas in torch's operators, which compute on a CPU.
"""
import triton
import triton.language as tl


@triton.jit
def _address(place, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    address = tl.load(place).to(tl.pointer_type(TYPE))
    return tl.multiple_of(address, 16) if ALIGNED else address


@triton.jit
def _clipped(x, most):  # by comparisons, so that NaN stays
    x = tl.where(x > most, most, x)
    return tl.where(x < -most, -most, x)


@triton.jit
def _averaged(mean, x, retained, share):
    return retained * mean + share * x


@triton.jit
def sgd(w, g, mom, rate, momentum, decay, STATES: tl.constexpr, DECAYS: tl.constexpr):
    change = -rate * g
    if STATES == 1:
        change += momentum * mom
    if DECAYS:
        change -= decay * w
    return w + change, change


@triton.jit
def nag(w, g, mom, rate, momentum, weight_rate, weight_factor, decay, DECAYS: tl.constexpr):
    mom = momentum * mom
    if DECAYS:
        w = w * weight_factor
    w = w + momentum * mom - weight_rate * g
    mom -= rate * g
    if DECAYS:
        mom -= decay * w  # of the new weight, as in MXNet
    return w, mom


@triton.jit
def adam(w, g, mean, var, rate, beta1, share1, beta2, share2, epsilon):
    mean = _averaged(mean, g, beta1, share1)
    var = _averaged(var, g * g, beta2, share2)
    return w - rate * tl.div_rn(mean, tl.sqrt_rn(var) + epsilon), mean, var


@triton.jit
def adamw(w, g, mean, var, rate, beta1, share1, beta2, share2, epsilon, factor):
    w, mean, var = adam(w, g, mean, var, rate, beta1, share1, beta2, share2, epsilon)
    return w * factor, mean, var


@triton.jit
def adabelief(w, g, mean, var, rate, beta1, share1, beta2, share2, epsilon):
    mean = _averaged(mean, g, beta1, share1)
    deviation = g - mean
    var = _averaged(var, deviation * deviation, beta2, share2) + epsilon
    return w - rate * tl.div_rn(mean, tl.sqrt_rn(var) + epsilon), mean, var


@triton.jit
def adamax(w, g, mean, largest, rate, beta1, share1, beta2, epsilon):
    mean = _averaged(mean, g, beta1, share1)
    largest = tl.maximum(beta2 * largest, tl.abs(g) + epsilon, propagate_nan=tl.PropagateNan.ALL)
    return w - rate * tl.div_rn(mean, largest), mean, largest


@triton.jit
def nadam(w, g, mean, var, rate, beta1, share1, beta2, share2, epsilon, correction, of_grad, of_mean):
    mean = _averaged(mean, g, beta1, share1)
    var = _averaged(var, g * g, beta2, share2)
    size = tl.sqrt_rn(var / correction) + epsilon
    return w - rate * tl.div_rn(of_mean * mean + of_grad * g, size), mean, var


@triton.jit
def rmsprop(w, g, squares, rate, rho, share, epsilon, most):
    squares = _averaged(squares, g * g, rho, share)
    return _clipped(w - rate * tl.div_rn(g, tl.sqrt_rn(squares + epsilon)), most), squares


@triton.jit
def rmsprop_centered(w, g, squares, mean, change, rate, rho, share, epsilon, most, momentum):
    mean = _averaged(mean, g, rho, share)
    squares = _averaged(squares, g * g, rho, share)
    change = momentum * change - rate * tl.div_rn(g, tl.sqrt_rn(squares - mean * mean + epsilon))
    return _clipped(w + change, most), squares, mean, change


@triton.jit
def adagrad(w, g, history, rate, epsilon, decay, DECAYS: tl.constexpr):
    history += g * g
    new = w - rate * tl.div_rn(g, tl.sqrt_rn(history + epsilon))
    if DECAYS:
        new -= decay * w
    return new, history


@triton.jit
def adadelta(w, g, squares, steps_taken, rho, share, epsilon, factor):
    squares = _averaged(squares, g * g, rho, share)
    delta = tl.sqrt_rn(tl.div_rn(steps_taken + epsilon, squares + epsilon)) * g
    return w * factor - delta, squares, _averaged(steps_taken, delta * delta, rho, share)


@triton.jit
def ftrl(w, g, z, n, rate, lamda1, beta, wd, inverse_rate):
    before = tl.sqrt_rn(n)
    n += g * g
    after = tl.sqrt_rn(n)
    z = z + g - (after - before) * w * inverse_rate
    shrunk = tl.where(tl.abs(z) <= lamda1, 0.0, tl.where(z > lamda1, z - lamda1, z + lamda1))  # NaN stays
    return -tl.div_rn(shrunk, (after + beta) * inverse_rate + wd), z, n


@triton.jit
def ftml(w, g, d, v, z, beta1, share1, beta2, share2, epsilon, correction, factor):
    v = _averaged(v, g * g, beta2, share2)
    new = (tl.sqrt_rn(v / correction) + epsilon) * factor
    z = _averaged(z, g, beta1, share1) - (new - beta1 * d) * w
    return -tl.div_rn(z, new), new, v, z


@triton.jit
def _sign(x):  # of NaN it is 0, as torch's
    return tl.where(x > 0, 1.0, 0.0) - tl.where(x < 0, 1.0, 0.0)


@triton.jit
def signum(w, g, mom, rate, momentum, share, factor, decay, STATES: tl.constexpr, DECAYS: tl.constexpr):
    if STATES == 1:
        mom = momentum * mom - share * g
        if DECAYS:
            mom -= decay * w
        return w * factor + rate * _sign(mom), mom
    else:
        return w * factor - rate * _sign(g), mom


@triton.jit
def dcasgd(w, g, previous, mom, rate, lamda, wd, momentum, STATES: tl.constexpr):
    change = -rate * ((w - previous) * g * g * lamda + g + wd * w)
    if STATES == 2:
        change += momentum * mom
    return w + change, w, change


@triton.jit
def _stepped(w, g, a, b, c, decay, n0, n1, n2, n3, n4, n5, n6, n7, n8, RULE: tl.constexpr, STATES: tl.constexpr, DECAYS: tl.constexpr):
    """Return the new weight and states by a rule, with its numbers."""
    if RULE == "sgd":
        w, a = sgd(w, g, a, n0, n1, decay, STATES, DECAYS)
    elif RULE == "nag":
        w, a = nag(w, g, a, n0, n1, n2, n3, decay, DECAYS)
    elif RULE == "adam":
        w, a, b = adam(w, g, a, b, n0, n1, n2, n3, n4, n5)
    elif RULE == "adamw":
        w, a, b = adamw(w, g, a, b, n0, n1, n2, n3, n4, n5, n6)
    elif RULE == "adabelief":
        w, a, b = adabelief(w, g, a, b, n0, n1, n2, n3, n4, n5)
    elif RULE == "adamax":
        w, a, b = adamax(w, g, a, b, n0, n1, n2, n3, n4)
    elif RULE == "nadam":
        w, a, b = nadam(w, g, a, b, n0, n1, n2, n3, n4, n5, n6, n7, n8)
    elif RULE == "rmsprop":
        w, a = rmsprop(w, g, a, n0, n1, n2, n3, n4)
    elif RULE == "rmsprop_centered":
        w, a, b, c = rmsprop_centered(w, g, a, b, c, n0, n1, n2, n3, n4, n5)
    elif RULE == "adagrad":
        w, a = adagrad(w, g, a, n0, n1, decay, DECAYS)
    elif RULE == "adadelta":
        w, a, b = adadelta(w, g, a, b, n0, n1, n2, n3)
    elif RULE == "ftrl":
        w, a, b = ftrl(w, g, a, b, n0, n1, n2, n3, n4)
    elif RULE == "ftml":
        w, a, b, c = ftml(w, g, a, b, c, n0, n1, n2, n3, n4, n5, n6)
    elif RULE == "signum":
        w, a = signum(w, g, a, n0, n1, n2, n3, decay, STATES, DECAYS)
    else:
        tl.static_assert(RULE == "dcasgd")
        w, a, b = dcasgd(w, g, a, b, n0, n1, n2, n3, STATES)
    return w, a, b, c


@triton.jit
def _block(start, count, weight, gradient, first, second, third, copy, rescale, clip, wd, decay, n0, n1, n2, n3, n4, n5, n6, n7, n8,
           RULE: tl.constexpr, STATES: tl.constexpr, COPY: tl.constexpr, COPIES: tl.constexpr, CLIPS: tl.constexpr, COUPLES: tl.constexpr,
           DECAYS: tl.constexpr, MASKS: tl.constexpr, BLOCK: tl.constexpr):
    at = start + tl.arange(0, BLOCK)
    inside = at < count if MASKS else None
    w = tl.load(weight + at, mask=inside)
    g = tl.load(gradient + at, mask=inside).to(tl.float32) * rescale
    a, b, c = w, w, w
    if STATES > 0:
        a = tl.load(first + at, mask=inside)
    if STATES > 1:
        b = tl.load(second + at, mask=inside)
    if STATES > 2:
        c = tl.load(third + at, mask=inside)
    if COUPLES:
        g += wd * w
    if CLIPS:
        g = _clipped(g, clip)
    w, a, b, c = _stepped(w, g, a, b, c, decay, n0, n1, n2, n3, n4, n5, n6, n7, n8, RULE, STATES, DECAYS)
    tl.store(weight + at, w, mask=inside)
    if STATES > 0:
        tl.store(first + at, a, mask=inside)
    if STATES > 1:
        tl.store(second + at, b, mask=inside)
    if STATES > 2:
        tl.store(third + at, c, mask=inside)
    if COPIES:
        tl.store(copy + at, w.to(COPY), mask=inside)


@triton.jit
def move(table, rescale, clip, wd, decay, n0, n1, n2, n3, n4, n5, n6, n7, n8, RULE: tl.constexpr, STATES: tl.constexpr, GRADIENT: tl.constexpr,
         COPY: tl.constexpr, COPIES: tl.constexpr, CLIPS: tl.constexpr, COUPLES: tl.constexpr, DECAYS: tl.constexpr, ALIGNED: tl.constexpr,
         PIECE: tl.constexpr, BLOCK: tl.constexpr):
    """Update a piece of a weight and its states by a rule, whose gradient is ``clip(rescale * grad + wd * weight)``, and write the rounded copy."""
    row = table + tl.program_id(0).to(tl.int64) * 7
    weight = _address(row, tl.float32, ALIGNED)
    gradient = _address(row + 1, GRADIENT, ALIGNED)
    first = _address(row + 2, tl.float32, ALIGNED)
    second = _address(row + 3, tl.float32, ALIGNED)
    third = _address(row + 4, tl.float32, ALIGNED)
    copy = _address(row + 5, COPY, ALIGNED)
    count = tl.load(row + 6).to(tl.int32)
    if count == PIECE:  # a loop without masks, whose loads are vectorized
        for start in range(0, PIECE, BLOCK):
            _block(start, count, weight, gradient, first, second, third, copy, rescale, clip, wd, decay, n0, n1, n2, n3, n4, n5, n6, n7, n8,
                   RULE, STATES, COPY, COPIES, CLIPS, COUPLES, DECAYS, False, BLOCK)
    else:
        for start in range(0, count, BLOCK):
            _block(start, count, weight, gradient, first, second, third, copy, rescale, clip, wd, decay, n0, n1, n2, n3, n4, n5, n6, n7, n8,
                   RULE, STATES, COPY, COPIES, CLIPS, COUPLES, DECAYS, True, BLOCK)
