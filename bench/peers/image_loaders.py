"""Batches of images by one loader: decoded, shorter side to 256, a random crop of 224, mirrored, normalized.

    image_loaders.py LOADER --records FILE.rec --folder FOLDER [--threads 2] [--seconds 6]

LOADER is symbind or mxnet (ImageRecordIter over the records), torch (torchvision's transforms over the files, decoded
by Pillow) or torch-io (the same, decoded and transformed as tensors). Prints a JSON row with the images per second.
"""

import argparse
import json
import os
import time

BATCH = 32
MEAN, DEVIATION = (123.68, 116.78, 103.94), (58.4, 57.1, 57.4)


def record_batches(mx, arguments):
    return mx.io.ImageRecordIter(
        path_imgrec=arguments.records,
        data_shape=(3, 224, 224),
        batch_size=BATCH,
        resize=256,
        rand_crop=True,
        rand_mirror=True,
        mean_r=MEAN[0],
        mean_g=MEAN[1],
        mean_b=MEAN[2],
        std_r=DEVIATION[0],
        std_g=DEVIATION[1],
        std_b=DEVIATION[2],
        preprocess_threads=arguments.threads,
        verbose=False,
    )


def epochs_of_records(mx, arguments):
    it = record_batches(mx, arguments)
    while True:
        for batch in it:
            batch.data[0].wait_to_read()
            yield BATCH
        it.reset()


def epochs_of_torch(arguments, as_tensors):
    import torch
    from PIL import Image
    from torchvision import io, transforms

    torch.set_num_threads(1)
    steps = [transforms.Resize(256), transforms.RandomCrop(224), transforms.RandomHorizontalFlip()]
    steps += [transforms.ConvertImageDtype(torch.float32)] if as_tensors else [transforms.ToTensor()]
    steps += [transforms.Normalize([v / 255 for v in MEAN], [v / 255 for v in DEVIATION])]
    transform = transforms.Compose(steps)
    paths = [os.path.join(arguments.folder, name) for name in sorted(os.listdir(arguments.folder))]

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths)

        def __getitem__(self, i):
            if as_tensors:
                return transform(io.decode_jpeg(io.read_file(paths[i])))
            with Image.open(paths[i]) as image:
                return transform(image.convert("RGB"))

    loader = torch.utils.data.DataLoader(
        Files(), batch_size=BATCH, num_workers=arguments.threads, persistent_workers=True
    )
    while True:
        for batch in loader:
            yield len(batch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loader", choices=["symbind", "mxnet", "torch", "torch-io"])
    parser.add_argument("--records")
    parser.add_argument("--folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6.0)
    arguments = parser.parse_args()
    if arguments.loader == "symbind":
        import symbind

        batches = epochs_of_records(symbind, arguments)
    elif arguments.loader == "mxnet":
        import mxnet

        batches = epochs_of_records(mxnet, arguments)
    else:
        batches = epochs_of_torch(arguments, arguments.loader == "torch-io")

    for _ in range(12):  # threads and processes have begun, files are in the cache
        next(batches)
    images, start = 0, time.perf_counter()
    while time.perf_counter() - start < arguments.seconds:
        images += next(batches)
    rate = images / (time.perf_counter() - start)
    print(json.dumps({"loader": arguments.loader, "images_per_s": round(rate, 1)}), flush=True)
    os._exit(0)  # some threads never end


if __name__ == "__main__":
    main()
