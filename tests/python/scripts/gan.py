"""Two modules against each other: the discriminator's gradient by its input drives the generator."""

import logging
import sys

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)
rng = np.random.RandomState(12)
batch_size, noise_size, steps = 64, 4, 800


def generator():
    net = mx.sym.Variable("rand")
    net = mx.sym.FullyConnected(net, name="g1", num_hidden=16)
    net = mx.sym.Activation(net, name="gact1", act_type="tanh")
    return mx.sym.FullyConnected(net, name="gout", num_hidden=2)


def discriminator():
    net = mx.sym.Variable("data")
    label = mx.sym.Variable("label")
    net = mx.sym.FullyConnected(net, name="d1", num_hidden=24)
    net = mx.sym.Activation(net, name="dact1", act_type="tanh")
    net = mx.sym.FullyConnected(net, name="d2", num_hidden=1)
    return mx.sym.LogisticRegressionOutput(data=net, label=label, name="dloss")


class RandIter(mx.io.DataIter):
    """Batches of noise, without an end."""

    def __init__(self, batch_size, ndim):
        super().__init__(batch_size)
        self.ndim = ndim
        self.provide_data = [("rand", (batch_size, ndim))]
        self.provide_label = []

    def iter_next(self):
        return True

    def getdata(self):
        return [mx.nd.array(rng.normal(0, 1.0, (self.batch_size, self.ndim)))]


def start(symbol, **shapes):
    arg_shapes, _, _ = symbol.infer_shape(**shapes)
    pairs = zip(symbol.list_arguments(), arg_shapes)
    return {
        name: mx.nd.array(rng.normal(0, 0.3, shape)) for name, shape in pairs if name not in shapes and name != "label"
    }


def real_points():
    return mx.nd.array(rng.normal((2.0, -1.0), (0.5, 0.5), (batch_size, 2)))


rand_iter = RandIter(batch_size, noise_size)
label = mx.nd.zeros((batch_size, 1))

mod_g = mx.mod.Module(symbol=generator(), data_names=("rand",), label_names=None, context=mx.cpu())
mod_g.bind(data_shapes=rand_iter.provide_data)
mod_g.init_params(arg_params=start(mod_g.symbol, rand=(batch_size, noise_size)))
mod_g.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.003, "beta1": 0.5})

mod_d = mx.mod.Module(symbol=discriminator(), data_names=("data",), label_names=("label",), context=mx.cpu())
mod_d.bind(data_shapes=[("data", (batch_size, 2))], label_shapes=[("label", (batch_size, 1))], inputs_need_grad=True)
mod_d.init_params(arg_params=start(mod_d.symbol, data=(batch_size, 2)))
mod_d.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.003, "beta1": 0.5})


def facc(label, pred):
    return ((pred.ravel() > 0.5) == label.ravel()).mean()


metric = mx.metric.CustomMetric(facc)
for step in range(steps):
    rbatch = rand_iter.next()
    mod_g.forward(rbatch, is_train=True)
    fake = mod_g.get_outputs()

    # the discriminator on fake points, gradients kept aside, then on real ones, and the sum of both
    label[:] = 0
    mod_d.forward(mx.io.DataBatch(fake, [label]), is_train=True)
    mod_d.backward()
    grad_fake = [[grad.copyto(grad.context) for grad in grads] for grads in mod_d._exec_group.grad_arrays]
    mod_d.update_metric(metric, [label])
    label[:] = 1
    mod_d.forward(mx.io.DataBatch([real_points()], [label]), is_train=True)
    mod_d.backward()
    for reals, fakes in zip(mod_d._exec_group.grad_arrays, grad_fake):
        for grad_real, grad in zip(reals, fakes):
            grad_real += grad
    mod_d.update()
    mod_d.update_metric(metric, [label])

    # the generator, towards what the discriminator takes for real
    mod_d.forward(mx.io.DataBatch(fake, [label]), is_train=True)
    mod_d.backward()
    mod_g.backward(mod_d.get_input_grads())
    mod_g.update()
    if step % 200 == 199:
        logging.info("step %d: %s, fake mean %s", step + 1, metric.get(), fake[0].asnumpy().mean(axis=0))
        metric.reset()

points = np.concatenate([(mod_g.forward(rand_iter.next()), mod_g.get_outputs()[0].asnumpy())[1] for _ in range(10)])
mean = points.mean(axis=0)
print("RESULT mean_0 %f" % mean[0])
print("RESULT mean_1 %f" % mean[1])
if np.abs(mean - (2.0, -1.0)).max() > 0.3:
    sys.exit("generated points are around %s" % mean)
