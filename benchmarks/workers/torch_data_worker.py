"""Load data with PyTorch's DataLoader over Pillow and torchvision, for `data_loading.py`.

Where torchvision cannot be imported (no build for this torch), `TRANSFORM` makes the same calls of Pillow and torch.

usage: torch_data_worker.py THREADS
"""
import glob
import os
import random

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import PIL.Image
import torch

from harness import worker_protocol

MEAN, STD, BATCH = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 32
SIDE, CROP = 256, 224

try:
    from torchvision import transforms
    TRANSFORM = transforms.Compose([transforms.Resize(SIDE), transforms.CenterCrop(CROP), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                    transforms.Normalize(MEAN, STD)])
    KIND = "torchvision"
except (ImportError, RuntimeError):  # the latter from a build for another torch
    KIND = "by hand"
    _MEAN, _STD = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))

    def TRANSFORM(image):
        width, height = image.size
        short = min(width, height)
        image = image.resize((SIDE * width // short, SIDE * height // short), PIL.Image.Resampling.BILINEAR)
        left, top = ((size - CROP) // 2 for size in image.size)
        image = image.crop((left, top, left + CROP, top + CROP))
        if random.random() < 0.5:
            image = image.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image, np.uint8, copy=True)).permute(2, 0, 1).contiguous().to(torch.float32).div(255)
        return pixels.sub_(_MEAN).div_(_STD)


class Folder(torch.utils.data.Dataset):
    """Images of a folder of class folders."""

    def __init__(self, path):
        self.paths = sorted(glob.glob(os.path.join(path, "*", "*.jpg")))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as file:
            image = PIL.Image.open(file).convert("RGB")
        return TRANSFORM(image), int(os.path.basename(os.path.dirname(self.paths[i])))


def prepare(row):
    loader = torch.utils.data.DataLoader(Folder(row["images"]), BATCH, num_workers=row["threads"], drop_last=True, persistent_workers=True)

    def endless():
        while True:
            yield from loader
    batches = endless()
    return lambda: len(next(batches)[1])


class Worker(worker_protocol.Worker):
    """Answers the requests of data_worker.py."""

    def do_prepare(self, row, **_):
        self.call = self.prepare(row)
        self.call()
        return {"ready": True, "kind": KIND}

    def do_round(self, seconds):
        return worker_protocol.rate(self.call, seconds)


if __name__ == "__main__":
    torch.set_num_threads(1)
    Worker(prepare).serve()
