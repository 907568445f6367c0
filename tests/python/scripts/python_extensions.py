"""A metric, an iterator, an optimizer, an initializer and a schedule written in Python, all in one fit."""

import logging
import pickle
import sys

import mxnet as mx
import numpy as np


@mx.metric.register
class HitsPerClass(mx.metric.EvalMetric):
    """The accuracy within the worst class."""

    def __init__(self, num_classes=3, name="worst_class"):
        self.num_classes = num_classes
        super().__init__(name, num_classes=num_classes)

    def reset(self):
        self.hits = np.zeros(self.num_classes)
        self.count = np.zeros(self.num_classes)

    def update(self, labels, preds):
        for label, pred in zip(labels, preds):
            label = label.asnumpy().astype(int)
            np.add.at(self.count, label, 1)
            np.add.at(self.hits, label, pred.asnumpy().argmax(axis=1) == label)

    def get(self):
        return self.name, float((self.hits / np.maximum(self.count, 1)).min())


class Spiral(mx.io.DataIter):
    """Points on three arms, made as they are asked for."""

    def __init__(self, batch_size, num_batches, seed):
        super().__init__(batch_size)
        self.num_batches, self.seed = num_batches, seed
        self.reset()

    provide_data = property(lambda self: [mx.io.DataDesc("data", (self.batch_size, 2))])
    provide_label = property(lambda self: [mx.io.DataDesc("softmax_label", (self.batch_size,))])

    def reset(self):
        self.rng, self.batch = np.random.RandomState(self.seed), 0

    def iter_next(self):
        if self.batch == self.num_batches:
            return False
        self.batch += 1
        radius = self.rng.uniform(0.1, 1, self.batch_size)
        self.arm = self.rng.randint(3, size=self.batch_size)
        angle = 2.5 * radius + self.arm * 2 * np.pi / 3 + self.rng.normal(0, 0.1, self.batch_size)
        self.points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return True

    def getdata(self):
        return [mx.nd.array(2 * self.points)]

    def getlabel(self):
        return [mx.nd.array(self.arm)]

    def getpad(self):
        return 0


@mx.optimizer.Optimizer.register
class HeavyBall(mx.optimizer.Optimizer):
    """Momentum, in the words of NDArray."""

    def __init__(self, momentum=0.9, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index, weight):
        return mx.nd.zeros(weight.shape, weight.context, dtype=weight.dtype)

    def update(self, index, weight, grad, state):
        self._update_count(index)
        lr, wd = self._get_lr(index), self._get_wd(index)
        state[:] = self.momentum * state - lr * (self.rescale_grad * grad + wd * weight)
        weight[:] += state


@mx.init.register
class Fan(mx.init.Initializer):
    """Normal by the number of inputs, from a NumPy seed made of the name."""

    def __init__(self, gain=1.0):
        super().__init__(gain=gain)
        self.gain = gain

    def _init_weight(self, desc, arr):
        rng = np.random.RandomState(sum(map(ord, desc)))
        arr[:] = rng.normal(0, self.gain / np.sqrt(arr.shape[1]), arr.shape)


class Decay(mx.lr_scheduler.LRScheduler):
    def __init__(self, every, **kwargs):
        super().__init__(**kwargs)
        self.every, self.calls = every, 0

    def __call__(self, num_update):
        self.calls += 1
        return self.base_lr / (1 + num_update // self.every)


logging.basicConfig(level=logging.INFO)
train, test = Spiral(30, 20, seed=1), Spiral(30, 10, seed=2)
net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc1", num_hidden=32)
net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), name="fc2", num_hidden=3)
net = mx.sym.SoftmaxOutput(net, name="softmax")

schedule, losses = Decay(every=100, base_lr=0.3), []
mod = mx.mod.Module(net)
mod.fit(
    train,
    eval_metric=mx.metric.create("hitsperclass"),
    optimizer="heavyball",
    optimizer_params={"learning_rate": 0.3, "lr_scheduler": schedule, "momentum": 0.8, "wd": 1e-4},
    initializer=Fan(gain=1.5),
    batch_end_callback=lambda param: losses.append(param.eval_metric.get()[1]),
    num_epoch=10,
)
worst = mod.score(test, HitsPerClass(3))[0][1]
print("RESULT worst_class %f" % worst)
print("RESULT cross_entropy %f" % dict(mod.score(test, "ce"))["cross-entropy"])
print("RESULT batches %d" % len(losses))
print("RESULT final_rate %f" % mod._optimizer.learning_rate)
copy = pickle.loads(pickle.dumps(mx.optimizer.create("heavyball", momentum=0.7)))
if worst < 0.8 or not schedule.calls or copy.momentum != 0.7 or Fan(2.0).dumps() != '["fan", {"gain": 2.0}]':
    sys.exit("worst class %f, %d calls of the schedule" % (worst, schedule.calls))
