"""Trains an image classification network: on random images, on the digits in data/, or on a RecordIO file.

python train_imagenet.py --network mobilenet --image-shape 3,64,64
python train_imagenet.py --network squeezenet --image-shape 3,32,32 --num-classes 10 --data-train ../../data
python train_imagenet.py --network resnet --num-layers 50 --gpus 0,1 --data-train train.rec --data-val val.rec
"""

import argparse

import symbols
from support import fit, images


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    network = parser.add_argument_group("network")
    network.add_argument("--network", default="resnet", choices=list(symbols.NETWORKS), help="what to train")
    network.add_argument("--num-layers", type=int, help="of VGG, ResNet, ResNeXt and DenseNet")
    network.add_argument("--num-group", type=int, help="groups of AlexNet's and ResNeXt's convolutions")
    network.add_argument("--multiplier", type=float, help="of the widths of MobileNet")
    network.add_argument("--batch-norm", action="store_true", default=None, help="normalise in VGG")
    network.add_argument("--version", help="of SqueezeNet: 1.0 or 1.1")
    images.add_options(parser)
    fit.add_options(parser)
    args = parser.parse_args(arguments)
    args.image_shape = args.image_shape or symbols.NETWORKS[args.network]
    return args


def network_of(args):
    names = ("num_classes", "num_layers", "num_group", "multiplier", "batch_norm", "version")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return symbols.get_symbol(args.network, dtype=args.dtype, **given)


if __name__ == "__main__":
    args = parse()
    fit.fit(args, network_of(args), images.iterators)
