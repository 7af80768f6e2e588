"""Load data with Remex or MXNet 1.9.1, for `data_loading.py`.

usage: data_worker.py THREADS
"""
import glob
import os
import resource
import sys

os.environ["OMP_NUM_THREADS"] = sys.argv[1]  # MXNet decodes with OpenMP's threads

import mxnet as mx
from harness import worker_protocol
from mxnet import autograd, gluon

MEAN, STD, BATCH = (123.68, 116.28, 103.53), (58.4, 57.12, 57.38), 32
SIDE, CROP = 256, 224


def iterator(path, threads, batch=BATCH, **options):
    """Yield batches of a .rec file without end, preprocessed for training."""
    normalize = {f"{what}_{c}": v for what, values in (("mean", MEAN), ("std", STD)) for c, v in zip("rgb", values)}
    # On its default ctx MXNet uses half of the processors at most.
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
    """Return a function that decodes with libjpeg-turbo alone, into a buffer, at full size: half of these images would be below 256 rows."""
    import simplejpeg
    contents, position = [], 0
    for path in sorted(glob.glob(os.path.join(row["images"], "*", "*.jpg"))):
        with open(path, "rb") as file:
            contents.append(file.read())
    height, width = simplejpeg.decode_jpeg_header(contents[0])[:2]
    memory = bytearray(height * width * 3)

    def call():
        nonlocal position
        for _ in range(BATCH):
            simplejpeg.decode_jpeg(contents[position % len(contents)], "BGR", buffer=memory)
            position += 1
        return BATCH
    return call, None


def training(row):
    """Return a step of ResNet-18 by SGD, on batches of the file or always on its first."""
    net = gluon.model_zoo.vision.resnet18_v1(classes=10)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    trainer, classes = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9}), gluon.loss.SoftmaxCrossEntropyLoss()
    batches = iterator(row["rec"], row["threads"], batch=row["batch"])
    first = next(batches)

    def step():
        batch = next(batches) if row["from_file"] else first
        with autograd.record():
            loss = classes(net(batch.data[0]), batch.label[0])
        loss.backward()
        trainer.step(row["batch"])
        mx.nd.waitall()
        return row["batch"]
    return step, None


def memory(row):
    """Read a file once, with a limit on the memory of the process; return the number of images and the growth of the peak."""
    batches = iterator(row["rec"], row["threads"])
    next(batches)
    with open("/proc/self/status") as status:
        data = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (data + row["limit"],) * 2)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak
    before = worker_protocol.high_water()
    images = 0
    while images < row["count"]:
        images += len(next(batches).label[0])
    return {"images": images, "grown": worker_protocol.high_water() - before}


class Worker(worker_protocol.Worker):
    """Answers `round` with images, seconds and processor seconds, including those of its own workers."""

    def do_prepare(self, row, **_):
        self.call, result = self.prepare(row)
        self.call()
        return {"ready": True, "result": None if result is None else result().ravel().tolist()}

    def do_round(self, seconds):
        return worker_protocol.rate(self.call, seconds)

    def do_memory(self, row):
        return memory(row)


if __name__ == "__main__":
    Worker(lambda row: globals()[row["what"]](row)).serve()
