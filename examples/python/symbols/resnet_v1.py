"""Residual networks as first published (v1): convolution, normalisation, activation; the sum is activated."""

import symbind as mx

from .parts import choose, classify, conv, global_pool, norm, pool, relu
from .resnet import UNITS


def residual(data, name, filters, stride, bottleneck, same_shape):
    def step(x, number, width, kernel, step_stride):
        return norm(conv(x, width, kernel, step_stride, f"{name}conv{number}"), f"{name}bn{number}")

    if bottleneck:
        body = relu(step(data, 1, filters // 4, 1, stride), f"{name}relu1")
        body = relu(step(body, 2, filters // 4, 3, 1), f"{name}relu2")
        body = step(body, 3, filters, 1, 1)
    else:
        body = relu(step(data, 1, filters, 3, stride), f"{name}relu1")
        body = step(body, 2, filters, 3, 1)
    shortcut = data if same_shape else norm(conv(data, filters, 1, stride, f"{name}sc"), f"{name}sc_bn")
    return relu(body + shortcut, f"{name}relu")


def get_symbol(num_classes=1000, num_layers=50, **_):
    """For images of 32 pixels a side or more; 224 is what it was made for."""
    bottleneck = num_layers >= 50
    net = relu(norm(conv(mx.sym.Variable("data"), 64, 7, 2, "conv0"), "bn0"), "relu0")
    net = pool(net, "max", "pool0", kernel=3, stride=2, pad=1)
    for stage, units in enumerate(choose("ResNet", UNITS, num_layers), 1):
        filters = (4 if bottleneck else 1) * 32 * 2**stage
        for unit in range(1, units + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            same_shape = unit > 1 or (stage == 1 and not bottleneck)
            net = residual(net, f"stage{stage}_unit{unit}_", filters, stride, bottleneck, same_shape)
    return classify(global_pool(net, "pool1"), num_classes, "fc1")
