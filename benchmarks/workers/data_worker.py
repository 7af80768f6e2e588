"""Remex and MXNet 1.9.1 as peers of the data benchmark: the same program under two Pythons.

usage: data_worker.py THREADS
"""
import glob
import os
import resource
import sys

os.environ["OMP_NUM_THREADS"] = sys.argv[1]  # MXNet decodes with OpenMP's threads

import protocol

import mxnet as mx
from mxnet import autograd, gluon

MEAN, STD, BATCH = (123.68, 116.28, 103.53), (58.4, 57.12, 57.38), 32
SIDE, CROP = 256, 224


def iterator(path, threads, batch=BATCH, **options):
    """An endless iterator over batches out of a .rec file, as training wants them."""
    normalize = {f"{what}_{c}": v for what, values in (("mean", MEAN), ("std", STD)) for c, v in zip("rgb", values)}
    # On MXNet's default ctx it takes half of the processors at most.
    it = mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, CROP, CROP), batch_size=batch, resize=SIDE, mirror=True, ctx="cpu", device_id=-1,
                               preprocess_threads=threads, verbose=False, **normalize, **options)
    while True:
        for batch in it:
            batch.data[0].wait_to_read()
            yield batch
        it.reset()


def records(row):
    batches = iterator(row["rec"], row["threads"])
    first = next(batches).data[0].asnumpy()
    return (lambda: len(next(batches).label[0])), lambda: first[:4, :, ::8, ::8]


def folder(row):
    transform = gluon.data.vision.transforms.Compose([
        gluon.data.vision.transforms.Resize(SIDE, keep_ratio=True), gluon.data.vision.transforms.CenterCrop(CROP),
        gluon.data.vision.transforms.RandomFlipLeftRight(), gluon.data.vision.transforms.ToTensor(),
        gluon.data.vision.transforms.Normalize([m / 255 for m in MEAN], [s / 255 for s in STD])])
    dataset = gluon.data.vision.ImageFolderDataset(row["images"]).transform_first(transform)
    loader = gluon.data.DataLoader(dataset, BATCH, num_workers=row["threads"], last_batch="discard")

    def endless():
        while True:
            yield from loader
    batches = endless()

    def call():
        data, label = next(batches)
        data.wait_to_read()
        return len(label)
    return call, None


def decoding(row):
    """libjpeg-turbo alone, into memory that is there; none of these pictures can be decoded to a fraction: half of one is below 256 rows."""
    import simplejpeg
    contents, at = [], 0
    for path in sorted(glob.glob(os.path.join(row["images"], "*", "*.jpg"))):
        with open(path, "rb") as file:
            contents.append(file.read())
    height, width = simplejpeg.decode_jpeg_header(contents[0])[:2]
    memory = bytearray(height * width * 3)

    def call():
        nonlocal at
        for _ in range(BATCH):
            simplejpeg.decode_jpeg(contents[at % len(contents)], "BGR", buffer=memory)
            at += 1
        return BATCH
    return call, None


def training(row):
    """ResNet-18 by SGD, from the file or with its first batch again and again."""
    net = gluon.model_zoo.vision.resnet18_v1(classes=10)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    trainer, classes = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9}), gluon.loss.SoftmaxCrossEntropyLoss()
    batches = iterator(row["rec"], row["threads"], batch=row["batch"])
    kept = next(batches)

    def step():
        batch = next(batches) if row["from_file"] else kept
        with autograd.record():
            loss = classes(net(batch.data[0]), batch.label[0])
        loss.backward()
        trainer.step(row["batch"])
        mx.nd.waitall()
        return row["batch"]
    return step, None


def memory(row):
    """One epoch over a file, with a limit on the memory that the process may take; the answer is its peak."""
    batches = iterator(row["rec"], row["threads"])
    next(batches)
    with open("/proc/self/status") as status:
        data = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (data + row["limit"],) * 2)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak counts from now on
    before = protocol.high_water()
    images = 0
    while images < row["count"]:
        images += len(next(batches).label[0])
    return {"images": images, "grown": protocol.high_water() - before}


class Worker(protocol.Worker):
    """`round` runs calls for some seconds, and answers images, seconds and the processor's seconds, those of its own workers included."""

    def do_prepare(self, row, **_):
        self.call, result = self.prepare(row)
        self.call()
        return {"ready": True, "result": None if result is None else result().ravel().tolist()}

    def do_round(self, seconds):
        return protocol.rate(self.call, seconds)

    def do_memory(self, row):
        return memory(row)


if __name__ == "__main__":
    Worker(lambda row: globals()[row["what"]](row)).serve()
