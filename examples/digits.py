"""The hand-written digits that scikit-learn carries, as image files in a folder for each class."""
import os
import sys

import cv2
from sklearn.datasets import load_digits
from tqdm import tqdm


def write_images(folder, size=28):
    """Write 1797 grey PNG files ``folder/<digit>/<number>.png`` of `size` x `size` pixels; returns how many."""
    digits = load_digits()
    for i, (image, label) in enumerate(zip(tqdm(digits.images, desc="writing images", unit="img", file=sys.stderr), digits.target)):
        os.makedirs(os.path.join(folder, str(label)), exist_ok=True)
        pixels = cv2.resize((image * (255 / 16)).astype("uint8"), (size, size), interpolation=cv2.INTER_CUBIC)
        if not cv2.imwrite(os.path.join(folder, str(label), f"{i:04}.png"), pixels):
            raise OSError(f"cannot write images to {folder}")
    return len(digits.images)


if __name__ == "__main__":
    write_images(sys.argv[1] if len(sys.argv) > 1 else "digits")
