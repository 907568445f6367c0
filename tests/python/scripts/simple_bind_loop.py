"""Training without Module: simple_bind, and stochastic gradient descent of our own over arg_dict and grad_dict."""

import sys

import mxnet as mx
import numpy as np

ctx = mx.cpu()
batch_size, size = 20, 12
rng = np.random.RandomState(3)


def bars(count):
    """Images of a noisy bar: 0 lying, 1 standing, 2 along the diagonal."""
    images = rng.normal(scale=0.3, size=(count, 1, size, size))
    labels = rng.randint(3, size=count)
    for image, label in zip(images, labels):
        at = rng.randint(2, size - 2)
        if label == 0:
            image[0, at, :] += 1
        elif label == 1:
            image[0, :, at] += 1
        else:
            image[0][np.arange(size), np.arange(size)] += 1
    return images.astype(np.float32), labels.astype(np.float32)


data = mx.sym.Variable("data")
conv = mx.sym.Convolution(data, name="conv1", num_filter=6, kernel=(3, 3))
tanh = mx.sym.Activation(conv, name="tanh1", act_type="tanh")
pool = mx.sym.Pooling(tanh, name="pool1", pool_type="max", kernel=(2, 2), stride=(2, 2))
fc1 = mx.sym.FullyConnected(mx.sym.Flatten(pool), name="fc1", num_hidden=3)
net = mx.sym.SoftmaxOutput(fc1, name="softmax")

grad_req = {name: "null" if name in ("data", "softmax_label") else "write" for name in net.list_arguments()}
executor = net.simple_bind(ctx=ctx, data=(batch_size, 1, size, size), softmax_label=(batch_size,), grad_req=grad_req)
args, grads = executor.arg_dict, executor.grad_dict

param_names = [name for name in net.list_arguments() if name not in ("data", "softmax_label")]
for name in param_names:
    args[name][:] = rng.uniform(-0.1, 0.1, args[name].shape)


def sgd(weight, grad, lr=0.2, wd=1e-4, grad_norm=batch_size):
    weight[:] -= lr * (grad / grad_norm + wd * weight)


images, labels = bars(300)
for epoch in range(6):
    hits = 0
    for start in range(0, len(images), batch_size):
        args["data"][:] = images[start : start + batch_size]
        args["softmax_label"][:] = labels[start : start + batch_size]
        executor.forward(is_train=True)
        prob = executor.outputs[0].asnumpy()
        hits += (prob.argmax(axis=1) == labels[start : start + batch_size]).sum()
        executor.backward()
        for name in param_names:
            sgd(args[name], grads[name])
    print("epoch %d: %.3f right" % (epoch, hits / len(images)))

# The same parameters in an executor of another batch size, which has no gradients.
test_images, test_labels = bars(90)
tester = executor.reshape(data=(90, 1, size, size), softmax_label=(90,), allow_up_sizing=True)
prob = tester.forward(is_train=False, data=mx.nd.array(test_images))[0].asnumpy()
accuracy = (prob.argmax(axis=1) == test_labels).mean()
loss = -np.log(prob[np.arange(90), test_labels.astype(int)]).mean()
norm = sum(mx.nd.norm(args[name]).asscalar() ** 2 for name in param_names) ** 0.5

print("RESULT train_accuracy %f" % (hits / len(images)))
print("RESULT test_accuracy %f" % accuracy)
print("RESULT test_loss %f" % loss)
print("RESULT weight_norm %f" % norm)
if accuracy < 0.9:
    sys.exit("the bars were not learnt")
if grads["data"] is not None:
    sys.exit("a gradient that was not asked for")
