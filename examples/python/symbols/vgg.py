"""VGG: stages of 3×3 convolutions with pooling between them, and three fully connected layers."""

import symbind as mx

from .parts import choose, pool, relu

LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def get_symbol(num_classes=1000, num_layers=16, batch_norm=False, **_):
    """For images of 32 pixels a side or more."""
    net = mx.sym.Variable("data")
    for stage, layers in enumerate(choose("VGG", LAYERS, num_layers), 1):
        filters = min(32 * 2**stage, 512)
        for number in (f"{stage}_{layer}" for layer in range(1, layers + 1)):
            net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{number}")
            if batch_norm:
                net = mx.sym.BatchNorm(net, name=f"bn{number}")
            net = relu(net, f"relu{number}")
        net = pool(net, "max", f"pool{stage}", kernel=2, stride=2)
    net = mx.sym.Flatten(net, name="flatten")
    for number in (6, 7):
        net = relu(mx.sym.FullyConnected(net, num_hidden=4096, name=f"fc{number}"), f"relu{number}")
        net = mx.sym.Dropout(net, p=0.5, name=f"drop{number}")
    net = mx.sym.FullyConnected(net, num_hidden=num_classes, name="fc8")
    return mx.sym.SoftmaxOutput(net, name="softmax")
