"""Small data sets in the files that the programs look for, made up here: drawn digits, coloured pictures, random sentences, ratings."""
import gzip
import json
import struct

import cv2
import numpy as np

_TRAIN, _TEST = 1000, 200


def _digits(count, seed):
    """Pictures of drawn digits, uint8 (count, 28, 28), and which they are."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(np.uint8)
    images = np.zeros((count, 28, 28), np.uint8)
    for image, label in zip(images, labels):
        place = int(random.randint(3, 9)), int(random.randint(21, 26))
        cv2.putText(image, str(label), place, cv2.FONT_HERSHEY_SIMPLEX, random.uniform(0.7, 0.9), 255, 2)
    return images, labels


def mnist(folder):
    """As .gz and unpacked, beside the program, in data/, and where Gluon keeps them."""
    home = folder / ".home" / "datasets" / "mnist"
    for name, count, seed in (("train", _TRAIN, 1), ("t10k", _TEST, 2)):
        images, labels = _digits(count, seed)
        for kind, content in (("images-idx3", struct.pack(">4i", 2051, count, 28, 28) + images.tobytes()),
                              ("labels-idx1", struct.pack(">2i", 2049, count) + labels.tobytes())):
            for place in (folder, folder / "data", home):
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{name}-{kind}-ubyte").write_bytes(content)
                (place / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(content, 1))


def _pictures(count, seed):
    """Noisy pictures whose colour and shape tell the class, uint8 (count, 32, 32, 3), and their classes."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(np.uint8)
    images = random.randint(0, 60, (count, 32, 32, 3)).astype(np.uint8)
    for image, label in zip(images, labels):
        colour = [int(c) for c in cv2.cvtColor(np.array([[[18 * label, 255, 230]]], np.uint8), cv2.COLOR_HSV2BGR)[0, 0]]
        centre = tuple(int(c) for c in random.randint(10, 22, 2))
        if label % 2:
            cv2.circle(image, centre, 7, colour, -1)
        else:
            cv2.drawMarker(image, centre, colour, cv2.MARKER_CROSS, 14, 5)
    return images, labels


def cifar(folder):
    """In CIFAR-10's binary format."""
    for place in (folder / "data", folder / ".home" / "datasets" / "cifar10"):
        place.mkdir(parents=True, exist_ok=True)
        for i, name in enumerate([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]):
            images, labels = _pictures(_TRAIN // 5, i)
            rows = np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(len(images), -1)], axis=1)
            (place / name).write_bytes(rows.tobytes())


def pictures_in_records(folder):
    """RecordIO files of JPEGs, under the names that several programs have for them."""
    from mxnet import recordio
    (folder / "data" / "cifar").mkdir(parents=True, exist_ok=True)
    for count, seed, names in ((_TRAIN, 1, ("data/cifar10_train.rec", "data/cifar/train.rec", "test.rec")),
                               (_TEST, 2, ("data/cifar10_val.rec", "data/cifar/test.rec"))):
        images, labels = _pictures(count, seed)
        packed = [recordio.pack_img(recordio.IRHeader(0, float(label), i, 0), image) for i, (image, label) in enumerate(zip(images, labels))]
        for name in names:
            writer = recordio.MXRecordIO(str(folder / name), "w")
            for record in packed:
                writer.write(record)
            writer.close()
            (folder / name).with_suffix(".lst").touch()  # MXNet looks whether it is there


def _sentences(count, seed):
    """Sentences in which a word says much about the next."""
    random = np.random.RandomState(seed)
    words = [a + b + c for a in "bdfgklmn" for b in "aeiou" for c in "lmnrst"]
    followers = np.random.RandomState(0).randint(0, len(words), (len(words), 4))
    found = []
    for _ in range(count):
        word, sentence = random.randint(len(words)), []
        for _ in range(random.randint(5, 40)):
            sentence.append(words[word])
            word = followers[word, min(random.geometric(0.5) - 1, 3)]
        found.append(" ".join(sentence))
    return found


def text(folder):
    """As corpora of several names, with one sentence a line, and as text8, in one line."""
    (folder / "data").mkdir(exist_ok=True)
    for segment, count, seed in (("train", 600, 1), ("valid", 100, 2), ("test", 100, 3)):
        learned = set(" ".join(_sentences(600, 1)).split())  # programs with fixed vocabularies know no others
        # They take the end of a line for a part of its last word.
        lines = "".join(" ".join(w for w in line.split() if w in learned) + " .\n" for line in _sentences(count, seed))
        for name in (f"sherlockholmes.{segment}.txt", f"ptb.{segment}.txt", f"wiki.{segment}.tokens"):
            (folder / "data" / name).write_text(lines)
    (folder / "data" / "text8").write_text(" ".join(_sentences(1500, 4)))


def reviews(folder):
    """Two files of sentences, whose words differ."""
    place = folder / "data" / "rt-polaritydata"
    place.mkdir(parents=True, exist_ok=True)
    for name, seed, mark in (("pos", 1, "good"), ("neg", 2, "bad")):
        lines = "\n".join(f"{mark} {line}" for line in _sentences(1200, seed)) + "\n"
        (place / f"rt-polarity.{name}").write_text(lines)
        (folder / "data" / f"{name}.txt").write_text(lines)
    (folder / "word2vec.py").write_text("")  # for embeddings that were learned before


def ratings(folder):
    """Users, films and stars, separated as in MovieLens 100k and 10M."""
    random = np.random.RandomState(5)
    users, films = random.randn(200, 3), random.randn(300, 3)
    for name, between, count in (("ml-10M100K/r1.train", "::", 4000), ("ml-10M100K/r1.test", "::", 1000), ("ml-100k/u1.base", "\t", 4000),
                                 ("ml-100k/u1.test", "\t", 1000)):
        who, what = random.randint(1, 200, count), random.randint(1, 300, count)
        stars = np.clip(np.round(3 + (users[who] * films[what]).sum(1)), 1, 5)
        lines = "".join(between.join((str(w), str(f), str(int(s)), "0")) + "\n" for w, f, s in zip(who, what, stars))
        for place in (folder, folder / "data"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(lines)
    (folder / "ml-100k.zip").touch()


def clicks(folder):
    """Sparse rows in LibSVM's format; a tenth of the features say what the label is."""
    (folder / "data").mkdir(exist_ok=True)
    random = np.random.RandomState(6)
    weights = random.randn(5000)
    for name, count in (("avazu-app", 20000), ("avazu-app.t", 4000)):
        with open(folder / "data" / name, "w") as file:
            for _ in range(count):
                columns = np.sort(random.choice(5000, 15, replace=False))
                file.write(f"{int(weights[columns].sum() > 0)} {' '.join(f'{c}:1' for c in columns)}\n")


def years(folder):
    """Rows of 90 numbers in LibSVM's format, whose label is a linear function."""
    (folder / "data").mkdir(exist_ok=True)
    random = np.random.RandomState(7)
    weights = random.randn(90)
    with open(folder / "data" / "YearPredictionMSD", "w") as file:
        for _ in range(2000):
            values = random.randn(90)
            file.write(f"{2000 + values @ weights:.3f} {' '.join(f'{i + 1}:{v:.4f}' for i, v in enumerate(values))}\n")
    (folder / "data" / "YearPredictionMSD.bz2").touch()


def adults(folder):
    """Rows of a census: people with more years of school earn more."""
    (folder / "data").mkdir(exist_ok=True)
    random = np.random.RandomState(8)
    schools = ["HS-grad", "Bachelors", "Masters", "11th", "Some-college"]
    for name, count in (("adult.data", 2000), ("adult.test", 500)):
        with open(folder / "data" / name, "w") as file:
            for _ in range(count):
                years_of_school = random.randint(6, 17)
                row = [random.randint(18, 80), "Private", random.randint(10000, 300000), schools[random.randint(5)], years_of_school, "Never-married",
                       "Sales", "Not-in-family", "White", ("Male", "Female")[random.randint(2)], 0, 0, random.randint(20, 60), "United-States",
                       ">50K" if years_of_school + random.randn() > 11 else "<=50K"]
                file.write(", ".join(map(str, row)) + "\n")


def houses(folder):
    """Prices that follow the size of a house, as two tables."""
    random = np.random.RandomState(9)
    for name, count in (("train.csv", 300), ("test.csv", 50)):
        with open(folder / name, "w") as file:
            file.write("Id,MSSubClass,LotArea,Street,SaleCondition" + ",SalePrice" * (name == "train.csv") + "\n")
            for i in range(count):
                area = random.uniform(1000, 20000)
                row = [i, random.randint(20, 90), round(area), ("Pave", "Grvl")[random.randint(2)], ("Normal", "Partial")[random.randint(2)]]
                file.write(",".join(map(str, [*row, *([round(area * 12)] if name == "train.csv" else [])])) + "\n")


def loads(folder):
    """Hourly loads of eight customers, with a day's rhythm, and where models go."""
    (folder.parent / "models").mkdir(exist_ok=True)
    place = folder.parent / "data"
    place.mkdir(exist_ok=True)
    hours = np.arange(700)[:, None]
    values = 10 + 3 * np.sin(2 * np.pi * hours / 24 + np.arange(8)) + np.random.RandomState(10).randn(700, 8)
    np.savetxt(place / "electricity.txt", values, fmt="%.3f", delimiter=",")


def entities(folder):
    """Sentences with tags, as a table in JSON."""
    place = folder.parent / "data"
    place.mkdir(exist_ok=True)
    tokens = [line.split() for line in _sentences(300, 11)]
    tags = [["B-geo" if token.startswith("b") else "O" for token in sentence] for sentence in tokens]
    table = {"utterance_id": list(range(len(tokens))), "BILOU_tag": tags, "token": tokens, "POS_tag": tags}
    (place / "ner_data.json").write_text(json.dumps({name: dict(enumerate(column)) for name, column in table.items()}))


def curve(folder):
    """Points of a noisy cubic curve: a few to learn from, and many to be compared with."""
    random = np.random.RandomState(13)
    for name, count in (("toy_data_train.txt", 20), ("toy_data_test_whole.txt", 200)):
        x = np.sort(random.uniform(-6, 6, count))
        np.savetxt(folder / name, np.stack([x, x ** 3 + 3 * random.randn(count)], 1))


def faces(folder):
    """Grey pictures of 32 by 32."""
    place = folder / "pictures"
    place.mkdir(exist_ok=True)
    for i, image in enumerate(_digits(128, 12)[0]):
        cv2.imwrite(str(place / f"{i}.png"), cv2.copyMakeBorder(image, 2, 2, 2, 2, cv2.BORDER_CONSTANT))
