"""Images to train on: options, and iterators over random images, handwritten digits or a RecordIO file."""

import os

import numpy as np

import symbind as mx

from .digits import read_digits

AUGMENTATION = {
    # option: (parameter of ImageRecordIter, default, what it means)
    "random-crop": ("rand_crop", 0, "1: crop at a random position, else in the middle"),
    "random-mirror": ("rand_mirror", 0, "1: mirror half of the images"),
    "random-resized-crop": ("random_resized_crop", 0, "1: crop a random area and resize it"),
    "max-random-area": ("max_random_area", 1.0, "the largest part of an image such a crop takes"),
    "min-random-area": ("min_random_area", 1.0, "the smallest"),
    "max-random-h": ("random_h", 0, "change the hue by up to this"),
    "max-random-s": ("random_s", 0, "change the saturation by up to this"),
    "max-random-l": ("random_l", 0, "change the lightness by up to this"),
    "max-random-aspect-ratio": ("max_aspect_ratio", 0.0, "change width / height by up to this part"),
    "min-random-aspect-ratio": ("min_aspect_ratio", 0.0, "above 0: by a factor between this and the one before"),
    "max-random-rotate-angle": ("max_rotate_angle", 0, "rotate by up to this many degrees"),
    "max-random-shear-ratio": ("max_shear_ratio", 0.0, "shear by up to this part"),
    "max-random-scale": ("max_random_scale", 1.0, "the largest factor of an image's size"),
    "min-random-scale": ("min_random_scale", 1.0, "the smallest"),
    "brightness": ("brightness", 0.0, "change the brightness by up to this part"),
    "contrast": ("contrast", 0.0, "change the contrast by up to this part"),
    "saturation": ("saturation", 0.0, "change the saturation by up to this part"),
    "pca-noise": ("pca_noise", 0.0, "noise along the principal colors"),
}


def numbers(text):
    """Numbers with commas between them."""
    return tuple(float(number) for number in text.split(","))


def shape(text):
    return tuple(int(number) for number in text.split(","))


def add_options(parser):
    data = parser.add_argument_group("data", "random images are used unless there is something to train on")
    data.add_argument("--data-train", help="a RecordIO file (.rec), or a folder with digits in MNIST's idx files")
    data.add_argument("--data-train-idx", default="", help="the index of the RecordIO file")
    data.add_argument("--data-val", help="the same for validation; of a folder of digits, their test part is used")
    data.add_argument("--data-val-idx", default="", help="the index of the RecordIO file for validation")
    data.add_argument("--benchmark", type=int, default=0, help="1: random images in any case")
    data.add_argument("--image-shape", type=shape, help="channels,height,width; else those the network is made for")
    data.add_argument("--num-classes", type=int, default=1000, help="what an image may show")
    data.add_argument(
        "--num-examples",
        type=int,
        help="images an epoch: 16 batches of random ones if left out",
    )
    data.add_argument("--rgb-mean", type=numbers, default=(123.68, 116.779, 103.939), help="subtracted from the colors")
    data.add_argument("--rgb-std", type=numbers, default=(1.0, 1.0, 1.0), help="the colors are divided by this")
    data.add_argument("--pad-size", type=int, default=0, help="pixels around an image before it is cropped")
    data.add_argument("--fill-value", type=int, default=127, help="the color of what is outside of an image")
    data.add_argument("--resize", type=int, default=-1, help="resize the shorter side to this first")
    data.add_argument("--data-nthreads", type=int, default=4, help="threads that decode images")
    augment = parser.add_argument_group("augmentation", "of the images of a RecordIO file to train on")
    for name, (_, default, meaning) in AUGMENTATION.items():
        augment.add_argument("--" + name, type=type(default), default=default, help=meaning)
    augment.add_argument(
        "--use-imagenet-data-augmentation",
        type=int,
        default=0,
        help="1: crops, colors and deviations as usual for ImageNet, instead of the options above",
    )


class RandomImages(mx.io.DataIter):
    """One batch of random images, again and again: what a network costs without reading anything."""

    def __init__(self, batch_size, image_shape, num_classes, batches):
        super().__init__(batch_size)
        random = np.random.RandomState(1)
        data = random.uniform(-1, 1, (batch_size, *image_shape)).astype(np.float32)
        label = random.randint(0, num_classes, batch_size).astype(np.float32)
        self.batch = mx.io.DataBatch([mx.nd.array(data)], [mx.nd.array(label)], pad=0)
        self.provide_data = [mx.io.DataDesc("data", data.shape)]
        self.provide_label = [mx.io.DataDesc("softmax_label", label.shape)]
        self.batches = batches
        self.given = 0

    def reset(self):
        self.given = 0

    def next(self):
        if self.given == self.batches:
            raise StopIteration
        self.given += 1
        return self.batch


class ResizedImages(mx.io.DataIter):
    """The images of another iterator at another size: to the nearest pixel, a single channel repeated."""

    def __init__(self, images, image_shape):
        super().__init__(images.batch_size)
        self.images = images
        self.image_shape = image_shape
        (described,) = images.provide_data
        self.provide_data = [mx.io.DataDesc(described.name, (images.batch_size, *image_shape))]
        self.provide_label = images.provide_label

    def reset(self):
        self.images.reset()

    def next(self):
        batch = self.images.next()
        data = batch.data[0].asnumpy()
        channels, height, width = self.image_shape
        rows = np.arange(height) * data.shape[2] // height
        columns = np.arange(width) * data.shape[3] // width
        data = np.broadcast_to(data[:, :, rows][:, :, :, columns], (len(data), channels, height, width))
        return mx.io.DataBatch([mx.nd.array(data)], batch.label, pad=batch.pad, index=batch.index)


def random_images(args, kv):
    args.num_examples = args.num_examples or 16 * args.batch_size * kv.num_workers
    batches = max(1, args.num_examples // args.batch_size // kv.num_workers)
    return RandomImages(args.batch_size, args.image_shape, args.num_classes, batches), None


def digits(args, kv):
    def resized(images, labels, shuffle):
        return ResizedImages(mx.io.NDArrayIter(images, labels, args.batch_size, shuffle), args.image_shape)

    images, labels = read_digits(args.data_train, "train")
    args.num_examples = min(args.num_examples or len(images), len(images))
    share = slice(kv.rank, args.num_examples, kv.num_workers)
    return resized(images[share], labels[share], True), resized(*read_digits(args.data_train, "t10k"), False)


def record_file(args, path, index, **options):
    mean, std = args.rgb_mean, args.rgb_std
    return mx.io.ImageRecordIter(
        path_imgrec=path,
        path_imgidx=index,
        data_shape=args.image_shape,
        batch_size=args.batch_size,
        preprocess_threads=args.data_nthreads,
        resize=args.resize,
        mean_r=mean[0],
        mean_g=mean[1],
        mean_b=mean[2],
        std_r=std[0],
        std_g=std[1],
        std_b=std[2],
        data_name="data",
        label_name="softmax_label",
        **options,
    )


def augmentation_of(args):
    """The parameters of ImageRecordIter for the images to train on."""
    if args.use_imagenet_data_augmentation:
        return dict(
            random_resized_crop=True,
            rand_mirror=True,
            min_random_area=0.08,
            min_aspect_ratio=3 / 4,
            max_aspect_ratio=4 / 3,
            brightness=0.4,
            contrast=0.4,
            saturation=0.4,
            pca_noise=0.1,
        )
    chosen = {parameter: getattr(args, name.replace("-", "_")) for name, (parameter, _, _) in AUGMENTATION.items()}
    if chosen["min_aspect_ratio"] <= 0:
        del chosen["min_aspect_ratio"]
    return chosen


def record_files(args, kv):
    args.num_examples = args.num_examples or 1281167  # those of ImageNet
    if args.use_imagenet_data_augmentation:
        args.rgb_std = (58.393, 57.12, 57.375)
    train = record_file(
        args,
        args.data_train,
        args.data_train_idx,
        shuffle=True,
        pad=args.pad_size,
        fill_value=args.fill_value,
        num_parts=kv.num_workers,
        part_index=kv.rank,
        **augmentation_of(args),
    )
    if not args.data_val:
        return train, None
    return train, record_file(args, args.data_val, args.data_val_idx, round_batch=False)


def iterators(args, kv):
    """Images to train on, and others (or None) to be tested on."""
    if args.benchmark or not args.data_train:
        return random_images(args, kv)
    return digits(args, kv) if os.path.isdir(args.data_train) else record_files(args, kv)
