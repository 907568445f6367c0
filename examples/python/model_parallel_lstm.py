"""An LSTM whose layers are on different devices: a model that does not fit one of them.

Each layer is in a context group of its own (`mx.AttrScope(ctx_group=...)`), and `group2ctx` says on which device a
group runs; what crosses from one to the next is copied. The network reads a text character by character and says which
is next. It is unrolled by hand from FullyConnected and SliceChannel.

    python model_parallel_lstm.py --layers 4 --gpus 0,1,2,3
"""

import logging
import math
from functools import partial

import numpy as np
from support import program, text

import symbind as mx


class Weights:
    """The parameters of a layer, shared by its steps."""

    def __init__(self, layer):
        self.i2h, self.i2h_bias = mx.sym.Variable(f"l{layer}_i2h_weight"), mx.sym.Variable(f"l{layer}_i2h_bias")
        self.h2h, self.h2h_bias = mx.sym.Variable(f"l{layer}_h2h_weight"), mx.sym.Variable(f"l{layer}_h2h_bias")


def lstm_step(data, state, weights, hidden, name):
    """The next state (cell, output) of one layer."""
    cell, output = state
    from_input = mx.sym.FullyConnected(data, weights.i2h, weights.i2h_bias, num_hidden=4 * hidden, name=f"{name}_i2h")
    from_output = mx.sym.FullyConnected(
        output, weights.h2h, weights.h2h_bias, num_hidden=4 * hidden, name=f"{name}_h2h"
    )
    gates = mx.sym.SliceChannel(from_input + from_output, num_outputs=4, name=f"{name}_slice")
    taken, forgotten, passed = (mx.sym.Activation(gates[i], act_type="sigmoid") for i in (0, 1, 3))
    cell = forgotten * cell + taken * mx.sym.Activation(gates[2], act_type="tanh")
    return cell, passed * mx.sym.Activation(cell, act_type="tanh")


def network(layers, steps, hidden, embedded, words):
    """Unrolled over `steps`: what comes after each character of `data`."""
    with mx.AttrScope(ctx_group="embed"):
        net = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=words, output_dim=embedded, name="embed")
        inputs = mx.sym.SliceChannel(net, num_outputs=steps, squeeze_axis=True, name="steps")
        inputs = [inputs[step] for step in range(steps)]
    for layer in range(layers):
        with mx.AttrScope(ctx_group=f"layer{layer}"):
            weights = Weights(layer)
            state = mx.sym.Variable(f"l{layer}_init_c"), mx.sym.Variable(f"l{layer}_init_h")
            for step in range(steps):
                state = lstm_step(inputs[step], state, weights, hidden, f"l{layer}_t{step}")
                inputs[step] = state[1]
    with mx.AttrScope(ctx_group="decode"):
        net = mx.sym.Concat(*inputs, dim=0)
        net = mx.sym.FullyConnected(net, num_hidden=words, name="predict")
        label = mx.sym.Reshape(mx.sym.transpose(mx.sym.Variable("label")), shape=(-1,))
        return mx.sym.SoftmaxOutput(net, label, normalization="batch", name="softmax")


def placement(layers, devices):
    """Layers in order over the devices; the embedding with the first, the prediction with the last."""
    groups = {f"layer{layer}": devices[layer * len(devices) // layers] for layer in range(layers)}
    return {**groups, "embed": devices[0], "decode": devices[-1]}


def bind(net, args, devices):
    """An executor over all devices, its parameters at random."""
    states = {f"l{layer}_init_{kind}": (args.batch_size, args.hidden) for layer in range(args.layers) for kind in "ch"}
    shapes = {"data": (args.batch_size, args.steps), "label": (args.batch_size, args.steps), **states}
    requests = {name: "null" if name in shapes else "write" for name in net.list_arguments()}
    executor = net.simple_bind(devices[0], grad_req=requests, group2ctx=placement(args.layers, devices), **shapes)
    start = mx.init.Xavier(magnitude=2.34)
    for name, array in executor.arg_dict.items():
        if name in states:
            array[:] = 0
        elif name not in shapes:
            start(mx.init.InitDesc(name), array)
    return executor


def read_batches(codes, args):
    """Pieces of the text, and the characters that follow theirs: a batch of each."""
    pieces = np.arange(0, len(codes) - args.steps - 1, args.steps)
    rows = [
        pieces[first : first + args.batch_size, np.newaxis] + np.arange(args.steps)
        for first in range(0, len(pieces) - args.batch_size + 1, args.batch_size)
    ]
    if not rows:
        raise ValueError("the text is too short for a batch: lower --batch-size or --steps")
    return [(codes[batch], codes[batch + 1]) for batch in rows]


def train_epoch(executor, batches, updater, trained, show):
    """One pass over the text; the perplexity of a character. `show` gets the number of each batch."""
    total = count = 0
    for number, (data, label) in enumerate(batches):
        executor.arg_dict["data"][:] = data
        executor.arg_dict["label"][:] = label
        (probabilities,) = executor.forward(is_train=True)
        executor.backward()
        for index, name in enumerate(trained):
            updater(index, executor.grad_dict[name], executor.arg_dict[name])
        right = probabilities.asnumpy()[np.arange(label.size), label.T.ravel().astype(int)]
        total, count = total - np.log(np.maximum(right, 1e-10)).sum(), count + label.size
        show(number)
    return math.exp(total / count)


def main():
    options = program.parser(__doc__)
    options.add_argument("--data", help="a text file; made-up sentences without it")
    options.add_argument("--sentences", type=int, default=400, help="how many of the made-up ones")
    options.add_argument("--layers", type=int, default=2, help="of the LSTM")
    options.add_argument("--hidden", type=int, default=64, help="the size of a layer")
    options.add_argument("--embedded", type=int, default=16, help="numbers for a character")
    options.add_argument("--steps", type=int, default=20, help="characters the network is unrolled over")
    options.add_argument("--epochs", type=int, default=5, help="how often the text is read")
    options.add_argument("--batch-size", type=int, default=16, help="pieces of text a step")
    options.add_argument("--lr", type=float, default=0.01, help="the learning rate")
    options.add_argument("--gpus", help="GPUs for the layers; else two CPU contexts are used")
    args = program.start(options)

    letters = "\n".join(text.read_lines(args.data, args.sentences))
    alphabet = sorted(set(letters))
    codes = np.searchsorted(alphabet, list(letters)).astype(np.float32)
    devices = program.contexts(args.gpus, cpus=2)
    net = network(args.layers, args.steps, args.hidden, args.embedded, len(alphabet))
    executor = bind(net, args, devices)
    for group, device in placement(args.layers, devices).items():
        logging.info("%-8s on %s", group, device)
    updater = mx.optimizer.get_updater(mx.optimizer.create("adam", learning_rate=args.lr))
    trained = [name for name, gradient in executor.grad_dict.items() if gradient is not None]
    batches = read_batches(codes, args)
    bar = mx.callback.ProgressBar(len(batches), 40)
    for epoch in range(args.epochs):
        perplexity = train_epoch(executor, batches, updater, trained, partial(program.show_bar, bar, epoch))
        logging.info("Epoch[%d] perplexity of a character=%.3f, of %d", epoch, perplexity, len(alphabet))


if __name__ == "__main__":
    main()
