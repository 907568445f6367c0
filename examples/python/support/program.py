"""What every program begins with: its options, its log and its devices."""

import argparse
import logging

import symbind as mx


def parser(description):
    """A parser of options that prints the program's description as it is written, and the defaults."""

    class Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
        pass

    return argparse.ArgumentParser(description=description, formatter_class=Formatter, allow_abbrev=False)


def start(options, arguments=None):
    """Reads the options, turns on the lines of progress, and seeds the random numbers."""
    args = options.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(getattr(args, "seed", 1))
    return args


def contexts(gpus, cpus=1):
    """The GPUs of a list such as "0,2", or so many CPU contexts."""
    return [mx.gpu(int(i)) for i in gpus.split(",")] if gpus else [mx.cpu(i) for i in range(cpus)]


def progress(args, batches):
    """A line every --disp-batches batches, or a bar over the batches of an epoch."""
    if args.disp_batches:
        return mx.callback.Speedometer(args.batch_size, args.disp_batches)
    return mx.callback.ProgressBar(batches, 40)


def show_bar(bar, epoch, batch):
    """Advances a ProgressBar in a training loop of one's own, after the batch of this number."""
    bar(mx.model.BatchEndParam(epoch=epoch, nbatch=batch, eval_metric=None, locals=None))
