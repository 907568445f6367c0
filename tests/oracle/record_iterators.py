#!/usr/bin/env python3
"""Records the batches of MXNet 1.9.1's iterators into recorded/iterators.json.

    python record_iterators.py [--out DIR]

See README.md for the environment and the format of what is written.
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import struct
import tempfile

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "data"

FOUR_EPOCHS = ["epoch", "reset"] * 4
# (samples, batch size, what is done); each is asked in every way of handling the last batch.
WALKS = [
    (10, 4, FOUR_EPOCHS),
    (10, 5, FOUR_EPOCHS),
    (7, 3, FOUR_EPOCHS),
    (9, 4, FOUR_EPOCHS),
    (11, 4, FOUR_EPOCHS),
    (4, 4, FOUR_EPOCHS),
    (3, 4, FOUR_EPOCHS),
    (3, 6, FOUR_EPOCHS),
    (1, 1, FOUR_EPOCHS),
    (10, 4, ["next", "reset", "epoch", "reset", "next", "next", "reset", "epoch", "reset", "epoch"]),
    (10, 4, ["epoch", "reset", "reset", "epoch", "reset", "next", "reset", "epoch"]),
    (10, 4, ["epoch", "hard_reset", "epoch", "reset", "hard_reset", "epoch", "reset", "epoch"]),
]
# Batches larger than twice the data; MXNet cannot roll them over.
LARGE_WALKS = [(3, 7, FOUR_EPOCHS), (3, 8, FOUR_EPOCHS), (5, 12, FOUR_EPOCHS)]


def arrays(samples):
    """Two numbers a sample, and a label."""
    return np.arange(samples * 2, dtype="float32").reshape(samples, 2), np.arange(samples, dtype="float32") + 100


def numbers(array):
    """Whole ones without a point."""
    values = array.asnumpy().ravel().tolist()
    return [str(value) if not np.isfinite(value) else int(value) if value == int(value) else value for value in values]


def batch(b):
    return {
        "data": [numbers(a) for a in b.data],
        "label": [numbers(a) for a in b.label],
        "pad": b.pad,
    }


def walk(it, steps):
    """What each step gives: batches; for `next` one at most."""
    given = []
    for step in steps:
        if step == "epoch":
            given.append([batch(b) for b in it])
        elif step == "next":
            given.append([batch(it.next())])
        else:
            getattr(it, step)()
            given.append([])
    return given


def descs(given):
    return [
        {"name": d.name, "shape": list(d.shape), "dtype": np.dtype(d.dtype).name, "layout": d.layout} for d in given
    ]


def described(it):
    return {"provide_data": descs(it.provide_data), "provide_label": descs(it.provide_label)}


def ndarray_iters():
    for handle in ["pad", "discard", "roll_over"]:
        for samples, batch_size, steps in WALKS + (LARGE_WALKS if handle != "roll_over" else []):
            data, label = arrays(samples)
            it = mx.io.NDArrayIter(data, label, batch_size, last_batch_handle=handle)
            yield {
                "samples": samples,
                "batch_size": batch_size,
                "last_batch_handle": handle,
                **described(it),
                "steps": steps,
                "batches": walk(it, steps),
            }


def names():
    a, b, c = np.zeros((4, 3)), np.zeros((4, 2)), np.zeros(4)
    half = mx.nd.zeros((4, 2), dtype="float16")
    whole = mx.nd.zeros((4,), dtype="int32")
    for name, it in {
        "one": mx.io.NDArrayIter(a, c, 2),
        "no_label": mx.io.NDArrayIter(a, batch_size=2),
        "list_of_one": mx.io.NDArrayIter([a], [c], 2),
        "lists": mx.io.NDArrayIter([a, b], [c, b], 2),
        "by_name": mx.io.NDArrayIter({"right": a, "left": b}, {"digit": c}, 2),
        "other_names": mx.io.NDArrayIter([a, b], c, 2, data_name="x", label_name="y"),
        "layout": mx.io.NDArrayIter(a, c, 2, layout="NTC"),
        "types": mx.io.NDArrayIter(half, whole, 2),
    }.items():
        yield {"id": name, **described(it)}


def wrapped():
    def inner(samples=10, handle="pad"):
        return mx.io.NDArrayIter(*arrays(samples), 4, last_batch_handle=handle)

    for size in [2, 3, 5]:
        for handle in ["pad", "roll_over"]:
            for reset_internal in [True, False]:
                it = mx.io.ResizeIter(inner(handle=handle), size, reset_internal)
                yield {
                    "iterator": "ResizeIter",
                    "size": size,
                    "reset_internal": reset_internal,
                    "last_batch_handle": handle,
                    **described(it),
                    "steps": FOUR_EPOCHS,
                    "batches": walk(it, FOUR_EPOCHS),
                }
    steps = ["epoch", "reset", "next", "reset", "epoch"]
    it = mx.io.PrefetchingIter(inner())
    yield {"iterator": "PrefetchingIter", **described(it), "steps": steps, "batches": walk(it, steps)}
    it = mx.io.PrefetchingIter(
        [inner(), inner()],
        rename_data=[{"data": "left"}, {"data": "right"}],
        rename_label=[{"softmax_label": "one"}, {"softmax_label": "two"}],
    )
    yield {"iterator": "PrefetchingIter of two", **described(it), "steps": steps, "batches": walk(it, steps)}


def numbered_images(folder, count):
    """Images of three pixels that spell their own number."""
    number = np.arange(count)
    pixels = np.stack([number & 255, number >> 8 & 255, number >> 16], axis=1).astype("uint8")
    image, label = folder / "numbered-images", folder / "numbered-labels"
    image.write_bytes(struct.pack(">IIII", 0x803, count, 1, 3) + pixels.tobytes())
    label.write_bytes(struct.pack(">II", 0x801, count) + (number % 10).astype("uint8").tobytes())
    return image, label


def mnist_iters(folder):
    paths = {}
    for what in ["images-idx3", "labels-idx1"]:
        paths[what] = folder / f"t10k-{what}-ubyte"
        with gzip.open(f"{DIGITS}/t10k-{what}-ubyte.gz") as packed, open(paths[what], "wb") as plain:
            shutil.copyfileobj(packed, plain)
    images = np.frombuffer(paths["images-idx3"].read_bytes()[16:], "uint8").reshape(-1, 28, 28)
    number = {image.tobytes(): i for i, image in enumerate(images)}

    for options in [
        {"batch_size": 100, "shuffle": False},
        {"batch_size": 128},
        {"batch_size": 60, "seed": 5, "flat": True},
        {"batch_size": 10, "shuffle": False, "num_parts": 7, "part_index": 2},
        {"batch_size": 51, "num_parts": 7, "part_index": 6},
        {"batch_size": 40, "num_parts": 3, "part_index": 1, "seed": -7},
    ]:
        it = mx.io.MNISTIter(image=str(paths["images-idx3"]), label=str(paths["labels-idx1"]), silent=True, **options)
        epochs = []
        for _ in range(2):
            batches = []
            for b in it:
                data = b.data[0].asnumpy()
                samples = [number[(image * 256).astype("uint8").tobytes()] for image in data.reshape(-1, 28, 28)]
                # A line through the middle of the first image; the others follow from the sample's number.
                line = data.reshape(-1, 28, 28)[0, 14].tolist()
                batches.append({"samples": samples, "line": line, "label": numbers(b.label[0]), "pad": b.pad})
            epochs.append(batches)
            it.reset()
        yield {"options": options, **described(it), "epochs": epochs}


def large_orders(folder):
    count, every = 60001, 997
    image, label = numbered_images(folder, count)
    for seed in [0, 5, -7]:
        it = mx.io.MNISTIter(image=str(image), label=str(label), batch_size=1, seed=seed, silent=True)
        order = []
        for b in it:
            low, middle, high = (b.data[0].asnumpy().ravel() * 256).astype(int).tolist()
            order.append(low | middle << 8 | high << 16)
        yield {"count": count, "seed": seed, "every": every, "samples": order[::every]}


CSV_DATA = "".join(f"{i}, {i + 0.5},{-i}\n" for i in range(7))
CSV_LABEL = "".join(f"{i * 10}\n" for i in range(7))
CSV_LABELS = "".join(f"{i},{i + 1}\r\n" for i in range(7))
LIBSVM_DATA = "1 0:1 2:3.5\n-1 1:2\n0\n3 0:4 1:5 2:6\n2 2:1\n"
LIBSVM_LABEL = "1 0:1 1:9\n1 1:2\n0\n3 0:4 \n2 \n"


def text_iters(folder):
    """A case has the texts of its files. MXNet leaves the last batch's padding as it was: only `pad` is compared."""

    def path(name, text):
        (folder / name).write_text(text, newline="")
        return str(folder / name)

    for files, options in [
        ({"data_csv": CSV_DATA}, {"data_shape": [3], "batch_size": 3}),
        ({"data_csv": CSV_DATA}, {"data_shape": [3, 1], "batch_size": 2, "round_batch": True}),
        ({"data_csv": CSV_DATA, "label_csv": CSV_LABEL}, {"data_shape": [1, 3], "batch_size": 4}),
        ({"data_csv": CSV_DATA, "label_csv": CSV_LABELS}, {"data_shape": [3], "label_shape": [2], "batch_size": 7}),
        ({"data_csv": CSV_LABELS}, {"data_shape": [2], "batch_size": 3, "dtype": "int32"}),
        ({"data_csv": CSV_LABELS}, {"data_shape": [2], "batch_size": 3, "dtype": "int64"}),
        ({"data_csv": "1e3,nan\n\n-inf,.5,\n +2 ,1e-30"}, {"data_shape": [2], "batch_size": 1}),
    ]:
        it = mx.io.CSVIter(**{name: path(name, text) for name, text in files.items()}, **options)
        yield {
            "files": files,
            "options": options,
            **described(it),
            "steps": FOUR_EPOCHS,
            "batches": walk(it, FOUR_EPOCHS),
        }
    for files, options in [
        ({"data_libsvm": LIBSVM_DATA}, {"data_shape": [3], "batch_size": 2}),
        ({"data_libsvm": LIBSVM_DATA}, {"data_shape": [4], "batch_size": 5}),
        (
            {"data_libsvm": LIBSVM_DATA, "label_libsvm": LIBSVM_LABEL},
            {"data_shape": [3], "label_shape": [2], "batch_size": 3},
        ),
    ]:
        it = mx.io.LibSVMIter(**{name: path(name, text) for name, text in files.items()}, **options)
        steps = ["epoch", "reset", "epoch"]
        yield {"files": files, "options": options, **described(it), "steps": steps, "batches": walk(it, steps)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=HERE / "recorded", type=pathlib.Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        recorded = {
            "ndarray_iter": list(ndarray_iters()),
            "names": list(names()),
            "wrapped": list(wrapped()),
            "mnist_iter": list(mnist_iters(folder)),
            "large_orders": list(large_orders(folder)),
            "text_iters": list(text_iters(folder)),
        }
    # One case a line, for reading by eye.
    parts = ['"format": "symbind-iterators-1"', f'"mxnet": "{mx.__version__}"']
    for key, cases in recorded.items():
        parts.append('"%s": [\n%s\n]' % (key, ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)))
    (out / "iterators.json").write_text("{" + ",\n".join(parts) + "}\n")
    # MXNet's prefetching threads never end.
    os._exit(0)


if __name__ == "__main__":
    main()
