"""The handwritten digits of data/: reading them, and drawing images in a terminal."""

import gzip
from pathlib import Path

import numpy as np

DATA = str(Path(__file__).resolve().parents[3] / "data")
SHADES = " ░▒▓█"


def read_idx(path):
    """The array of an idx file of bytes, packed or not."""
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rb") as file:
        content = file.read()
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is no idx file of bytes")
    rank = content[3]
    shape = np.frombuffer(content, ">i4", rank, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def find_idx(folder, name):
    for path in (Path(folder, name + ".gz"), Path(folder, name)):
        if path.exists():
            return path
    raise FileNotFoundError(f"neither {name} nor {name}.gz is in {folder}")


def read_digits(folder, part):
    """Images (count, 1, height, width) with values from 0 to 1, and their labels; `part` is "train" or "t10k"."""
    images = read_idx(find_idx(folder, f"{part}-images-idx3-ubyte"))
    labels = read_idx(find_idx(folder, f"{part}-labels-idx1-ubyte"))
    return images[:, np.newaxis].astype(np.float32) / 255, labels.astype(np.float32)


def draw(images, across=4):
    """Images (count, height, width) with values from 0 to 1 as lines of text, some side by side."""
    lines = []
    for first in range(0, len(images), across):
        row = np.concatenate(images[first : first + across], axis=1)
        row = row[: len(row) // 2 * 2].reshape(-1, 2, row.shape[1]).mean(axis=1)  # two pixels make a character
        shade = np.clip(row * len(SHADES), 0, len(SHADES) - 1).astype(int)
        lines += ["".join(SHADES[value] for value in line) for line in shade]
    return "\n".join(lines)
