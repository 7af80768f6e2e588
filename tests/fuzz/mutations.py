"""How a good file becomes a bad one."""
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


def _number(data, rng, others):
    found = list(_NUMBER.finditer(data))
    if found:
        match = rng.choice(found)
        data[match.start():match.end()] = rng.choice(_TEXTS) if rng.random() < 0.6 else str(rng.choice(_EXTREMES)).encode()


def _token(data, rng, others):
    found = list(_TOKEN.finditer(data))
    if found:
        match, other = rng.choice(found), rng.choice(found)
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
