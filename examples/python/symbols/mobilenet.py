"""MobileNet: depthwise convolutions, each followed by a 1×1 convolution over the channels."""

import symbind as mx

from .parts import classify, conv, global_pool, relu, scaled

# Filters and stride of each pair of convolutions.
LAYERS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]


def unit(data, name, filters, kernel, stride=1, groups=1):
    net = conv(data, filters, kernel, stride, f"{name}_conv2d", groups)
    return relu(mx.sym.BatchNorm(net, fix_gamma=True, name=f"{name}_batchnorm"), f"{name}_relu")


def get_symbol(num_classes=1000, multiplier=1.0, **_):
    """For images of 32 pixels a side or more. The multiplier scales all widths."""
    channels = scaled(32, multiplier)
    net = unit(mx.sym.Variable("data"), "conv_1", channels, kernel=3, stride=2)
    for number, (filters, stride) in enumerate(LAYERS, 2):
        net = unit(net, f"conv_{number}_dw", channels, kernel=3, stride=stride, groups=channels)
        channels = scaled(filters, multiplier)
        net = unit(net, f"conv_{number}", channels, kernel=1)
    return classify(global_pool(net, "global_pool"), num_classes, "fc")
