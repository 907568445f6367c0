"""A softmax with loss as a custom operator in NumPy, in a network trained with fit."""

import logging
import sys

import mxnet as mx
import numpy as np


class Softmax(mx.operator.CustomOp):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
        y /= y.sum(axis=1).reshape((x.shape[0], 1))
        self.assign(out_data[0], req[0], mx.nd.array(y))
        if is_train:
            aux[0][:] = aux[0] + 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label = in_data[1].asnumpy().ravel().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(label.shape[0]), label] -= 1.0
        self.assign(in_grad[0], req[0], mx.nd.array(self.scale * y))


@mx.operator.register("my_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self, scale="1.0"):
        super().__init__(need_top_grad=False)
        self.scale = float(scale)  # parameters come as text

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return ["output"]

    def list_auxiliary_states(self):
        return ["calls"]

    def infer_shape(self, in_shape):
        data_shape = in_shape[0]
        label_shape = (in_shape[0][0],)
        return [data_shape, label_shape], [data_shape], [(1,)]

    def infer_type(self, in_type):
        return in_type, [in_type[0]], [in_type[0]]

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax(self.scale)


def network():
    data = mx.symbol.Variable("data")
    fc1 = mx.symbol.FullyConnected(data=data, name="fc1", num_hidden=16)
    act1 = mx.symbol.Activation(data=fc1, name="relu1", act_type="relu")
    fc2 = mx.symbol.FullyConnected(data=act1, name="fc2", num_hidden=3)
    return mx.symbol.Custom(data=fc2, name="softmax", op_type="my_softmax", scale=1.0)


logging.basicConfig(level=logging.DEBUG)
rng = np.random.RandomState(0)
centres = rng.normal(size=(3, 8))
label = rng.randint(3, size=300)
data = (centres[label] + rng.normal(scale=0.8, size=(300, 8))).astype(np.float32)
train = mx.io.NDArrayIter(data[:200], label[:200], 25)
val = mx.io.NDArrayIter(data[200:], label[200:], 25)

net = network()
shapes, _, _ = net.infer_shape(data=(25, 8))
params = {
    name: mx.nd.array(rng.uniform(-0.3, 0.3, shape))
    for name, shape in zip(net.list_arguments(), shapes)
    if name not in ("data", "softmax_label")
}

mod = mx.mod.Module(net, context=mx.cpu())
mod.fit(
    train,
    eval_data=val,
    optimizer="sgd",
    optimizer_params={"learning_rate": 0.1, "momentum": 0.9, "wd": 0.00001},
    arg_params=params,
    aux_params={"softmax_calls": mx.nd.zeros((1,))},
    num_epoch=5,
    batch_end_callback=mx.callback.Speedometer(25, 4),
)
score = dict(mod.score(val, ["acc", "ce"]))
calls = mod.get_params()[1]["softmax_calls"].asscalar()

print("RESULT accuracy %f" % score["accuracy"])
print("RESULT cross_entropy %f" % score["cross-entropy"])
print("RESULT training_calls %d" % calls)
if score["accuracy"] < 0.8 or calls != 5 * 8:
    sys.exit("accuracy %f, %d calls" % (score["accuracy"], calls))
