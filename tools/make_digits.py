"""Make the digit files in data/ from the UCI handwritten digits.

The source is the set that scikit-learn carries: 1797 images of 8x8 pixels with values 0..16, the test half of UCI's
"Optical Recognition of Handwritten Digits". Each image is enlarged threefold with cubic interpolation, framed by two
empty pixels to 28x28 and scaled to 0..255. A shuffle with a fixed seed decides which images are for training.

The same input gives the same pixels and labels; the compressed bytes may differ between versions of zlib.

usage: python3 -m pip install numpy scikit-learn, then python3 tools/make_digits.py [FOLDER]
"""

import argparse
import gzip
import struct
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SOURCE_SIZE = 8
SOURCE_MAX = 16
SCALE = 3
MARGIN = 2
TEST_COUNT = 360
SHUFFLE_SEED = 20


def cubic_weight(distance):
    """The Catmull-Rom kernel: it passes through the source pixels and is smooth between them."""
    d = np.abs(distance)
    near = 1.5 * d**3 - 2.5 * d**2 + 1
    far = -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def enlarging_matrix():
    """Maps SOURCE_SIZE samples to SOURCE_SIZE * SCALE; beyond the border the source counts as empty paper."""
    centres = (np.arange(SOURCE_SIZE * SCALE) + 0.5) / SCALE - 0.5
    return cubic_weight(centres[:, None] - np.arange(SOURCE_SIZE)[None, :])


def enlarge(images):
    matrix = enlarging_matrix()
    large = np.einsum("ij,njk,lk->nil", matrix, images, matrix)
    pixels = np.clip(np.rint(large * (255 / SOURCE_MAX)), 0, 255).astype(np.uint8)
    return np.pad(pixels, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))


def write_idx(path, array):
    """The idx format: two zero bytes, type (8: unsigned byte), rank, big-endian dimensions, data."""
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes(), compresslevel=9, mtime=0))


def main():
    parser = argparse.ArgumentParser(description="Make the digit files in data/.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent / "data")
    folder = parser.parse_args().folder

    digits = load_digits()
    order = np.random.RandomState(SHUFFLE_SEED).permutation(len(digits.target))
    images = enlarge(digits.images)[order]
    labels = digits.target.astype(np.uint8)[order]

    folder.mkdir(parents=True, exist_ok=True)
    for prefix, part in (("train", slice(None, -TEST_COUNT)), ("t10k", slice(-TEST_COUNT, None))):
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images[part])
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", labels[part])
        print(f"{prefix}: {len(labels[part])} images, per digit {np.bincount(labels[part]).tolist()}")


if __name__ == "__main__":
    main()
