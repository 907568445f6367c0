"""AlexNet: five convolutions with local response normalization, and three fully connected layers."""

import symbind as mx

from .parts import pool, relu


def conv_relu(data, number, filters, kernel, stride=1, pad=0, groups=1):
    net = mx.sym.Convolution(
        data,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pad=(pad, pad),
        num_filter=filters,
        num_group=groups,
        name=f"conv{number}",
    )
    return relu(net, f"relu{number}")


def local_norm(data, name):
    return mx.sym.LRN(data, alpha=1e-4, beta=0.75, knorm=2, nsize=5, name=name)


def get_symbol(num_classes=1000, num_group=1, **_):
    """For images of 67 pixels a side or more. With 227 it has 62.4 million parameters, 61.0 million in two groups
    (num_group=2, as published); with 224, 50.8 million."""
    net = conv_relu(mx.sym.Variable("data"), 1, 96, kernel=11, stride=4)
    net = pool(local_norm(net, "lrn1"), "max", "pool1", kernel=3, stride=2)
    net = conv_relu(net, 2, 256, kernel=5, pad=2, groups=num_group)
    net = pool(local_norm(net, "lrn2"), "max", "pool2", kernel=3, stride=2)
    net = conv_relu(net, 3, 384, kernel=3, pad=1)
    net = conv_relu(net, 4, 384, kernel=3, pad=1, groups=num_group)
    net = conv_relu(net, 5, 256, kernel=3, pad=1, groups=num_group)
    net = mx.sym.Flatten(pool(net, "max", "pool3", kernel=3, stride=2), name="flatten")
    for number in (1, 2):
        net = relu(mx.sym.FullyConnected(net, num_hidden=4096, name=f"fc{number}"), f"relu{number + 5}")
        net = mx.sym.Dropout(net, p=0.5, name=f"dropout{number}")
    net = mx.sym.FullyConnected(net, num_hidden=num_classes, name="fc3")
    return mx.sym.SoftmaxOutput(net, name="softmax")
