"""Layers that several networks are built from."""

import symbind as mx


def relu(data, name):
    return mx.sym.Activation(data, act_type="relu", name=name)


def conv(data, filters, kernel, stride, name, groups=1):
    """A square convolution without bias that keeps the size at stride 1."""
    return mx.sym.Convolution(
        data,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pad=(kernel // 2, kernel // 2),
        num_filter=filters,
        num_group=groups,
        no_bias=True,
        name=name,
    )


def norm(data, name, fix_gamma=False):
    return mx.sym.BatchNorm(data, eps=2e-5, momentum=0.9, fix_gamma=fix_gamma, name=name)


def pool(data, kind, name, kernel, stride=1, pad=0):
    return mx.sym.Pooling(
        data, pool_type=kind, kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad), name=name
    )


def global_pool(data, name):
    """The mean of each channel."""
    return mx.sym.Pooling(data, pool_type="avg", kernel=(7, 7), global_pool=True, name=name)


def classify(features, num_classes, name):
    """One probability per class."""
    net = mx.sym.FullyConnected(mx.sym.Flatten(features, name="flatten"), num_hidden=num_classes, name=name)
    return mx.sym.SoftmaxOutput(net, name="softmax")


def scaled(channels, multiplier):
    """A width scaled by a multiplier, to the nearest whole number of channels."""
    return int(channels * multiplier + 0.5)


def choose(kind, table, num_layers):
    """The entry of a table for a depth."""
    if num_layers not in table:
        raise ValueError(f"{kind} has a depth of {', '.join(map(str, table))}, not {num_layers}")
    return table[num_layers]
