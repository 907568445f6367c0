"""The intermediate-level interface: bind, init_params, init_optimizer, then a loop over batches."""

import logging
import sys

import mxnet as mx
import numpy as np

logging.getLogger().setLevel(logging.DEBUG)
rng = np.random.RandomState(42)

# Five clouds of points in 20 dimensions.
num_class, dim, batch_size = 5, 20, 32
centres = rng.normal(size=(num_class, dim))
label = rng.randint(num_class, size=484)
data = (centres[label] + rng.normal(scale=0.9, size=(484, dim))).astype(np.float32)
train_iter = mx.io.NDArrayIter(data[:384], label[:384], batch_size)
val_iter = mx.io.NDArrayIter(data[384:], label[384:], batch_size)

net = mx.sym.Variable("data")
net = mx.sym.FullyConnected(net, name="fc1", num_hidden=24)
net = mx.sym.BatchNorm(net, name="bn1", fix_gamma=False)
net = mx.sym.Activation(net, name="relu1", act_type="relu")
net = mx.sym.FullyConnected(net, name="fc2", num_hidden=num_class)
net = mx.sym.SoftmaxOutput(net, name="softmax")

arg_shapes, _, _ = net.infer_shape(data=(batch_size, dim))
arg_params = {
    name: mx.nd.array(rng.uniform(-0.1, 0.1, shape))
    for name, shape in zip(net.list_arguments(), arg_shapes)
    if name.endswith("weight")
}

mod = mx.mod.Module(symbol=net, context=mx.cpu(), data_names=["data"], label_names=["softmax_label"])
mod.bind(data_shapes=train_iter.provide_data, label_shapes=train_iter.provide_label)
# What arg_params leaves out is for the initializer: biases 0, gammas 1, moving means 0, moving variances 1.
mod.init_params(initializer=mx.init.Uniform(scale=0.1), arg_params=arg_params, allow_missing=True)
mod.init_optimizer(optimizer="sgd", optimizer_params=(("learning_rate", 0.1), ("momentum", 0.9), ("wd", 1e-4)))

metric = mx.metric.create(["acc", "ce"])
for epoch in range(5):
    train_iter.reset()
    metric.reset()
    for batch in train_iter:
        mod.forward(batch, is_train=True)
        mod.update_metric(metric, batch.label)
        mod.backward()
        mod.update()
    print("Epoch %d, Training %s" % (epoch, metric.get()))
train = dict(metric.get_name_value())

# Validation by hand: the last batch is padded with samples of the first.
hits = count = 0
val_iter.reset()
for batch in val_iter:
    mod.forward(batch, is_train=False)
    prob = mod.get_outputs()[0].asnumpy()
    keep = batch_size - batch.pad
    hits += (prob.argmax(axis=1) == batch.label[0].asnumpy())[:keep].sum()
    count += keep

moving_mean = mod.get_params()[1]["bn1_moving_mean"].asnumpy()
print("RESULT train_accuracy %f" % train["accuracy"])
print("RESULT train_cross_entropy %f" % train["cross-entropy"])
print("RESULT validation_accuracy %f" % (hits / count))
print("RESULT moving_mean %f" % np.abs(moving_mean).mean())
if count != 100 or hits / count < 0.85:
    sys.exit("%d of %d right" % (hits, count))
