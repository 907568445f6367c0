"""MobileNet v2: inverted residual blocks, which widen, convolve each channel by itself, and narrow again."""

import symbind as mx

from .parts import classify, conv, global_pool, scaled

# Expansion, filters, blocks, and the stride of the first block; that of the others is 1.
SEQUENCES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def unit(data, name, filters, kernel=1, stride=1, groups=1, linear=False):
    net = conv(data, filters, kernel, stride, f"{name}-conv2d", groups)
    net = mx.sym.BatchNorm(net, eps=1e-5, fix_gamma=False, name=f"{name}-batchnorm")
    return net if linear else mx.sym.clip(net, a_min=0, a_max=6, name=f"{name}-relu6")


def inverted_residual(data, name, channels, filters, expansion, stride):
    """An expansion by 1 has no convolution."""
    inner = channels * expansion
    net = data if expansion == 1 else unit(data, f"{name}-exp", inner)
    net = unit(net, f"{name}-depthwise", inner, kernel=3, stride=stride, groups=inner)
    net = unit(net, f"{name}-linear", filters, linear=True)
    if stride == 1 and channels == filters:
        net = mx.sym.elemwise_add(data, net, name=f"{name}-shortcut")
    return net


def get_symbol(num_classes=1000, multiplier=1.0, **_):
    """For images of 32 pixels a side or more. The multiplier scales all widths; the last becomes no narrower."""
    channels = scaled(32, multiplier)
    net = unit(mx.sym.Variable("data"), "first-3x3-conv", channels, kernel=3, stride=2)
    for number, (expansion, filters, blocks, first_stride) in enumerate(SEQUENCES):
        filters = scaled(filters, multiplier)
        for block in range(blocks):
            stride = 1 if block else first_stride
            net = inverted_residual(net, f"seq-{number}-block{block}", channels, filters, expansion, stride)
            channels = filters
    net = unit(net, "last-1x1-conv", scaled(1280, max(1.0, multiplier)))
    return classify(global_pool(net, "global_pool"), num_classes, "fc")
