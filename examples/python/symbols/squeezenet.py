"""SqueezeNet: blocks that narrow by 1×1 convolutions and widen by 1×1 and 3×3 ones, and no fully connected layer."""

import symbind as mx

from .parts import global_pool, relu


def conv_relu(data, prefix, name, filters, kernel, **options):
    net = mx.sym.Convolution(data, kernel=(kernel, kernel), num_filter=filters, name=prefix + name, **options)
    return relu(net, f"{prefix}relu_{name}")


def fire(data, name, squeezed, expanded):
    net = conv_relu(data, name, "squeeze1x1", squeezed, 1)
    one = conv_relu(net, name, "expand1x1", expanded, 1)
    three = conv_relu(net, name, "expand3x3", expanded, 3, pad=(1, 1))
    return mx.sym.Concat(one, three, name=f"{name}concat")


def shrink(data, name):
    """The last window may reach over the edge."""
    return mx.sym.Pooling(data, pool_type="max", kernel=(3, 3), stride=(2, 2), pooling_convention="full", name=name)


def get_symbol(num_classes=1000, version="1.0", **_):
    """For images of 32 pixels a side or more. Version 1.1 pools earlier and needs 2.4 times less computation."""
    if version not in ("1.0", "1.1"):
        raise ValueError(f"SqueezeNet comes as 1.0 and 1.1, not {version}")
    filters, kernel, pooled = (96, 7, (4, 8)) if version == "1.0" else (64, 3, (3, 5))
    net = conv_relu(mx.sym.Variable("data"), "", "conv1", filters, kernel, stride=(2, 2))
    net = shrink(net, "pool1")
    for number, width in enumerate((16, 16, 32, 32, 48, 48, 64, 64), 2):
        net = fire(net, f"fire{number}_", width, 4 * width)
        if number in pooled:
            net = shrink(net, f"pool{number}")
    net = mx.sym.Dropout(net, p=0.5, name="drop9")
    net = conv_relu(net, "", "conv10", num_classes, 1)
    return mx.sym.SoftmaxOutput(mx.sym.Flatten(global_pool(net, "pool10"), name="flatten"), name="softmax")
