"""A network that reads a text character by character, and then writes in its manner.

The LSTM is trained unrolled over pieces of the text; to write, it runs one character at a time, each drawn from the
probabilities that the one before gave, with its state passed on.
"""

import logging

import numpy as np
from support import program, text

import symbind as mx


def recurrent_cells(args):
    cells = mx.rnn.SequentialRNNCell()
    for layer in range(args.layers):
        cells.add(mx.rnn.LSTMCell(num_hidden=args.hidden, prefix=f"lstm_l{layer}_"))
    return cells


def scores(outputs, letters, hidden):
    net = mx.sym.Reshape(outputs, shape=(-1, hidden))
    return mx.sym.FullyConnected(net, num_hidden=letters, name="pred")


def embedded(letters, args):
    return mx.sym.Embedding(mx.sym.Variable("data"), input_dim=letters, output_dim=args.embedded, name="embed")


def reader(cells, args, letters):
    """For training: what comes after each character of a piece."""
    cells.reset()
    outputs, _ = cells.unroll(args.steps, inputs=embedded(letters, args), merge_outputs=True)
    label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
    return mx.sym.SoftmaxOutput(scores(outputs, letters, args.hidden), label, name="softmax")


def writer(cells, args, letters):
    """For writing: the probabilities after one character, and the states for the next; the names of the states."""
    cells.reset()
    states = cells.begin_state(func=mx.sym.Variable)
    outputs, following = cells.unroll(1, inputs=embedded(letters, args), begin_state=states, merge_outputs=True)
    probabilities = mx.sym.softmax(scores(outputs, letters, args.hidden), name="probabilities")
    return mx.sym.Group([probabilities, *following]), [state.name for state in states]


class Writer:
    """The trained network, one character at a time."""

    def __init__(self, cells, args, alphabet, params):
        self.alphabet = alphabet
        net, names = writer(cells, args, len(alphabet))
        self.states = {name: mx.nd.zeros((1, args.hidden)) for name in names}
        shapes = {name: array.shape for name, array in self.states.items()}
        self.executor = net.simple_bind(mx.cpu(), grad_req="null", data=(1, 1), **shapes)
        self.executor.copy_params_from(params, allow_extra_params=True)
        self.random = np.random.RandomState(args.seed)

    def read(self, letter):
        """The probabilities of what follows."""
        code = mx.nd.array([[self.alphabet.index(letter)]])
        probabilities, *following = self.executor.forward(is_train=False, data=code, **self.states)
        self.states = {name: state.copy() for name, state in zip(self.states, following)}
        return probabilities.asnumpy()[0].astype(np.float64)

    def write(self, start, length, temperature):
        """`length` characters after `start`. A temperature below 1 prefers what is likely."""
        for letter in start:
            probabilities = self.read(letter)
        written = start
        for _ in range(length):
            weights = np.maximum(probabilities, 1e-30) ** (1 / temperature)
            written += self.alphabet[self.random.choice(len(weights), p=weights / weights.sum())]
            probabilities = self.read(written[-1])
        return written


def pieces(codes, args):
    """Pieces of the text, each with the characters that follow its own."""
    rows = np.arange(0, len(codes) - args.steps, args.steps)[:, np.newaxis] + np.arange(args.steps)
    if len(rows) < args.batch_size:
        raise ValueError(f"the text has {len(rows)} pieces: lower --batch-size or --steps")
    return mx.io.NDArrayIter(codes[rows], codes[rows + 1], args.batch_size, shuffle=True, last_batch_handle="discard")


def main():
    options = program.parser(__doc__)
    options.add_argument("--data", help="a text file; made-up sentences without it")
    options.add_argument("--sentences", type=int, default=800, help="how many of the made-up ones")
    options.add_argument("--layers", type=int, default=1, help="of the LSTM")
    options.add_argument("--hidden", type=int, default=96, help="the size of a layer")
    options.add_argument("--embedded", type=int, default=16, help="numbers for a character")
    options.add_argument("--steps", type=int, default=32, help="characters the network is unrolled over")
    options.add_argument("--epochs", type=int, default=10, help="how often the text is read")
    options.add_argument("--batch-size", type=int, default=16, help="pieces of text a step")
    options.add_argument("--lr", type=float, default=0.01, help="the learning rate")
    options.add_argument("--start", default="the ", help="what the written text begins with")
    options.add_argument("--length", type=int, default=400, help="characters to write")
    options.add_argument("--temperature", type=float, default=0.7, help="below 1 the network prefers what is likely")
    options.add_argument("--gpus", help="GPUs that share a batch; else the CPU is used")
    options.add_argument("--seed", type=int, default=1, help="of the random numbers")
    args = program.start(options)

    letters = "\n".join(text.read_lines(args.data, args.sentences))
    alphabet = sorted(set(letters) | set(args.start))
    train = pieces(np.searchsorted(alphabet, list(letters)).astype(np.float32), args)
    logging.info("%d characters, %d of them different", len(letters), len(alphabet))
    cells = recurrent_cells(args)
    module = mx.mod.Module(reader(cells, args, len(alphabet)), context=program.contexts(args.gpus))
    module.fit(
        train,
        eval_metric=mx.metric.Perplexity(None),
        optimizer="adam",
        optimizer_params={"learning_rate": args.lr, "rescale_grad": 1 / args.batch_size / args.steps},
        initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
        num_epoch=args.epochs,
        batch_end_callback=mx.callback.ProgressBar(train.num_data // args.batch_size, 40),
    )
    arg_params, _ = module.get_params()
    print(Writer(cells, args, alphabet, arg_params).write(args.start, args.length, args.temperature))


if __name__ == "__main__":
    main()
