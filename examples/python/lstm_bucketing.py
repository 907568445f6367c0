"""A language model with buckets: an LSTM that says which word is next, unrolled to the length of a batch's sentences.

Sentences of about one length share a batch, and each length has a network of its own (`mx.mod.BucketingModule`); all of
them share their parameters.

    python lstm_bucketing.py
    python lstm_bucketing.py --data ptb.train.txt --data-val ptb.valid.txt --buckets 10,20,30,40,50,60 --gpus 0
"""

import logging

from support import program, text

import symbind as mx

PADDING = 0  # the number of no word: what fills a sentence up


def read_sentences(args):
    """Sentences to train on and others, as numbers, and the vocabulary."""
    lines = text.read_lines(args.data, args.sentences)
    unseen = text.read_lines(args.data_val, 0) if args.data_val else lines[9 * len(lines) // 10 :]
    lines = lines if args.data_val else lines[: 9 * len(lines) // 10]
    train, vocabulary = mx.rnn.encode_sentences(
        [line.split() for line in lines], invalid_label=PADDING, start_label=PADDING + 1
    )
    unseen, vocabulary = mx.rnn.encode_sentences(
        [line.split() for line in unseen], vocabulary, invalid_label=PADDING, unknown_token="<unk>"
    )
    return train, unseen, vocabulary


def recurrent_cells(args):
    cells = mx.rnn.SequentialRNNCell()
    for layer in range(args.num_layers):
        cells.add(mx.rnn.LSTMCell(num_hidden=args.num_hidden, prefix=f"lstm_l{layer}_"))
        if args.dropout:
            cells.add(mx.rnn.DropoutCell(args.dropout, prefix=f"lstm_d{layer}_"))
    return cells


def network_of_length(cells, args, words):
    """The network as a function of the length of sentences, as BucketingModule takes it."""

    def build(length):
        data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        net = mx.sym.Embedding(data, input_dim=words, output_dim=args.num_embed, name="embed")
        cells.reset()
        outputs, _ = cells.unroll(length, inputs=net, merge_outputs=True)
        net = mx.sym.Reshape(outputs, shape=(-1, args.num_hidden))
        net = mx.sym.FullyConnected(net, num_hidden=words, name="pred")
        label = mx.sym.Reshape(label, shape=(-1,))
        net = mx.sym.SoftmaxOutput(
            net, label, use_ignore=True, ignore_label=PADDING, normalization="valid", name="softmax"
        )
        return net, ("data",), ("softmax_label",)

    return build


def add_options(options):
    options.add_argument("--data", help="a text with a sentence a line; made-up sentences without it")
    options.add_argument("--data-val", help="another to be tested on; else a tenth of the first")
    options.add_argument("--sentences", type=int, default=2000, help="how many of the made-up ones")
    options.add_argument("--buckets", default="8,12,16,24", help="lengths that sentences are filled up to")
    options.add_argument("--num-layers", type=int, default=2, help="of the LSTM")
    options.add_argument("--num-hidden", type=int, default=64, help="the size of a layer")
    options.add_argument("--num-embed", type=int, default=32, help="numbers for a word")
    options.add_argument("--dropout", type=float, default=0.0, help="between layers")
    options.add_argument("--num-epochs", type=int, default=8, help="how often every sentence is read")
    options.add_argument("--batch-size", type=int, default=32, help="sentences a step")
    options.add_argument("--optimizer", default="adam", help="by its name")
    options.add_argument("--lr", type=float, default=0.01, help="the learning rate")
    options.add_argument("--wd", type=float, default=0.00001, help="weight decay")
    options.add_argument("--kv-store", default="device", help="how devices share gradients")
    options.add_argument(
        "--disp-batches", type=int, default=0, help="a line of progress every so many batches; 0: a progress bar"
    )
    options.add_argument("--model-prefix", help="save a checkpoint with this prefix after each epoch")
    options.add_argument("--gpus", help="GPUs that share a batch; else the CPU is used")


def main():
    options = program.parser(__doc__)
    add_options(options)
    args = program.start(options)

    train, unseen, vocabulary = read_sentences(args)
    words = max(vocabulary.values()) + 1
    logging.info("%d sentences to train on, %d others, %d words", len(train), len(unseen), words)
    buckets = [int(length) for length in args.buckets.split(",")]

    def iterator(sentences):
        return mx.rnn.BucketSentenceIter(sentences, args.batch_size, buckets=buckets, invalid_label=PADDING)

    train, unseen = iterator(train), iterator(unseen)
    if next(unseen, None) is None:
        raise ValueError("there are too few sentences to test on: lower --batch-size")
    unseen.reset()
    cells = recurrent_cells(args)
    module = mx.mod.BucketingModule(
        network_of_length(cells, args, words),
        default_bucket_key=train.default_bucket_key,
        context=program.contexts(args.gpus),
    )
    saved = mx.rnn.do_rnn_checkpoint(cells, args.model_prefix) if args.model_prefix else None
    module.fit(
        train,
        eval_data=unseen,
        eval_metric=mx.metric.Perplexity(PADDING),
        kvstore=args.kv_store,
        optimizer=args.optimizer,
        optimizer_params={"learning_rate": args.lr, "wd": args.wd},
        initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
        num_epoch=args.num_epochs,
        batch_end_callback=program.progress(args, len(train.idx)),
        epoch_end_callback=saved,
    )
    perplexity = dict(module.score(unseen, mx.metric.Perplexity(PADDING)))["perplexity"]
    print(f"The next word of unseen sentences is one of {perplexity:.2f}, of {words} words.")


if __name__ == "__main__":
    main()
