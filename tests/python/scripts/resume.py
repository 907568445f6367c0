"""Training interrupted and taken up from a checkpoint with the optimizer's states ends where it would have anyway."""

import logging
import os
import shutil
import sys
import tempfile

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(21)
label = rng.randint(6, size=480)
data = (rng.normal(size=(6, 16))[label] + rng.normal(size=(480, 16))).astype(np.float32)
folder = tempfile.mkdtemp()
prefix = os.path.join(folder, "model")


def network():
    net = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(net, name="fc1", num_hidden=32)
    net = mx.sym.BatchNorm(net, name="bn1")
    net = mx.sym.Activation(net, name="relu1", act_type="relu")
    net = mx.sym.FullyConnected(net, name="fc2", num_hidden=6)
    return mx.sym.SoftmaxOutput(net, name="softmax")


def train_iter():
    return mx.io.NDArrayIter(data, label, batch_size=48)


shapes, _, aux_shapes = network().infer_shape(data=(48, 16))
first = {n: mx.nd.array(rng.normal(0, 0.2, s)) for n, s in zip(network().list_arguments(), shapes) if "fc" in n}
options = dict(
    optimizer="sgd",
    optimizer_params={"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-3},
    initializer=mx.init.Uniform(0.01),
    eval_metric="ce",
    allow_missing=True,
)

# Without a break.
straight = mx.mod.Module(network())
straight.fit(train_iter(), num_epoch=6, arg_params=first, **options)

# Three epochs, each saved, then a new module from the files for the others.
broken = mx.mod.Module(network())
checkpoint = mx.callback.module_checkpoint(broken, prefix, period=1, save_optimizer_states=True)
broken.fit(train_iter(), num_epoch=3, arg_params=first, epoch_end_callback=checkpoint, **options)
files = sorted(os.listdir(folder))

resumed = mx.mod.Module.load(prefix, 3, load_optimizer_states=True)
epochs = []
resumed.fit(
    train_iter(), begin_epoch=3, num_epoch=6, epoch_end_callback=lambda epoch, *_: epochs.append(epoch), **options
)

# The same in the functional way, which starts the momentum anew.
sym, arg_params, aux_params = mx.model.load_checkpoint(prefix, 3)
plain = mx.mod.Module(symbol=sym)
plain.fit(train_iter(), begin_epoch=3, num_epoch=6, arg_params=arg_params, aux_params=aux_params, **options)


def distance(a, b):
    pairs = zip(a.get_params(), b.get_params())
    return max(np.abs(x[name].asnumpy() - y[name].asnumpy()).max() for x, y in pairs for name in x)


def loss(module):
    return dict(module.score(train_iter(), "ce"))["cross-entropy"]


shutil.rmtree(folder)
print("RESULT straight %f" % loss(straight))
print("RESULT resumed %f" % loss(resumed))
print("RESULT without_states %f" % loss(plain))
print("RESULT files %d" % len(files))
if distance(straight, resumed) > 1e-5:
    sys.exit("resumed training differs by %g" % distance(straight, resumed))
if distance(straight, plain) < 1e-5 or epochs != [3, 4, 5]:
    sys.exit("the states made no difference, or the epochs were %s" % epochs)
if files[0] != "model-0001.params" or files[-1] != "model-symbol.json" or len(files) != 7:
    sys.exit("the files written were %s" % files)
