"""A loss of our own by MakeLoss, with the prediction beside it through BlockGrad."""

import logging
import sys

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(9)

# A line in five dimensions with a few wild outliers, which a loss of squares would run after.
true_weight = rng.normal(size=(5, 1))
x = rng.normal(size=(256, 5)).astype(np.float32)
y = (x.dot(true_weight) + 0.5 + 0.05 * rng.normal(size=(256, 1))).astype(np.float32)
y[rng.choice(256, 20, replace=False)] += 15

data = mx.sym.Variable("data")
label = mx.sym.Variable("label")
weight = mx.sym.Variable("fc_weight")
pred = mx.sym.FullyConnected(data, weight=weight, name="fc", num_hidden=1)
huber = mx.sym.smooth_l1(pred - label, scalar=2.0)
decay = 1e-3 * mx.sym.sum(mx.sym.square(weight))
loss = mx.sym.MakeLoss(mx.sym.broadcast_add(mx.sym.mean(huber), decay), name="loss")
net = mx.sym.Group([mx.sym.BlockGrad(pred, name="pred"), loss])


class MeanOutput(mx.metric.EvalMetric):
    """The mean of one of the outputs."""

    def __init__(self, name, index):
        super().__init__(name)
        self.index = index

    def update(self, labels, preds):
        self.sum_metric += preds[self.index].asnumpy().mean()
        self.num_inst += 1


mod = mx.mod.Module(net, data_names=("data",), label_names=("label",))
train = mx.io.NDArrayIter({"data": x}, {"label": y}, batch_size=32, shuffle=False)
start = {"fc_weight": mx.nd.zeros((1, 5)), "fc_bias": mx.nd.zeros((1,))}
metric = MeanOutput("loss", 1)
mod.fit(
    train,
    eval_metric=metric,
    optimizer="adam",
    optimizer_params={"learning_rate": 0.05, "rescale_grad": 1.0},
    arg_params=start,
    num_epoch=15,
)
arg_params, _ = mod.get_params()
weight = arg_params["fc_weight"].asnumpy().ravel()
error = np.abs(weight - true_weight.ravel()).max()
outputs = mod.predict(train)

print("RESULT loss %f" % metric.get()[1])
print("RESULT bias %f" % arg_params["fc_bias"].asscalar())
print("RESULT weight_norm %f" % np.sqrt((weight**2).sum()))
print("RESULT mean_prediction %f" % outputs[0].asnumpy().mean())
if error > 0.1 or outputs[0].shape != (256, 1) or net.list_outputs() != ["pred_output", "loss_output"]:
    sys.exit("the line was not found: off by %f" % error)
