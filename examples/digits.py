"""Write scikit-learn's hand-written digits as image files, into a folder for each class.

    python digits.py [FOLDER]
"""
import argparse
import os
import sys

import cv2
from sklearn.datasets import load_digits
from tqdm import tqdm


def write_images(folder, size=28):
    """Write 1797 grey PNG files ``folder/<digit>/<number>.png`` of `size` x `size` pixels; return their number."""
    digits = load_digits()
    for i, (image, label) in enumerate(zip(tqdm(digits.images, desc="writing images", unit="img", file=sys.stderr), digits.target)):
        os.makedirs(os.path.join(folder, str(label)), exist_ok=True)
        pixels = cv2.resize((image * (255 / 16)).astype("uint8"), (size, size), interpolation=cv2.INTER_CUBIC)
        if not cv2.imwrite(os.path.join(folder, str(label), f"{i:04}.png"), pixels):
            raise OSError(f"cannot write images to {folder}")
    return len(digits.images)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="digits", help="the folder for the images")
    write_images(parser.parse_args().folder)
