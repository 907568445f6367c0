"""An autoencoder on the digits in data/: a network that learns to give back its input through a few numbers.

    python autoencoder.py
    python autoencoder.py --layers 256,64,16 --pretrain-epochs 5

With --pretrain-epochs each layer is first trained by itself to give back what it gets.
"""

import logging

import numpy as np
from support import digits, program

import symbind as mx


def coder(data, sizes, pixels):
    """A decoder after an encoder; `code` is the name of the output between them."""
    net = data
    for number, size in enumerate(sizes, 1):
        net = mx.sym.FullyConnected(net, num_hidden=size, name=f"encoder{number}")
        name = "code" if number == len(sizes) else f"encoder{number}_act"
        net = mx.sym.Activation(net, act_type="relu", name=name)
    for number, size in zip(range(len(sizes), 0, -1), [*sizes[-2::-1], pixels]):
        net = mx.sym.FullyConnected(net, num_hidden=size, name=f"decoder{number}")
        if number > 1:
            net = mx.sym.Activation(net, act_type="relu", name=f"decoder{number}_act")
    return net


def autoencoder(sizes, pixels):
    net = coder(mx.sym.Variable("data"), sizes, pixels)
    return mx.sym.LogisticRegressionOutput(net, name="pixels")


def one_layer(number, size, inputs):
    """A layer of the encoder and its counterpart in the decoder."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=size, name=f"encoder{number}")
    net = mx.sym.Activation(net, act_type="relu", name="hidden")
    net = mx.sym.FullyConnected(net, num_hidden=inputs, name=f"decoder{number}")
    return mx.sym.LinearRegressionOutput(net, name="pixels")


def train(net, images, args, epochs, arg_params=None):
    """Trains the network to give back the images."""
    module = mx.mod.Module(net, label_names=["pixels_label"], context=program.contexts(args.gpus))
    module.fit(
        mx.io.NDArrayIter(images, images, args.batch_size, shuffle=True, label_name="pixels_label"),
        eval_metric="mse",
        optimizer="adam",
        optimizer_params={"learning_rate": args.lr},
        initializer=mx.init.Xavier(),
        arg_params=arg_params,
        allow_missing=True,
        num_epoch=epochs,
        batch_end_callback=mx.callback.ProgressBar(-(-len(images) // args.batch_size), 40),
    )
    return module


def pretrain(images, sizes, args):
    """Layer by layer, each on what the layers before it make of the images."""
    params, inputs = {}, images
    for number, size in enumerate(sizes, 1):
        logging.info("Layer %d of %d: from %d to %d", number, len(sizes), inputs.shape[1], size)
        module = train(one_layer(number, size, inputs.shape[1]), inputs, args, args.pretrain_epochs)
        params.update(module.get_params()[0])
        weight, bias = (params[f"encoder{number}_{kind}"].asnumpy() for kind in ("weight", "bias"))
        inputs = np.maximum(inputs @ weight.T + bias, 0)
    return params


def main():
    options = program.parser(__doc__)
    options.add_argument("--data", default=digits.DATA, help="folder with digits in MNIST's idx files")
    options.add_argument("--layers", default="128,32", help="sizes of the encoder's layers, the last is the code's")
    options.add_argument("--pretrain-epochs", type=int, default=0, help="epochs for each layer by itself")
    options.add_argument("--epochs", type=int, default=10, help="epochs for the whole network")
    options.add_argument("--batch-size", type=int, default=64, help="images a step")
    options.add_argument("--lr", type=float, default=0.003, help="the learning rate")
    options.add_argument("--gpus", help="GPUs that share a batch; else the CPU is used")
    options.add_argument("--seed", type=int, default=1, help="of the random numbers")
    args = program.start(options)

    sizes = [int(size) for size in args.layers.split(",")]
    images = {part: digits.read_digits(args.data, part)[0] for part in ("train", "t10k")}
    height, width = images["train"].shape[2:]
    flat = {part: array.reshape(len(array), -1) for part, array in images.items()}
    params = pretrain(flat["train"], sizes, args) if args.pretrain_epochs else None
    module = train(autoencoder(sizes, height * width), flat["train"], args, args.epochs, params)

    unseen = mx.io.NDArrayIter(flat["t10k"], flat["t10k"], args.batch_size, label_name="pixels_label")
    error = dict(module.score(unseen, "mse"))["mse"]
    spread = flat["t10k"].var(axis=0).mean()
    print(f"{sizes[-1]} numbers keep {1 - error / spread:.1%} of the variance of {len(flat['t10k'])} unseen digits.")
    shown = flat["t10k"][:4]
    restored = module.predict(mx.io.NDArrayIter(flat["t10k"], None, args.batch_size)).asnumpy()[:4]
    print("Four of them, and what the network gives back:")
    print(digits.draw(np.concatenate([shown, restored]).reshape(-1, height, width)))


if __name__ == "__main__":
    main()
