"""Modules one after the other, the last of them a loss that is written in Python."""

import logging

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(17)
data = rng.uniform(-1, 1, (200, 10)).astype(np.float32)
label = (data[:, :4].argmax(axis=1)).astype(np.float32)
train = mx.io.NDArrayIter(data, label, batch_size=20)


class Known(mx.init.Initializer):
    """The same numbers under every library."""

    def _init_weight(self, name, arr):
        arr[:] = np.random.RandomState(len(name)).uniform(-0.5, 0.5, arr.shape)

    _init_default = _init_weight


def hinge_gradient(scores, labels):
    scores, labels = scores.asnumpy(), labels.asnumpy().astype(int)
    rows = np.arange(len(labels))
    margin = scores - scores[rows, labels][:, None] + 1
    margin[rows, labels] = 0
    gradient = (margin > 0).astype(np.float32)
    gradient[rows, labels] = -gradient.sum(axis=1)
    return gradient


class LeastSquares(mx.mod.PythonLossModule):
    """The gradient by a method, with a metric of its own."""

    def _backward_impl(self):
        wanted = mx.nd.one_hot(self._labels, 4)
        self._scores_grad = self._scores - wanted


def features():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc1", num_hidden=16)
    return mx.mod.Module(mx.sym.Activation(net, name="relu1", act_type="relu"), label_names=[])


def scores():
    return mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc2", num_hidden=4), label_names=[])


for name, loss in (("hinge", mx.mod.PythonLossModule(grad_func=hinge_gradient)), ("squares", LeastSquares())):
    mod = mx.mod.SequentialModule()
    mod.add(features()).add(scores(), auto_wiring=True).add(loss, take_labels=True, auto_wiring=True)
    mod.bind(data_shapes=train.provide_data, label_shapes=train.provide_label, inputs_need_grad=True)
    mod.init_params(initializer=Known())
    mod.init_optimizer(optimizer_params={"learning_rate": 0.2, "momentum": 0.5})
    metric = mx.metric.Accuracy()
    for _ in range(6):
        train.reset()
        metric.reset()
        for batch in train:
            mod.forward(batch, is_train=True)
            mod.backward()
            mod.update()
            mod.update_metric(metric, batch.label)
    params = mod.get_params()[0]
    print("RESULT %s_accuracy %f" % (name, metric.get()[1]))
    print("RESULT %s_weights %f" % (name, sum(np.abs(p.asnumpy()).sum() for p in params.values())))
    print("RESULT %s_gradient %f" % (name, np.abs(mod._modules[0].get_input_grads()[0].asnumpy()).sum()))
