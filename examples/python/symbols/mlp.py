"""A multi-layer perceptron: fully connected layers with an activation between them."""

import symbind as mx


def get_symbol(num_classes=10, hidden=(128, 64), **_):
    net = mx.sym.Variable("data")
    for number, size in enumerate(hidden, 1):
        net = mx.sym.FullyConnected(net, num_hidden=size, name=f"fc{number}")
        net = mx.sym.Activation(net, act_type="relu", name=f"relu{number}")
    net = mx.sym.FullyConnected(net, num_hidden=num_classes, name=f"fc{len(hidden) + 1}")
    return mx.sym.SoftmaxOutput(net, name="softmax")
