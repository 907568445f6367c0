"""A multilayer perceptron or LeNet on handwritten digits, with Module.fit.

usage: mnist_fit.py --data-dir DIR [--network mlp|lenet] [--iterator mnist|ndarray]
"""

import argparse
import glob
import gzip
import logging
import os
import shutil
import struct
import sys
import tempfile

import mxnet as mx
import numpy as np


def mlp():
    data = mx.sym.Variable("data")
    net = mx.sym.Flatten(data)
    net = mx.sym.FullyConnected(net, name="fc1", num_hidden=64)
    net = mx.sym.Activation(net, name="relu1", act_type="relu")
    net = mx.sym.FullyConnected(net, name="fc2", num_hidden=32)
    net = mx.sym.Activation(net, name="relu2", act_type="relu")
    net = mx.sym.FullyConnected(net, name="fc3", num_hidden=10)
    return mx.sym.SoftmaxOutput(net, name="softmax")


def lenet():
    data = mx.symbol.Variable("data")
    net = mx.symbol.Convolution(data=data, kernel=(5, 5), num_filter=8)
    net = mx.symbol.Activation(data=net, act_type="tanh")
    net = mx.symbol.Pooling(data=net, pool_type="max", kernel=(2, 2), stride=(2, 2))
    net = mx.symbol.Convolution(data=net, kernel=(5, 5), num_filter=16)
    net = mx.symbol.Activation(data=net, act_type="tanh")
    net = mx.symbol.Pooling(data=net, pool_type="max", kernel=(2, 2), stride=(2, 2))
    net = mx.symbol.Flatten(data=net)
    net = mx.symbol.FullyConnected(data=net, num_hidden=50)
    net = mx.symbol.Activation(data=net, act_type="tanh")
    net = mx.symbol.FullyConnected(data=net, num_hidden=10)
    return mx.symbol.SoftmaxOutput(data=net, name="softmax")


def read_digits(folder, part):
    with open(os.path.join(folder, part + "-labels-idx1-ubyte"), "rb") as flbl:
        struct.unpack(">II", flbl.read(8))
        label = np.frombuffer(flbl.read(), dtype=np.int8)
    with open(os.path.join(folder, part + "-images-idx3-ubyte"), "rb") as fimg:
        _, count, rows, cols = struct.unpack(">IIII", fimg.read(16))
        image = np.frombuffer(fimg.read(), dtype=np.uint8).reshape(count, 1, rows, cols)
    return image.astype(np.float32) / 255, label


def iterators(args, folder):
    if args.iterator == "ndarray":
        train = mx.io.NDArrayIter(*read_digits(folder, "train"), args.batch_size, shuffle=True)
        return train, mx.io.NDArrayIter(*read_digits(folder, "t10k"), args.batch_size)
    flat = args.network == "mlp"
    options = dict(batch_size=args.batch_size, flat=flat, silent=True)
    path = os.path.join(folder, "%s-%s-ubyte")
    train = mx.io.MNISTIter(
        image=path % ("train", "images-idx3"), label=path % ("train", "labels-idx1"), shuffle=True, seed=10, **options
    )
    val = mx.io.MNISTIter(
        image=path % ("t10k", "images-idx3"), label=path % ("t10k", "labels-idx1"), shuffle=False, **options
    )
    return train, val


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="train an image classifier on handwritten digits")
    parser.add_argument("--data-dir", required=True, help="the four files of MNIST, compressed or not")
    parser.add_argument("--network", default="mlp", choices=["mlp", "lenet"])
    parser.add_argument("--iterator", default="mnist", choices=["mnist", "ndarray"])
    parser.add_argument("--batch-size", type=int, default=60)
    parser.add_argument("--num-epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    mx.random.seed(1)
    np.random.seed(1)

    folder = tempfile.mkdtemp()
    for packed in glob.glob(os.path.join(args.data_dir, "*-ubyte.gz")):
        with (
            gzip.open(packed, "rb") as source,
            open(os.path.join(folder, os.path.basename(packed)[:-3]), "wb") as target,
        ):
            shutil.copyfileobj(source, target)
    train, val = iterators(args, folder)

    prefix = os.path.join(folder, args.network)
    model = mx.mod.Module(context=mx.cpu(), symbol=mlp() if args.network == "mlp" else lenet())
    model.fit(
        train,
        eval_data=val,
        eval_metric=["accuracy", mx.metric.create("top_k_accuracy", top_k=3)],
        optimizer="sgd",
        optimizer_params={"learning_rate": args.lr, "momentum": 0.9},
        initializer=mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2),
        num_epoch=args.num_epochs,
        batch_end_callback=mx.callback.Speedometer(args.batch_size, 10),
        epoch_end_callback=mx.callback.do_checkpoint(prefix),
    )
    accuracy = dict(model.score(val, mx.metric.Accuracy()))["accuracy"]
    sym, arg_params, aux_params = mx.model.load_checkpoint(prefix, args.num_epochs)
    same = all((arg_params[k].asnumpy() == v.asnumpy()).all() for k, v in model.get_params()[0].items())
    written = len(glob.glob(prefix + "-*.params"))
    shutil.rmtree(folder)
    print("RESULT accuracy %f" % accuracy)
    print("RESULT checkpoints %d" % written)
    if accuracy < 0.9 or not same or sym.list_arguments() != model.symbol.list_arguments():
        sys.exit("the digits were not learnt, or the checkpoint is another model")
