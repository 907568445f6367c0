"""Features from inside a trained network, and the network fine-tuned for other classes with its body held."""

import logging
import os
import shutil
import sys
import tempfile

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(31)
centres = rng.normal(size=(8, 12))


def samples(classes, count, batch_size=20):
    label = rng.randint(len(classes), size=count)
    data = centres[np.array(classes)[label]] + rng.normal(scale=0.6, size=(count, 12))
    return mx.io.NDArrayIter(data.astype(np.float32), label.astype(np.float32), batch_size)


def body():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc1", num_hidden=24)
    net = mx.sym.Activation(net, name="relu1", act_type="relu")
    net = mx.sym.FullyConnected(net, name="fc2", num_hidden=16)
    return mx.sym.Activation(net, name="relu2", act_type="relu")


def drawn(symbol, **shapes):
    pairs = zip(symbol.list_arguments(), symbol.infer_shape(**shapes)[0])
    return {n: mx.nd.array(rng.normal(0, 0.3, s)) for n, s in pairs if n.endswith(("weight", "bias"))}


# 1. a network that knows the first five classes
folder = tempfile.mkdtemp()
prefix = os.path.join(folder, "pretrained")
first = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(body(), name="fc3", num_hidden=5), name="softmax")
mod = mx.mod.Module(first)
start = drawn(first, data=(20, 12))
mod.fit(samples(range(5), 400), num_epoch=4, arg_params=start, optimizer_params={"learning_rate": 0.2})
mod.save_checkpoint(prefix, 4)

# 2. features: the last layer inside, in a module that has no label
sym, arg_params, aux_params = mx.model.load_checkpoint(prefix, 4)
shutil.rmtree(folder)
all_layers = sym.get_internals()
print(all_layers.list_outputs()[-8:])
extractor = mx.mod.Module(symbol=all_layers["relu2_output"], label_names=None, context=mx.cpu())
extractor.bind(for_training=False, data_shapes=[("data", (1, 12))])
extractor.set_params(arg_params, aux_params, allow_extra=True)
extractor.forward(mx.io.DataBatch([mx.nd.array(centres[:1])], label=None))
feature = extractor.get_outputs()[0].asnumpy()
by_hand = centres[:1]
for name in ("fc1", "fc2"):
    weight, bias = arg_params[name + "_weight"].asnumpy(), arg_params[name + "_bias"].asnumpy()
    by_hand = np.maximum(by_hand.dot(weight.T) + bias, 0)
if np.abs(feature - by_hand).max() > 1e-4:
    sys.exit("features differ by %g from those by hand" % np.abs(feature - by_hand).max())


# 3. a new head for the other three classes: the first layer is fixed, the second learns slowly, the head fast
def fine_tune_symbol(symbol, layer_name):
    net = symbol.get_internals()[layer_name + "_output"]
    weight = mx.sym.Variable("fc_new_weight", lr_mult=10.0)
    net = mx.symbol.FullyConnected(data=net, weight=weight, num_hidden=3, name="fc_new")
    return mx.symbol.SoftmaxOutput(data=net, name="softmax")


net = fine_tune_symbol(sym, "relu2")
new_args = {k: v for k, v in arg_params.items() if "fc3" not in k}
new_args.update({k: v for k, v in drawn(net, data=(20, 12)).items() if "new" in k})
train, test = samples([5, 6, 7], 200), samples([5, 6, 7], 100)
tuned = mx.mod.Module(net, fixed_param_names=["fc1_weight", "fc1_bias"])
tuned.bind(data_shapes=train.provide_data, label_shapes=train.provide_label)
tuned.init_params(mx.init.Xavier(), arg_params=new_args, aux_params=aux_params, allow_missing=True)
optimizer = mx.optimizer.SGD(
    learning_rate=0.02, rescale_grad=1.0 / 20, sym=net, param_idx2name=dict(enumerate(tuned._param_names))
)
optimizer.set_lr_mult({"fc2_bias": 0.0})
tuned.fit(train, num_epoch=5, optimizer=optimizer, arg_params=new_args, aux_params=aux_params)

score = dict(tuned.score(test, ["acc", "ce"]))
after = tuned.get_params()[0]
moved = {k: float(np.abs(after[k].asnumpy() - new_args[k].asnumpy()).max()) for k in after}
print("RESULT feature_sum %f" % feature.sum())
print("RESULT accuracy %f" % score["accuracy"])
print("RESULT cross_entropy %f" % score["cross-entropy"])
print("RESULT moved_fc2 %f" % moved["fc2_weight"])
print("RESULT moved_new %f" % moved["fc_new_weight"])
if score["accuracy"] < 0.85:
    sys.exit("accuracy %f" % score["accuracy"])
if moved["fc1_weight"] or moved["fc1_bias"] or moved["fc2_bias"] or not moved["fc2_weight"]:
    sys.exit("parameters moved by %s" % moved)
