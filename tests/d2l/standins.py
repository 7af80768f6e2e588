"""Synthetic data in place of what the book downloads; whatever else would go over the network is refused.

`used` and `refused` list the addresses and data sets that cells asked for.
"""
import io
import random
import re
import socket
import types
import zipfile

import numpy
import requests

import mxnet as mx

used, refused = [], []
WORDS = ["the", "of", "i", "and", "time", "traveller", "said", "a", "machine", "was", "in", "that", "it", "my", "had", "as", "you", "his", "night"]
PAIRS = {"go": "va", "hello": "salut", "run": "cours", "stop": "arrête", "wait": "attends", "i": "je", "he": "il", "we": "nous", "home": "maison",
         "lost": "perds", "calm": "calme", "was": "étais", "am": "suis", "try": "essaye"}


class NoNetwork(OSError):
    """A cell needs the network."""


def _lines(count, words, rng):
    return [" ".join(rng.choice(words) for _ in range(rng.randint(3, 10))) for _ in range(count)]


def _zip(**texts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def time_machine(rng):
    words = WORDS * 20 + ["".join(rng.choice(WORDS)[:3] for _ in range(rng.randint(2, 4))) for _ in range(2000)]  # enough parts for a tokenizer
    return "\n".join(["The Time Machine, by H. G. Wells [1898]", *_lines(5000, words, rng)]).encode()


def translations(rng):
    """Sentences and their translations, a pair a line, as in fra.txt."""
    lines = []
    for _ in range(2000):
        words = [rng.choice(list(PAIRS)) for _ in range(rng.randint(1, 5))]
        mark = rng.choice(".!?")
        lines.append(f"{' '.join(words).capitalize()}{mark}\t{' '.join(PAIRS[word] for word in words).capitalize()}{mark}")
    return _zip(**{"fra-eng/fra.txt": "\n".join(lines)})


def penn_treebank(rng):
    words = [first + second for first in WORDS for second in WORDS]  # the book drops most of the words that are frequent
    return _zip(**{f"ptb/ptb.{part}.txt": "\n".join(_lines(count, words, rng)) for part, count in (("train", 4000), ("valid", 60), ("test", 60))})


def wikitext(rng):
    text = "\n".join(" . ".join(_lines(rng.randint(2, 5), WORDS, rng)) for _ in range(300))
    return _zip(**{f"wikitext-2/wiki.{part}.tokens": text for part in ("train", "valid", "test")})


def airfoil(rng):
    return "\n".join("\t".join(f"{rng.gauss(3, 2):.4f}" for _ in range(6)) for _ in range(1503)).encode()


FILES = {"timemachine.txt": time_machine, "fra-eng.zip": translations, "ptb.zip": penn_treebank, "wikitext-2-v1.zip": wikitext,
         "airfoil_self_noise.dat": airfoil}


def get(url, *arguments, **parameters):
    """Answer `requests.get` with synthetic data; NoNetwork if there is none for this address."""
    name = re.sub(r".*/", "", url)
    if name not in FILES:
        refused.append(url)
        raise NoNetwork(f"{url} is not to be downloaded")
    used.append(url)
    content = FILES[name](random.Random(name))
    return types.SimpleNamespace(content=content, text=content.decode(errors="replace"), status_code=200, ok=True, raise_for_status=lambda: None)


def _pictures(data_set):
    """Give a data set of gluon.data.vision a few synthetic pictures, of its own size: a bright square for each class."""
    size, channels = (28, 1) if isinstance(data_set, mx.gluon.data.vision.MNIST) else (32, 3)
    used.append(type(data_set).__name__)
    rng, count = numpy.random.RandomState(1), 64 if data_set._train else 32
    labels = numpy.arange(count) % 10
    data = rng.randint(0, 100, (count, size, size, channels))
    for picture, label in zip(data, labels, strict=True):
        picture[2 * label:2 * label + 8, 4:24] += 150
    numpy_arrays = mx.util.is_np_array()
    data_set._label = mx.np.array(labels, dtype="int32") if numpy_arrays else labels.astype("int32")
    data_set._data = (mx.np if numpy_arrays else mx.nd).array(data, dtype="uint8")


def install():
    """Replace what downloads in this process."""
    def connect(self, address):
        refused.append(str(address))
        raise NoNetwork(f"{address} is not to be reached")

    requests.get = get
    socket.socket.connect = connect
    for data_set in (mx.gluon.data.vision.MNIST, mx.gluon.data.vision.CIFAR10):
        data_set._get_data = _pictures
