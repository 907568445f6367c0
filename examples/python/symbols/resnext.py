"""ResNeXt: residual units whose inner convolution is split into groups."""

import symbind as mx

from .parts import choose, classify, conv, global_pool, norm, pool, relu

UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def residual(data, name, filters, stride, groups, same_shape):
    def step(x, number, width, kernel, step_stride=1, step_groups=1):
        net = conv(x, width, kernel, step_stride, f"{name}conv{number}", step_groups)
        return norm(net, f"{name}bn{number}")

    body = relu(step(data, 1, filters // 2, 1), f"{name}relu1")
    body = relu(step(body, 2, filters // 2, 3, stride, groups), f"{name}relu2")
    body = step(body, 3, filters, 1)
    shortcut = data if same_shape else norm(conv(data, filters, 1, stride, f"{name}sc"), f"{name}sc_bn")
    return relu(body + shortcut, f"{name}relu")


def get_symbol(num_classes=1000, num_layers=50, num_group=32, **_):
    """For images of 32 pixels a side or more."""
    net = norm(mx.sym.Variable("data"), "bn_data", fix_gamma=True)
    net = relu(norm(conv(net, 64, 7, 2, "conv0"), "bn0"), "relu0")
    net = pool(net, "max", "pool0", kernel=3, stride=2, pad=1)
    for stage, units in enumerate(choose("ResNeXt", UNITS, num_layers), 1):
        for unit in range(1, units + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            net = residual(net, f"stage{stage}_unit{unit}_", 128 * 2**stage, stride, num_group, same_shape=unit > 1)
    return classify(global_pool(net, "pool1"), num_classes, "fc1")
