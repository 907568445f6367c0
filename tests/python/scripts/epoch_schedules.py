"""Training as the helper of an image classification example sets it up: schedules in epochs, optimizers, resuming.

The number of batches in an epoch is a quotient, which Python 3 makes a float. The initializer has a generator of its
own, so it must be called for the parameters in MXNet's order.
"""

import argparse
import logging
import os
import shutil
import tempfile

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(3)
label = rng.randint(5, size=192)
image = (rng.rand(5, 1, 8, 8)[label] + 0.4 * rng.rand(192, 1, 8, 8)).astype(np.float32)


class FromOneGenerator(mx.init.Initializer):
    def __init__(self):
        super().__init__()
        self.generator = np.random.RandomState(8)

    def _init_weight(self, name, arr):
        arr[:] = self.generator.normal(0, 0.2, arr.shape)


def network():
    net = mx.sym.Variable("data")
    net = mx.sym.Convolution(net, kernel=(3, 3), num_filter=4, no_bias=True, name="z_conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, fix_gamma=False, name="bn"), act_type="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=12, name="m_fc")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=5, name="a_fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def schedule(args, epoch_size):
    if args.lr_step_epochs.startswith("pow"):
        return mx.lr_scheduler.PolyScheduler(int(args.num_epochs * epoch_size), args.lr, float(args.lr_step_epochs[3:]))
    if args.lr_step_epochs.startswith("every"):
        return mx.lr_scheduler.FactorScheduler(epoch_size * float(args.lr_step_epochs[5:]), args.lr_factor)
    steps = [epoch_size * (int(epoch) - args.load_epoch) for epoch in args.lr_step_epochs.split(",")]
    return mx.lr_scheduler.MultiFactorScheduler([step for step in steps if step > 0], args.lr_factor)


def fit(args, folder):
    kv = mx.kvstore.create(args.kv_store)
    prefix = os.path.join(folder, args.prefix)
    epoch_size = len(label) / args.batch_size / kv.num_workers
    arg_params = aux_params = None
    if args.load_epoch:
        _, arg_params, aux_params = mx.model.load_checkpoint(prefix, args.load_epoch)
    train = mx.io.NDArrayIter(image, label, args.batch_size)
    optimizer_params = {"learning_rate": args.lr, "wd": 1e-4, "lr_scheduler": schedule(args, epoch_size)}
    if args.optimizer in ("sgd", "nag"):
        optimizer_params.update(momentum=0.9, multi_precision=True)
    model = mx.mod.Module(network(), context=mx.cpu())
    model.fit(
        train,
        begin_epoch=args.load_epoch,
        num_epoch=args.num_epochs,
        eval_metric=["accuracy", mx.metric.create("top_k_accuracy", top_k=2), "ce"],
        kvstore=kv,
        optimizer=args.optimizer,
        optimizer_params=optimizer_params,
        initializer=FromOneGenerator(),
        arg_params=arg_params,
        aux_params=aux_params,
        batch_end_callback=[mx.callback.Speedometer(args.batch_size, epoch_size / 2)],
        epoch_end_callback=mx.callback.do_checkpoint(prefix, period=1),
        allow_missing=True,
    )
    return dict(model.score(train, ["acc", "ce"])), model._optimizer


parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", default="sgd")
parser.add_argument("--kv-store", default="local")
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--lr-factor", type=float, default=0.3)
parser.add_argument("--lr-step-epochs", default="1,2")
parser.add_argument("--num-epochs", type=int, default=2)
parser.add_argument("--load-epoch", type=int, default=0)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--prefix", default="steps")

folder = tempfile.mkdtemp()
try:
    for name, line in (
        ("steps", ""),
        ("resumed", "--load-epoch 2 --num-epochs 3 --lr-step-epochs 1,3"),
        ("poly", "--lr-step-epochs pow1.5 --optimizer nag --prefix poly"),
        ("every", "--lr-step-epochs every0.4 --kv-store device --prefix every"),
        ("adam", "--lr-step-epochs every0.75 --optimizer adam --lr 0.005 --prefix adam"),
    ):
        scores, optimizer = fit(parser.parse_args(line.split()), folder)
        print("RESULT %s_ce %.6f" % (name, scores["cross-entropy"]))
        print("RESULT %s_accuracy %.6f" % (name, scores["accuracy"]))
        print("RESULT %s_rate %.8f" % (name, optimizer.lr_scheduler.base_lr * 100))
finally:
    shutil.rmtree(folder)
