"""How a good file becomes a bad one."""
import copy
import json
import pickletools
import re

_EXTREMES = [0, 1, 2, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
_TEXTS = [b"", b"0", b"-1", b"-5", b"1e999", b"nan", b"inf", b"None", b"[]", b"{}", b"()", b"(1,)", b"null", b"true", b"1" * 5000,
          b"1000000000000", b"9" * 25, b"1.5", b"\xff\xfe", b"\0", b'"a"', b"(" * 2000, b"[" * 3000, b"\t", b"\n", b",", b"0x10", b"1_0",
          "\u0661".encode(), "\u00e9".encode()]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_TOKEN = re.compile(rb'"[^"]*"|-?\d+(?:\.\d+)?|[\[\]{}(),:\t\n ]|\w+')


def _flip(data, rng, others):
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)


def _byte(data, rng, others):
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _truncate(data, rng, others):
    del data[rng.randrange(len(data)):]


def _remove(data, rng, others):
    at = rng.randrange(len(data))
    del data[at:at + rng.randrange(1, 1 + rng.choice((4, 32, len(data))))]


def _repeat(data, rng, others):
    at, length = rng.randrange(len(data)), rng.randrange(1, 64)
    data[at:at] = data[at:at + length] * rng.choice((1, 2, 50))


def _integer(data, rng, others):
    """A length field, perhaps."""
    size = rng.choice((2, 4, 8))
    at = rng.randrange(len(data)) // rng.choice((1, 4)) * rng.choice((1, 4)) % len(data)
    value = rng.choice(_EXTREMES) + rng.choice((0, 0, -1, 1))
    data[at:at + size] = (value % 2**(8 * size)).to_bytes(size, rng.choice(("little", "big")))


def _splice(data, rng, others):
    other = rng.choice(others)
    if other:
        start = rng.randrange(len(other))
        at = rng.randrange(len(data))
        data[at:at + rng.choice((0, 16, len(data)))] = other[start:start + rng.choice((8, 64, len(other)))]


def _near(pattern, data, rng):
    """A match somewhere; finding all of them would take most of a campaign's time."""
    return pattern.search(data, rng.randrange(len(data))) or pattern.search(data)


def _number(data, rng, others):
    match = _near(_NUMBER, data, rng)
    if match:
        data[match.start():match.end()] = rng.choice(_TEXTS) if rng.random() < 0.6 else str(rng.choice(_EXTREMES)).encode()


def _token(data, rng, others):
    match, other = _near(_TOKEN, data, rng), _near(_TOKEN, data, rng)
    if match and other:
        data[match.start():match.end()] = rng.choice((b"", rng.choice(_TEXTS), other.group() if rng.random() < 0.7 else match.group() * 2))


_ALL = [_flip, _byte, _truncate, _remove, _repeat, _integer, _integer, _splice, _number, _token]
_TEXTUAL = [_number, _number, _number, _token, _token, _token, _remove, _repeat, _splice, _byte, _truncate]


def mutated(data, rng, others, text=False):
    """`data` with one or a few changes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if data:
            rng.choice(_TEXTUAL if text else _ALL)(data, rng, others)
    return bytes(data[:1 << 20])


# -- files with a structure that nearly all of the changes above would break --------------------------------------------

_VALUES = [None, True, False, 0, 1, -1, 2, 3, 1.5, "", "0", "-1", "None", "nan", "inf", "()", "(1,)", "(0, 0)", "(2, 2)", "True", "x", [], {}, [[]],
           [0, 0, 0], "float16", "int64", "(1000000, 1000000)", "9" * 30, "(" + "1, " * 40 + ")", "\0", "\u00e9", "device",
           *_EXTREMES, *map(str, _EXTREMES)]


def _places(tree, found):
    """All (container, key) in a tree of lists and dicts."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        found.append((tree, key))
        if isinstance(value, (dict, list)):
            _places(value, found)
    return found


def mutated_json(data, rng, others, texts=()):
    """A JSON text with one or a few values replaced, removed, exchanged or repeated; `texts` are further values."""
    tree = json.loads(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        places = _places(tree, [])
        if not places:
            break
        into, key = rng.choice(places)
        other, its = rng.choice(places)
        action = rng.randrange(8)
        if action < 4:
            into[key] = copy.deepcopy(rng.choice(texts if texts and rng.random() < 0.4 else _VALUES))
        elif action == 4:
            del into[key]
        elif action == 5:
            into[key], other[its] = copy.deepcopy(other[its]), copy.deepcopy(into[key])
        elif action == 6 and isinstance(into, list):
            into[key:key] = [copy.deepcopy(into[key]) for _ in range(rng.choice((1, 2, 20)))]
        elif isinstance(into, dict):
            into[str(rng.choice(_VALUES))] = into[key]
        elif isinstance(into[key], int):
            into[key] += rng.choice((-1, 1))
    return json.dumps(tree).encode()[:1 << 20]


def _instructions(data):
    """The pieces of a pickle."""
    starts = [at for _, _, at in pickletools.genops(data)] + [len(data)]
    return [data[a:b] for a, b in zip(starts, starts[1:])]


def mutated_pickle(data, rng, others, pieces=()):
    """A pickle with instructions removed, repeated, exchanged, or taken from another or from `pieces`."""
    program = _instructions(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(program))
        action = rng.randrange(6)
        if action == 0:
            del program[at]
        elif action == 1:
            program[at:at] = program[at:at + rng.choice((1, 2, 5))] * rng.choice((1, 1, 3))
        elif action == 2:
            other = _instructions(rng.choice(others))
            start = rng.randrange(len(other))
            program[at:at + rng.choice((0, 1, 3))] = other[start:start + rng.choice((1, 2, 5, 20))]
        elif action == 3 and pieces:
            program[at:at + rng.choice((0, 1, 1, 2))] = [rng.choice(pieces)]
        elif action == 4:
            to = rng.randrange(len(program))
            program[at], program[to] = program[to], program[at]
        elif len(program[at]) > 1:
            program[at] = program[at][:1] + mutated(program[at][1:], rng, others)
        if not program:
            break
    return b"".join(program)[:1 << 20]
