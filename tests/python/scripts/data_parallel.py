"""One module on several devices, as scripts with --gpus 0,1 have it, and the same training on one."""

import argparse
import logging
import sys

import mxnet as mx
import numpy as np
from mxnet import metric as metrics
from mxnet import ndarray as nd
from mxnet import symbol as sym
from mxnet.io import DataBatch, DataDesc, NDArrayIter
from mxnet.module import Module

parser = argparse.ArgumentParser()
parser.add_argument("--devices", default="0,1,2", help="numbers of the devices")
parser.add_argument("--kv-store", default="device")
parser.add_argument("--batch-size", type=int, default=24)
args = parser.parse_args()
logging.basicConfig(level=logging.INFO, format="%(asctime)-15s %(message)s")

rng = np.random.RandomState(77)
label = rng.randint(5, size=360)
data = (rng.normal(size=(5, 12))[label] + rng.normal(scale=0.8, size=(360, 12))).astype(np.float32)


def get_symbol(num_classes):
    data = sym.Variable("data")
    weight = sym.var("fc1_weight", lr_mult=2.0)
    body = sym.FullyConnected(data=data, weight=weight, num_hidden=20, name="fc1")
    body = sym.Activation(data=body, act_type="sigmoid", name="act1")
    body = sym.FullyConnected(data=body, num_hidden=num_classes, name="fc2")
    return sym.SoftmaxOutput(data=body, name="softmax", normalization="null")


def train(contexts, work_load_list=None):
    net = get_symbol(5)
    arg_shapes, _, _ = net.infer_shape(data=(args.batch_size, 12))
    start = np.random.RandomState(1)
    pairs = [(n, s) for n, s in zip(net.list_arguments(), arg_shapes) if n not in ("data", "softmax_label")]
    params = {name: nd.array(start.normal(0, 0.3, shape)) for name, shape in pairs}
    iterator = NDArrayIter(data, label, batch_size=args.batch_size)
    module = Module(net, context=contexts, work_load_list=work_load_list)
    module.fit(
        iterator,
        kvstore=mx.kv.create(args.kv_store),
        eval_metric=[metrics.Accuracy(), metrics.CrossEntropy()],
        optimizer="nag",
        optimizer_params={
            "learning_rate": 0.1,
            "momentum": 0.9,
            "wd": 1e-4,
            "lr_scheduler": mx.lr_scheduler.MultiFactorScheduler(step=[40, 60], factor=0.5),
        },
        arg_params=params,
        num_epoch=5,
    )
    return module


devices = [mx.cpu(int(i)) for i in args.devices.split(",")]
one, several, uneven = train(mx.cpu()), train(devices), train(devices[:2], work_load_list=[1, 3])
final = {k: [m.get_params()[0][k].asnumpy() for m in (one, several, uneven)] for k in one.get_params()[0]}
apart = max(np.abs(values[0] - other).max() for values in final.values() for other in values[1:])

shapes = [DataDesc("data", (args.batch_size, 12))]
batch = DataBatch([nd.array(data[: args.batch_size])], [nd.array(label[: args.batch_size])], provide_data=shapes)
several.forward(batch, is_train=False)
parts = several.get_outputs(merge_multi_context=False)[0]
contexts = [part.context for part in parts]
gap = np.abs(np.concatenate([part.asnumpy() for part in parts]) - several.get_outputs()[0].asnumpy()).max()

scores = dict(several.score(NDArrayIter(data, label, args.batch_size), ["acc", "ce"]))
print("RESULT accuracy %f" % scores["accuracy"])
print("RESULT cross_entropy %f" % scores["cross-entropy"])
print("RESULT fc2_bias %f" % np.abs(final["fc2_bias"][0]).sum())
print("RESULT parts %d" % len(parts))
if apart > 1e-4:
    sys.exit("one device and several differ by %g" % apart)
if contexts != devices or gap > 0:
    sys.exit("the parts of the outputs, on %s, are not the whole" % contexts)
