"""Data sets for tests and examples: files that are there, or that can be fetched."""

import gzip as _gzip
import os as _os
import shutil as _shutil

import numpy as np

from ._symbind import MXNetValueError

_MNIST = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def download(url, fname=None, dirname=None, overwrite=False, retries=5):
    """Downloads a file unless it exists, and returns its path. Without a network it raises an error with advice."""
    import urllib.error
    import urllib.request

    fname = fname or url.split("/")[-1]
    if dirname:
        fname = _os.path.join(dirname, fname)
    if _os.path.exists(fname) and not overwrite:
        return fname
    _os.makedirs(_os.path.dirname(fname) or ".", exist_ok=True)
    partial = f"{fname}.{_os.getpid()}.part"
    try:
        for attempt in range(max(1, retries)):
            try:
                with urllib.request.urlopen(url, timeout=30) as source, open(partial, "wb") as target:
                    _shutil.copyfileobj(source, target)
                _os.replace(partial, fname)
                return fname
            except (urllib.error.URLError, OSError) as error:
                if attempt + 1 == max(1, retries):
                    path = _os.path.abspath(fname)
                    raise OSError(f"{url} cannot be fetched ({error}); put the file at {path} by hand") from None
    finally:
        if _os.path.exists(partial):
            _os.remove(partial)


def get_zip_data(data_dir, url, data_origin_name):
    """Fetches a zip archive and unpacks it in `data_dir`."""
    import zipfile

    path = download(url, data_origin_name, dirname=data_dir)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(data_dir)


def get_bz2_data(data_dir, data_name, url, data_origin_name):
    """Fetches a bz2 file and unpacks it as `data_name` in `data_dir`."""
    import bz2

    target = _os.path.join(data_dir, data_name)
    if not _os.path.exists(target):
        path = download(url, data_origin_name, dirname=data_dir)
        with bz2.BZ2File(path) as source, open(target, "wb") as file:
            _shutil.copyfileobj(source, file)


def _find_mnist(name):
    """The path of one of MNIST's files, plain or gzipped; raises FileNotFoundError with the folders searched."""
    from .base import data_dir

    folders = ["data", _os.path.join("data", "mnist"), ".", _os.path.join(data_dir(), "mnist")]
    for folder in folders:
        for path in (_os.path.join(folder, name), _os.path.join(folder, name + ".gz")):
            if _os.path.exists(path):
                return path
    searched = ", ".join(_os.path.abspath(folder) for folder in folders)
    raise FileNotFoundError(f"MNIST's file {name} (or {name}.gz) is in none of these folders: {searched}")


def _read_idx(path):
    with _gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
        content = file.read()
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise MXNetValueError(f"{path} is not an idx file of bytes")
    rank = content[3]
    shape = [int(dim) for dim in np.frombuffer(content, ">i4", rank, 4)]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def get_mnist_ubyte():
    """Makes sure that MNIST's four files are unpacked in the folder `data`."""
    _os.makedirs("data", exist_ok=True)
    for name in _MNIST:
        target = _os.path.join("data", name)
        if not _os.path.exists(target):
            path = _find_mnist(name)
            with _gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as source:
                content = source.read()
            with open(target + ".part", "wb") as file:
                file.write(content)
            _os.replace(target + ".part", target)


def get_mnist():
    """MNIST as NumPy arrays by name: images of shape (n, 1, 28, 28) from 0 to 1, and labels."""
    images_and_labels = [_read_idx(_find_mnist(name)) for name in _MNIST]
    train, train_label, test, test_label = images_and_labels
    return {
        "train_data": train[:, None].astype(np.float32) / 255,
        "train_label": train_label,
        "test_data": test[:, None].astype(np.float32) / 255,
        "test_label": test_label,
    }


def get_mnist_iterator(batch_size, input_shape, num_parts=1, part_index=0):
    """(training, validation) MNISTIters; images are flat where `input_shape` has one dimension."""
    from .io import MNISTIter

    flat = len(input_shape) == 1
    paths = [_find_mnist(name) for name in _MNIST]
    train = MNISTIter(
        image=paths[0],
        label=paths[1],
        batch_size=batch_size,
        shuffle=True,
        flat=flat,
        num_parts=num_parts,
        part_index=part_index,
    )
    validation = MNISTIter(
        image=paths[2], label=paths[3], batch_size=batch_size, flat=flat, num_parts=num_parts, part_index=part_index
    )
    return train, validation


def get_mnist_pkl():
    """Downloads MNIST as data/mnist.pkl.gz, and returns its path."""
    return download("http://deeplearning.net/data/mnist/mnist.pkl.gz", dirname="data")


def get_cifar10():
    """Fetches the records of CIFAR-10 into data/cifar, unless they are there."""
    names = ("train.rec", "test.rec", "train.lst", "test.lst")
    if not all(_os.path.exists(_os.path.join("data", "cifar", name)) for name in names):
        get_zip_data("data", "http://data.mxnet.io/mxnet/data/cifar10.zip", "cifar10.zip")


def get_im2rec_path(home_env="MXNET_HOME"):
    """The path of the program that packs images into records, also known as symbind-im2rec. `home_env` names a variable
    that may hold another folder with tools/im2rec.py."""
    homes = [_os.environ[home_env]] if home_env in _os.environ else []
    for home in (*homes, _os.path.dirname(_os.path.abspath(__file__))):
        path = _os.path.join(home, "tools", "im2rec.py")
        if _os.path.isfile(path):
            return path
    raise OSError("tools/im2rec.py is missing in this installation of Symbind: install it again")


def download_model(model_name, dst_dir="./", meta_info=None):
    """Fetches the two files of a network whose addresses `meta_info` has: {name: {"symbol": url, "params": url}}.

    Gives the prefix and the epoch to load it with; (None, 0) where `meta_info` does not have the name.
    """
    if meta_info is None:
        raise MXNetValueError(
            "download_model needs the addresses of the files: meta_info={name: {'symbol': …, 'params': …}}"
        )
    if model_name not in meta_info:
        return None, 0
    prefix = _os.path.join(dst_dir, model_name)
    download(meta_info[model_name]["symbol"], prefix + "-symbol.json")
    download(meta_info[model_name]["params"], prefix + "-0000.params")
    return prefix, 0
