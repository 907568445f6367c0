"""DenseNet: every layer of a stage reads the outputs of all layers before it."""

import symbind as mx

from .parts import choose, classify, conv, global_pool, norm, pool, relu

LAYERS = {121: (6, 12, 24, 16), 169: (6, 12, 32, 32), 201: (6, 12, 48, 32)}


def norm_relu(data, name, number=""):
    return relu(norm(data, f"{name}bn{number}"), f"{name}relu{number}")


def layer(data, name, growth):
    net = conv(norm_relu(data, name, 1), 4 * growth, 1, 1, f"{name}conv1")
    net = conv(norm_relu(net, name, 2), growth, 3, 1, f"{name}conv2")
    return mx.sym.Concat(data, net, name=f"{name}concat")


def transition(data, name, filters):
    net = conv(norm_relu(data, name), filters, 1, 1, f"{name}conv")
    return pool(net, "avg", f"{name}pool", kernel=2, stride=2)


def get_symbol(num_classes=1000, num_layers=121, growth=32, **_):
    """For images of 32 pixels a side or more; `growth` is how many channels a layer adds."""
    channels = 2 * growth
    net = norm_relu(conv(mx.sym.Variable("data"), channels, 7, 2, "conv0"), "", 0)
    net = pool(net, "max", "pool0", kernel=3, stride=2, pad=1)
    stages = choose("DenseNet", LAYERS, num_layers)
    for stage, layers in enumerate(stages, 1):
        for unit in range(1, layers + 1):
            net = layer(net, f"stage{stage}_unit{unit}_", growth)
        channels += layers * growth
        if stage < len(stages):
            channels //= 2
            net = transition(net, f"transition{stage}_", channels)
    return classify(global_pool(norm_relu(net, "", 1), "pool1"), num_classes, "fc1")
