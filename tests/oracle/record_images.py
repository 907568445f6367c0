#!/usr/bin/env python3
"""Records what MXNet 1.9.1 makes of images into recorded/images.json.gz.

    python record_images.py [--out DIR]

Decoded are the files of recorded/images; resized and augmented are images made by a formula, which the tests know too.
See README.md for the environment.
"""

import argparse
import gzip
import json
import os
import pathlib
import struct
import tempfile
import zlib

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")

import image_cases  # noqa: E402
import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def pattern(height, width, channels):
    """Hills with some noise."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    return ((y * 5 + x * 3 + c * 40 + (y * 7 + x * 11) % 13 * 4) % 256).astype("uint8")


def png(image):
    """The bytes of a PNG file."""
    height, width, channels = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def answer(array):
    values = array.asnumpy()
    return {"shape": list(values.shape), "data": [round(float(value), 4) for value in values.ravel()]}


def decoded(folder):
    for path in sorted((folder / "images").iterdir()):
        for flag, to_rgb in [(1, 1), (1, 0), (0, 1)]:
            image = mx.image.imdecode(path.read_bytes(), flag=flag, to_rgb=to_rgb)
            yield {"file": path.name, "flag": flag, "to_rgb": to_rgb, **answer(image)}


def resized():
    for height, width, channels in [(24, 32, 3), (7, 9, 3), (16, 16, 1), (1, 5, 3)]:
        image = mx.nd.array(pattern(height, width, channels), dtype="uint8")
        for to_height, to_width in [(13, 17), (40, 50), (height * 2, width * 2), (12, 16), (8, 60), (1, 1)]:
            for interp in range(5):
                for dtype in ["uint8", "float32"]:
                    result = mx.image.imresize(image.astype(dtype), to_width, to_height, interp=interp)
                    case = {"from": [height, width, channels], "to": [to_height, to_width], "interp": interp}
                    yield {**case, "dtype": dtype, **answer(result)}


def bordered():
    image = mx.nd.array(pattern(3, 4, 3), dtype="uint8")
    for kind in range(5):
        result = mx.image.copyMakeBorder(image, 1, 2, 3, 2, type=kind, values=(1, 2, 3))
        yield {"type": kind, **answer(result)}


# What is done without chance.
AUGMENTATIONS = [
    {},
    {"resize": 14},
    {"resize": 25, "inter_method": 2},
    {"resize": 18, "inter_method": 3},
    {"resize": 18, "inter_method": 0},
    {"resize": 20, "inter_method": 4},
    {"resize": 22, "inter_method": 9},
    {"mirror": True},
    {"pad": 3, "fill_value": 9},
    {"rotate": 30},
    {"rotate": 90, "fill_value": 7},
    {"mean_r": 3.0, "mean_g": 5.0, "std_g": 2.0, "std_b": 3.0, "scale": 0.5},
    {"max_crop_size": 7, "min_crop_size": 7},
    {"max_random_scale": 0.5, "min_random_scale": 0.5},
    {"max_random_scale": 2.0, "min_random_scale": 2.0},
    {"min_img_size": 30.0},
    {"max_img_size": 9.0},
    {"dtype": "uint8"},
    {"dtype": "int8"},
]


def write_records(path, records):
    writer = mx.recordio.MXIndexedRecordIO(path + ".idx", path + ".rec", "w")
    for i, (label, image) in enumerate(records):
        writer.write_idx(i, mx.recordio.pack((0, label, i + 100, 0), png(image)))
    writer.close()


def augmented(folder):
    for height, width, channels in [(24, 31, 3), (9, 7, 3), (17, 20, 4), (10, 12, 1)]:
        path = str(folder / f"{height}")
        write_records(path, [(1.0, pattern(height, width, channels))])
        for shape in [(channels, 6, 8), (channels, 20, 16)]:
            for options in AUGMENTATIONS:
                if channels == 4 and options.keys() & {"rotate", "pad", "min_img_size"}:
                    continue  # MXNet fills alpha differently
                it = mx.io.ImageRecordIter(
                    path_imgrec=path + ".rec", data_shape=shape, batch_size=1, verbose=False, **options
                )
                case = {"image": [height, width, channels], "data_shape": shape, "options": options}
                yield {**case, **answer(it.next().data[0])}


def walked(folder):
    """Labels of the batches of three epochs."""
    path = str(folder / "walk")
    write_records(path, [(float(i), pattern(4, 5, 3)) for i in range(10)])
    for options in [
        {"batch_size": 4},
        {"batch_size": 5},
        {"batch_size": 7},
        {"batch_size": 15},
        # Two epochs: of a third, whose batches are full, MXNet's last one sometimes has the pad of another.
        {"batch_size": 3, "path_imgidx": True, "epochs": 2},
        {"batch_size": 2, "num_parts": 3, "part_index": 0},
        {"batch_size": 2, "num_parts": 3, "part_index": 1},
        {"batch_size": 2, "num_parts": 3, "part_index": 2},
        {"batch_size": 2, "num_parts": 3, "part_index": 0, "path_imgidx": True},
        {"batch_size": 2, "num_parts": 3, "part_index": 1, "path_imgidx": True},
        {"batch_size": 2, "num_parts": 3, "part_index": 2, "path_imgidx": True},
        {"batch_size": 10, "shuffle": True, "epochs": 1},
        {"batch_size": 10, "shuffle": True, "seed": 7, "epochs": 1},
        {"batch_size": 10, "shuffle": True, "seed": 7, "path_imgidx": True, "epochs": 1},
    ]:
        arguments = dict(options)
        epochs = arguments.pop("epochs", 3)
        if arguments.pop("path_imgidx", False):
            arguments["path_imgidx"] = path + ".idx"
        it = mx.io.ImageRecordIter(path_imgrec=path + ".rec", data_shape=(3, 4, 5), verbose=False, **arguments)
        given = []
        for _ in range(epochs):
            given.append([{"label": batch.label[0].asnumpy().tolist(), "pad": batch.pad} for batch in it])
            it.reset()
        yield {"options": options, "epochs": given}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=HERE / "recorded", type=pathlib.Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        recorded = {
            "decoded": list(decoded(out)),
            "resized": list(resized()),
            "bordered": list(bordered()),
            "augmented": list(augmented(folder)),
            "walked": list(walked(folder)),
            "functions": [{"name": name, **answer(image)} for name, image in image_cases.answers(mx, pattern)],
        }
    parts = ['"format": "symbind-images-1"', f'"mxnet": "{mx.__version__}"']
    for key, cases in recorded.items():
        parts.append('"%s": [\n%s\n]' % (key, ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)))
    text = "{" + ",\n".join(parts) + "}\n"
    (out / "images.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    os._exit(0)  # MXNet's prefetching threads never end


if __name__ == "__main__":
    main()
