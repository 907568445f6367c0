"""Training a network by Module.fit, as its options say."""

import logging
import os
import time

import symbind as mx

from . import program


def add_options(parser):
    train = parser.add_argument_group("training")
    train.add_argument("--gpus", help="GPUs that share a batch, such as 0 or 0,2; else the CPU is used")
    train.add_argument("--kv-store", default="device", help="how devices share gradients")
    train.add_argument("--num-epochs", type=int, default=1, help="epochs to train")
    train.add_argument("--batch-size", type=int, default=32, help="images a step, on all devices together")
    train.add_argument("--optimizer", default="sgd", help="by its name")
    train.add_argument("--lr", type=float, default=0.1, help="the learning rate")
    train.add_argument("--lr-factor", type=float, default=0.1, help="what it is multiplied by at each step")
    train.add_argument("--lr-step-epochs", default="", help="the epochs before which it is, such as 30,60")
    train.add_argument("--warmup-epochs", type=int, default=0, help="epochs over which it grows from 0")
    train.add_argument("--warmup-strategy", default="linear", help="how it grows: linear or constant")
    train.add_argument("--mom", type=float, default=0.9, help="momentum, of sgd and nag")
    train.add_argument("--wd", type=float, default=1e-4, help="weight decay")
    train.add_argument("--initializer", default="default", help="default (Xavier), xavier, msra, orthogonal, normal, …")
    train.add_argument(
        "--disp-batches", type=int, default=0, help="a line of progress every so many batches; 0: a progress bar"
    )
    train.add_argument("--model-prefix", help="save a checkpoint with this prefix")
    train.add_argument("--save-period", type=int, default=1, help="after every so many epochs")
    train.add_argument("--load-epoch", type=int, help="go on from the checkpoint of this epoch")
    train.add_argument("--monitor", type=int, default=0, help="print statistics of all layers every so many batches")
    train.add_argument("--top-k", type=int, default=0, help="also count whether the class is among the k best")
    train.add_argument("--loss", default="", help="losses to report: ce, nll-loss")
    train.add_argument("--dtype", default="float32", choices=["float32", "float16"], help="what layers compute in")
    train.add_argument("--gc-type", default="none", help="compress gradients: none or 2bit")
    train.add_argument("--gc-threshold", type=float, default=0.5, help="of the compression")
    train.add_argument("--test-io", type=int, default=0, help="1: only read the data, and say how fast")


def schedule(args, batches):
    """The learning rate to begin with, and how it changes."""
    begin = args.load_epoch or 0
    steps = [int(epoch) for epoch in args.lr_step_epochs.split(",") if epoch]
    lr = args.lr * args.lr_factor ** sum(begin >= epoch for epoch in steps)
    if lr != args.lr:
        logging.info("The learning rate is %g for epoch %d", lr, begin)
    rest = [batches * (epoch - begin) for epoch in steps if epoch > begin]
    warmup = dict(warmup_steps=batches * max(0, args.warmup_epochs - begin), warmup_mode=args.warmup_strategy)
    if rest:
        return lr, mx.lr_scheduler.MultiFactorScheduler(step=rest, factor=args.lr_factor, base_lr=lr, **warmup)
    if warmup["warmup_steps"]:
        never = 2**31
        return lr, mx.lr_scheduler.FactorScheduler(step=never, base_lr=lr, **warmup)
    return lr, None


def optimizer_params(args, batches):
    lr, scheduler = schedule(args, batches)
    params = {"learning_rate": lr, "wd": args.wd, "multi_precision": args.dtype == "float16"}
    if scheduler:
        params["lr_scheduler"] = scheduler
    if args.optimizer in ("sgd", "nag", "signum", "dcasgd"):
        params["momentum"] = args.mom
    return params


def initializer(args):
    if args.initializer in ("default", "xavier"):
        return mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2)
    if args.initializer == "msra":
        return mx.init.MSRAPrelu()
    return mx.init.create(args.initializer)


def metrics(args):
    chosen = ["accuracy"]
    if args.top_k:
        chosen.append(mx.metric.create("top_k_accuracy", top_k=args.top_k))
    chosen += [name.strip().replace("-", "_") for name in args.loss.split(",") if name.strip()]
    return mx.metric.create(chosen)


def rank_prefix(args, kv):
    """Where checkpoints go: one worker of several saves under the plain prefix, each of the others under its own."""
    return args.model_prefix if kv.rank == 0 else f"{args.model_prefix}-{kv.rank}"


def checkpoint(args, kv):
    if not args.model_prefix:
        return None
    os.makedirs(os.path.dirname(args.model_prefix) or ".", exist_ok=True)
    return mx.callback.do_checkpoint(rank_prefix(args, kv), args.save_period)


def load(args, network, kv):
    """The network and its parameters: new, or those of a checkpoint."""
    if args.load_epoch is None:
        return network, None, None
    if not args.model_prefix:
        raise ValueError("--load-epoch needs the --model-prefix of the checkpoint")
    saved, arg_params, aux_params = mx.model.load_checkpoint(rank_prefix(args, kv), args.load_epoch)
    if saved.tojson() != network.tojson():
        logging.info("The network is that of the checkpoint, not the one of the options")
    return saved, arg_params, aux_params


def read_all(args, train):
    start = time.time()
    for count, _ in enumerate(train, 1):
        if count % (args.disp_batches or 20) == 0:
            logging.info("Batch [%d]\tSpeed: %.2f samples/sec", count, count * args.batch_size / (time.time() - start))


def contexts(args):
    return [mx.gpu(int(i)) for i in args.gpus.split(",")] if args.gpus else [mx.cpu()]


def fit(args, network, iterators):
    """Trains and returns the module. `iterators(args, kv)` returns what to train on and what to be tested on, and sets
    args.num_examples, the examples of an epoch on all workers, where it was not given."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    kv = mx.kvstore.create(args.kv_store)
    if args.gc_type != "none":
        kv.set_gradient_compression({"type": args.gc_type, "threshold": args.gc_threshold})
    train, val = iterators(args, kv)
    if args.test_io:
        return read_all(args, train)
    network, arg_params, aux_params = load(args, network, kv)
    batches = max(1, args.num_examples // args.batch_size // kv.num_workers)
    module = mx.mod.Module(network, context=contexts(args))
    module.fit(
        train,
        eval_data=val,
        eval_metric=metrics(args),
        kvstore=kv,
        optimizer=args.optimizer,
        optimizer_params=optimizer_params(args, batches),
        initializer=initializer(args),
        arg_params=arg_params,
        aux_params=aux_params,
        begin_epoch=args.load_epoch or 0,
        num_epoch=args.num_epochs,
        batch_end_callback=program.progress(args, batches),
        epoch_end_callback=checkpoint(args, kv),
        allow_missing=True,
        monitor=mx.mon.Monitor(args.monitor, pattern=".*") if args.monitor > 0 else None,
    )
    return module
