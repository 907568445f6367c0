"""The older ways to write an operator in Python: NumpyOp, and NDArrayOp, which computes with arrays of the library."""

import logging
import sys

import mxnet as mx
import numpy as np


class NumpySoftmax(mx.operator.NumpyOp):
    def __init__(self):
        super().__init__(False)

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        data_shape = in_shape[0]
        label_shape = (in_shape[0][0],)
        return [data_shape, label_shape], [data_shape]

    def forward(self, in_data, out_data):
        x = in_data[0]
        y = out_data[0]
        y[:] = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
        y /= y.sum(axis=1).reshape((x.shape[0], 1))

    def backward(self, out_grad, in_data, out_data, in_grad):
        label = in_data[1].reshape((in_data[1].size,)).astype(int)
        dx = in_grad[0]
        dx[:] = out_data[0]
        dx[np.arange(label.shape[0]), label] -= 1.0


class Scale(mx.operator.NDArrayOp):
    """y = factor · x, with the gradient from above."""

    def __init__(self, factor):
        super().__init__(True)
        self.factor = factor

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]]

    def forward(self, in_data, out_data):
        out_data[0][:] = in_data[0] * self.factor

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = out_grad[0] * self.factor


logging.basicConfig(level=logging.DEBUG)
rng = np.random.RandomState(5)
label = rng.randint(4, size=320)
data = (rng.normal(size=(4, 10))[label] + rng.normal(scale=0.7, size=(320, 10))).astype(np.float32)
train = mx.io.NDArrayIter(data[:240], label[:240], 40)
val = mx.io.NDArrayIter(data[240:], label[240:], 40)

scale, softmax = Scale(2.0), NumpySoftmax()
net = mx.symbol.Variable("data")
net = mx.symbol.FullyConnected(data=net, name="fc1", num_hidden=16)
net = scale(data=net, name="scale")
net = mx.symbol.Activation(data=net, name="relu1", act_type="relu")
net = mx.symbol.FullyConnected(data=net, name="fc2", num_hidden=4)
net = softmax(data=net, name="softmax")

shapes, _, _ = net.infer_shape(data=(40, 10), softmax_label=(40,))
params = {
    name: mx.nd.array(rng.uniform(-0.2, 0.2, shape))
    for name, shape in zip(net.list_arguments(), shapes)
    if name not in ("data", "softmax_label")
}
mod = mx.mod.Module(net, context=mx.cpu(0))
mod.fit(train, eval_data=val, arg_params=params, num_epoch=6, optimizer_params={"learning_rate": 0.2, "momentum": 0.5})
score = dict(mod.score(val, ["acc", "ce"]))

print("RESULT accuracy %f" % score["accuracy"])
print("RESULT cross_entropy %f" % score["cross-entropy"])
if score["accuracy"] < 0.85:
    sys.exit("accuracy %f" % score["accuracy"])
