"""Packs folders of images into RecordIO files, with the options of MXNet's im2rec.py.

    python -m symbind.tools.im2rec --list --recursive PREFIX ROOT    # PREFIX.lst: which images, with which labels
    python -m symbind.tools.im2rec --resize 256 PREFIX ROOT          # PREFIX.rec and PREFIX.idx, from PREFIX.lst

A list has a line for each image: a number, its label or labels, and its path under ROOT, between tabs. With --recursive
every folder is a class; otherwise all labels are 0.
"""

import argparse
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from symbind import recordio  # not relative: the file is also run by its path
from symbind.image import fixed_crop, imdecode, imencode, resize_short

EVERY = 1000  # images between two lines of progress


def find_images(root, recursive, extensions):
    """(number, path under root, label) of every image; with `recursive`, the names of the classes, by label."""
    extensions = tuple(extension.lower() for extension in extensions)
    found, classes = [], []
    if not recursive:
        names = sorted(name for name in os.listdir(root) if name.lower().endswith(extensions))
        return [(i, name, 0) for i, name in enumerate(names)], classes
    for folder, folders, names in os.walk(root, followlinks=True):
        folders.sort()
        images = sorted(name for name in names if name.lower().endswith(extensions))
        if not images:
            continue
        label = len(classes)
        classes.append(os.path.relpath(folder, root))
        for name in images:
            found.append((len(found), os.path.relpath(os.path.join(folder, name), root), label))
    return found, classes


def write_list(path, images):
    with open(path, "w") as file:
        for number, name, label in images:
            file.write(f"{number}\t{float(label):f}\t{name}\n")


def make_lists(arguments):
    images, classes = find_images(arguments.root, arguments.recursive, arguments.exts)
    if not images:
        sys.exit(f"im2rec: there are no images ({' '.join(arguments.exts)}) in {arguments.root}")
    for label, name in enumerate(classes):
        print(name, label)
    if arguments.shuffle:
        random.seed(100)
        random.shuffle(images)
    written = []
    for chunk in range(arguments.chunks):
        part = images[len(images) * chunk // arguments.chunks : len(images) * (chunk + 1) // arguments.chunks]
        suffix = f"_{chunk}" if arguments.chunks > 1 else ""
        tests = int(len(part) * arguments.test_ratio)
        trains = int(len(part) * arguments.train_ratio)
        if arguments.train_ratio == 1.0:
            sets = {"": part}
        else:
            sets = {"_test": part[:tests], "_val": part[tests + trains :], "_train": part[tests : tests + trains]}
        for name, chosen in sets.items():
            if chosen:
                written.append(f"{arguments.prefix}{suffix}{name}.lst")
                write_list(written[-1], chosen)
                print(f"{written[-1]}: {len(chosen)} images")
    return written


def read_list(path):
    """(number, labels, path) of every line."""
    with open(path) as lines:
        for line_number, line in enumerate(lines, 1):
            words = [word.strip() for word in line.strip().split("\t")]
            if words == [""]:
                continue
            try:
                if len(words) < 3:
                    raise ValueError("expected a number, a label and a path between tabs")
                yield int(words[0]), [float(word) for word in words[1:-1]], words[-1]
            except ValueError as error:
                print(f"im2rec: {path} line {line_number} is left out: {error}", file=sys.stderr)


def packed(arguments, item):
    """(number, record) of an image; (number, what is wrong with it as an Exception)."""
    number, labels, name = item
    header = (0, labels if arguments.pack_label and len(labels) > 1 else labels[0], number, 0)
    try:
        with open(os.path.join(arguments.root, name), "rb") as file:
            data = file.read()
        if arguments.pass_through:
            return number, recordio.pack(header, data)
        image = imdecode(data, flag=arguments.color)
        height, width = image.shape[:2]
        if arguments.center_crop and height != width:
            side = min(height, width)
            image = fixed_crop(image, (width - side) // 2, (height - side) // 2, side, side)
        if arguments.resize and min(image.shape[:2]) != arguments.resize:
            image = resize_short(image, arguments.resize, interp=1)
        quality = arguments.quality if arguments.encoding == ".jpg" else min(arguments.quality, 9)
        return number, recordio.pack(header, imencode(image, arguments.encoding, quality))
    except (OSError, RuntimeError) as error:  # MXNetError is a RuntimeError
        return number, type(error)(f"{name}: {error}")


def in_order(function, items, threads):
    """function(item) for every item, in their order, on threads that are a little ahead."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = []
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 16 * threads:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def make_records(arguments, list_path):
    """Writes the .rec and .idx of a list; returns how many images could not be packed."""
    base = os.path.splitext(list_path)[0]
    items = list(read_list(list_path))
    print(f"{base}.rec: {len(items)} images from {list_path}")
    start, failed = time.time(), 0
    writer = recordio.MXIndexedRecordIO(base + ".idx", base + ".rec", "w")
    for count, (number, record) in enumerate(
        in_order(lambda item: packed(arguments, item), items, arguments.num_thread)
    ):
        if isinstance(record, Exception):
            print(f"im2rec: left out {record}", file=sys.stderr)
            failed += 1
        else:
            writer.write_idx(number, record)
        if (count + 1) % EVERY == 0 or count + 1 == len(items):
            rate = (count + 1) / max(time.time() - start, 1e-6)
            print(f"  {count + 1} of {len(items)}, {rate:.0f} images/s", flush=True)
    writer.close()
    return failed


def lists_of(prefix):
    """PREFIX.lst, or all lists whose names begin with the prefix."""
    if os.path.isfile(prefix + ".lst"):
        return [prefix + ".lst"]
    folder, name = os.path.split(os.path.abspath(prefix))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(os.path.join(folder, each) for each in names if each.startswith(name) and each.endswith(".lst"))


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="im2rec", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prefix", help="of the .lst, .rec and .idx files")
    parser.add_argument("root", help="the folder with the images")
    lists = parser.add_argument_group("making lists")
    lists.add_argument("--list", action="store_true", help="make lists; otherwise RecordIO files are made from them")
    lists.add_argument("--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], help="of images (%(default)s)")
    lists.add_argument("--chunks", type=int, default=1, help="how many lists (%(default)s)")
    lists.add_argument("--train-ratio", type=float, default=1.0, help="of the images for training (%(default)s)")
    lists.add_argument("--test-ratio", type=float, default=0.0, help="of the images for testing (%(default)s)")
    lists.add_argument("--recursive", action="store_true", help="every folder under root is a class")
    lists.add_argument("--shuffle", action="store_true", default=True, help="the images of a list (the default)")
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="in the order of their names")
    records = parser.add_argument_group("making RecordIO files")
    records.add_argument("--pass-through", action="store_true", help="pack the files as they are")
    records.add_argument("--resize", type=int, default=0, help="the shorter side to this many pixels")
    records.add_argument("--center-crop", action="store_true", help="to a square")
    records.add_argument(
        "--quality", type=int, default=95, help="of JPEG, 0-100; compression of PNG, 0-9 (%(default)s)"
    )
    records.add_argument("--num-thread", type=int, default=1, help="threads (%(default)s)")
    records.add_argument("--color", type=int, default=1, choices=[-1, 0, 1], help="1: color, 0: grey, -1: as it is")
    records.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"], help="%(default)s")
    records.add_argument("--pack-label", action="store_true", help="pack all labels of a line, not the first")
    arguments = parser.parse_args(argv)
    if not os.path.isdir(arguments.root):
        parser.error(f"there is no folder {arguments.root}")
    if arguments.chunks < 1 or arguments.num_thread < 1:
        parser.error("--chunks and --num-thread must be at least 1")
    if not 0 <= arguments.train_ratio <= 1 or not 0 <= arguments.train_ratio + arguments.test_ratio <= 1 + 1e-9:
        parser.error("--train-ratio and --test-ratio must be parts of one whole")
    return arguments


def main(argv=None):
    arguments = parse_arguments(argv)
    if arguments.list:
        make_lists(arguments)
        return 0
    lists = lists_of(arguments.prefix)
    if not lists:
        sys.exit(f"im2rec: there is no list {arguments.prefix}*.lst; make it with --list")
    failed = sum(make_records(arguments, path) for path in lists)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
