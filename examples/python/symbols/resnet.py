"""Residual networks in the pre-activation form (v2): each convolution takes what has been normalised and activated."""

import symbind as mx

from .parts import choose, classify, conv, global_pool, norm, pool, relu

UNITS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def residual(data, name, filters, stride, bottleneck, same_shape):
    def step(x, number):
        return relu(norm(x, f"{name}bn{number}"), f"{name}relu{number}")

    start = step(data, 1)
    if bottleneck:
        body = step(conv(start, filters // 4, 1, 1, f"{name}conv1"), 2)
        body = step(conv(body, filters // 4, 3, stride, f"{name}conv2"), 3)
        body = conv(body, filters, 1, 1, f"{name}conv3")
    else:
        body = step(conv(start, filters, 3, stride, f"{name}conv1"), 2)
        body = conv(body, filters, 3, 1, f"{name}conv2")
    return body + (data if same_shape else conv(start, filters, 1, stride, f"{name}sc"))


def get_symbol(num_classes=1000, num_layers=50, **_):
    """For images of 32 pixels a side or more; 224 is what it was made for."""
    bottleneck = num_layers >= 50
    net = norm(mx.sym.Variable("data"), "bn_data", fix_gamma=True)
    net = relu(norm(conv(net, 64, 7, 2, "conv0"), "bn0"), "relu0")
    net = pool(net, "max", "pool0", kernel=3, stride=2, pad=1)
    for stage, units in enumerate(choose("ResNet", UNITS, num_layers), 1):
        filters = (4 if bottleneck else 1) * 32 * 2**stage
        for unit in range(1, units + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            net = residual(net, f"stage{stage}_unit{unit}_", filters, stride, bottleneck, same_shape=unit > 1)
    net = relu(norm(net, "bn1"), "relu1")
    return classify(global_pool(net, "pool1"), num_classes, "fc1")
