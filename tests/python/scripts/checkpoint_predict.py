"""A saved model loaded and asked: forward with a namedtuple for a batch, predict, score, iter_predict."""

import os
import shutil
import sys
import tempfile
from collections import namedtuple

import mxnet as mx
import numpy as np

Batch = namedtuple("Batch", ["data"])
rng = np.random.RandomState(13)


def save_model(prefix):
    """A small convolutional network as someone else might have left it."""
    net = mx.sym.Variable("data")
    net = mx.sym.Convolution(net, name="conv1", num_filter=8, kernel=(3, 3), pad=(1, 1))
    net = mx.sym.BatchNorm(net, name="bn1", fix_gamma=False)
    net = mx.sym.Activation(net, name="relu1", act_type="relu")
    net = mx.sym.Pooling(net, name="pool1", kernel=(2, 2), stride=(2, 2), pool_type="avg")
    net = mx.sym.Dropout(mx.sym.Flatten(net), p=0.5, name="drop1")
    net = mx.sym.FullyConnected(net, name="fc1", num_hidden=4)
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    arg_shapes, _, aux_shapes = net.infer_shape(data=(1, 3, 8, 8))
    args = {n: mx.nd.array(rng.normal(0, 0.3, s)) for n, s in zip(net.list_arguments(), arg_shapes)}
    aux = {n: mx.nd.array(rng.uniform(0.5, 1, s)) for n, s in zip(net.list_auxiliary_states(), aux_shapes)}
    for name in ("data", "softmax_label"):
        del args[name]
    mx.model.save_checkpoint(prefix, 7, net, args, aux)


folder = tempfile.mkdtemp()
prefix = os.path.join(folder, "net")
save_model(prefix)
sym, arg_params, aux_params = mx.model.load_checkpoint(prefix, 7)
raw = mx.nd.load(prefix + "-0007.params")
shutil.rmtree(folder)
if sorted(raw)[0] != "arg:bn1_beta" or "aux:bn1_moving_mean" not in raw:
    sys.exit("names in the file: %s" % sorted(raw))

mod = mx.mod.Module(symbol=sym, context=mx.cpu(), label_names=None)
mod.bind(for_training=False, data_shapes=[("data", (1, 3, 8, 8))], label_shapes=mod._label_shapes)
mod.set_params(arg_params, aux_params, allow_missing=True)

# One image after another.
images = rng.uniform(-1, 1, (10, 3, 8, 8)).astype(np.float32)
rows = []
for image in images:
    mod.forward(Batch([mx.nd.array(image[np.newaxis])]))
    rows.append(np.squeeze(mod.get_outputs()[0].asnumpy()))
one_by_one = np.array(rows)
for i in np.argsort(one_by_one[0])[::-1][:2]:
    print("probability=%f, class=%d" % (one_by_one[0][i], i))

# All at once, with the labels a name but no shape.
whole = mx.mod.Module(symbol=sym, context=mx.cpu())
whole.bind(for_training=False, data_shapes=[("data", images.shape)])
whole.set_params(arg_params, aux_params)
whole.forward(Batch([mx.nd.array(images)]))
at_once = whole.get_outputs()[0].asnumpy()

# By an iterator whose last batch is padded.
val = mx.io.NDArrayIter(images, np.arange(10) % 4, batch_size=4)
model = mx.mod.Module(symbol=sym)
model.bind(data_shapes=val.provide_data, label_shapes=val.provide_label, for_training=False)
model.set_params(arg_params, aux_params)
predicted = model.predict(val)
some = model.predict(val, num_batch=1)
apart = model.predict(val, merge_batches=False)
pieces = []
for preds, i_batch, batch in model.iter_predict(val):
    pieces.append(preds[0].asnumpy())
    if batch.pad != (2 if i_batch == 2 else 0):
        sys.exit("batch %d is padded by %d" % (i_batch, batch.pad))
scored = dict(model.score(mx.io.NDArrayIter(images, np.arange(10) % 4, batch_size=5), ["acc", "ce"]))

for name, answer in (("at once", at_once), ("predict", predicted.asnumpy()), ("iter_predict", np.concatenate(pieces))):
    if answer.shape != (10, 4) or np.abs(answer - one_by_one).max() > 1e-5:
        sys.exit("%s differs by %g" % (name, np.abs(answer - one_by_one).max()))
if some.shape != (4, 4) or len(apart) != 3 or apart[2][0].shape != (2, 4):
    sys.exit("predict gave %s and %d batches" % (some.shape, len(apart)))

print("RESULT first %f" % one_by_one[0, 0])
print("RESULT spread %f" % one_by_one.std())
print("RESULT accuracy %f" % scored["accuracy"])
print("RESULT cross_entropy %f" % scored["cross-entropy"])
