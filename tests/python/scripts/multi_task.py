"""Two tasks on one body: which digit, and is it odd. An iterator gives the label twice, a metric counts both tasks.

usage: multi_task.py --data-dir DIR
"""

import argparse
import gzip
import logging
import os
import shutil
import sys
import tempfile

import mxnet as mx
import numpy as np


def build_network():
    data = mx.symbol.Variable("data")
    fc1 = mx.symbol.FullyConnected(data=data, name="fc1", num_hidden=48)
    act1 = mx.symbol.Activation(data=fc1, name="relu1", act_type="relu")
    digit = mx.symbol.FullyConnected(data=act1, name="fc_digit", num_hidden=10)
    parity = mx.symbol.FullyConnected(data=act1, name="fc_parity", num_hidden=2)
    sm1 = mx.symbol.SoftmaxOutput(data=digit, name="softmax1")
    sm2 = mx.symbol.SoftmaxOutput(data=parity, name="softmax2", grad_scale=0.5)
    return mx.symbol.Group([sm1, sm2])


class TwoLabels(mx.io.DataIter):
    """Passes on the batches of another iterator, with the label and what is odd of it."""

    def __init__(self, data_iter):
        super().__init__()
        self.data_iter = data_iter
        self.batch_size = data_iter.batch_size

    @property
    def provide_data(self):
        return self.data_iter.provide_data

    @property
    def provide_label(self):
        provide_label = self.data_iter.provide_label[0]
        return [("softmax1_label", provide_label[1]), ("softmax2_label", provide_label[1])]

    def hard_reset(self):
        self.data_iter.hard_reset()

    def reset(self):
        self.data_iter.reset()

    def next(self):
        batch = self.data_iter.next()
        label = batch.label[0]
        odd = mx.nd.array(label.asnumpy().astype(int) % 2)
        return mx.io.DataBatch(data=batch.data, label=[label, odd], pad=batch.pad, index=batch.index)


class MultiAccuracy(mx.metric.EvalMetric):
    """The accuracy of each of several outputs."""

    def __init__(self, num=None):
        self.num = num
        super().__init__("multi-accuracy")

    def reset(self):
        self.num_inst = [0] * self.num
        self.sum_metric = [0.0] * self.num

    def update(self, labels, preds):
        mx.metric.check_label_shapes(labels, preds)
        for i in range(self.num):
            pred = mx.nd.argmax_channel(preds[i]).asnumpy().astype("int32")
            label = labels[i].asnumpy().astype("int32")
            self.sum_metric[i] += (pred.flat == label.flat).sum()
            self.num_inst[i] += len(pred.flat)

    def get(self):
        names = ["%s_%d" % ("accuracy", i) for i in range(self.num)]
        return names, [s / n if n else float("nan") for s, n in zip(self.sum_metric, self.num_inst)]


parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", required=True)
folder, args = tempfile.mkdtemp(), parser.parse_args()
logging.basicConfig(level=logging.INFO)
for name in os.listdir(args.data_dir):
    if name.endswith(".gz"):
        with (
            gzip.open(os.path.join(args.data_dir, name)) as packed,
            open(os.path.join(folder, name[:-3]), "wb") as plain,
        ):
            shutil.copyfileobj(packed, plain)


def digits(part, **kwargs):
    files = [os.path.join(folder, part + end) for end in ("-images-idx3-ubyte", "-labels-idx1-ubyte")]
    return TwoLabels(mx.io.MNISTIter(image=files[0], label=files[1], batch_size=60, flat=True, silent=True, **kwargs))


train, val = digits("train", shuffle=True, seed=5), digits("t10k", shuffle=False)
net = build_network()
rng = np.random.RandomState(1)
shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(60, 784))[0]))
params = {k: mx.nd.array(rng.normal(0, 0.05, s)) for k, s in shapes.items() if k[:2] == "fc"}

mod = mx.mod.Module(net, label_names=("softmax1_label", "softmax2_label"))
mod.fit(
    train,
    val,
    MultiAccuracy(num=2),
    arg_params=params,
    optimizer_params={"learning_rate": 0.1, "momentum": 0.9},
    num_epoch=3,
)
shutil.rmtree(folder)
for name, value in mod.score(val, MultiAccuracy(num=2)):
    print("RESULT %s %f" % (name, value))
    if value < 0.9:
        sys.exit("%s is %f" % (name, value))
