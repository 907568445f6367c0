"""Inception-v3: blocks of parallel convolutions, with long kernels instead of large ones."""

import symbind as mx

from .parts import classify, global_pool, pool, relu


def unit(data, name, filters, kernel=(1, 1), stride=(1, 1), pad=(0, 0)):
    net = mx.sym.Convolution(
        data, kernel=kernel, stride=stride, pad=pad, num_filter=filters, no_bias=True, name=f"{name}_conv2d"
    )
    net = mx.sym.BatchNorm(net, eps=0.001, fix_gamma=True, name=f"{name}_batchnorm")
    return relu(net, f"{name}_relu")


def same(filters, height, width):
    """A convolution that keeps the size."""
    return dict(filters=filters, kernel=(height, width), pad=(height // 2, width // 2))


def half(filters):
    return dict(filters=filters, kernel=(3, 3), stride=(2, 2))


def tower(data, name, *layers):
    """Convolutions one after the other: name_conv, name_conv_1, name_conv_2, …; a number is that of 1×1 filters."""
    for i, layer in enumerate(layers):
        layer = layer if isinstance(layer, dict) else dict(filters=layer)
        data = unit(data, f"{name}_conv_{i}" if i else f"{name}_conv", **layer)
    return data


def merged(name, *branches):
    return mx.sym.Concat(*branches, name=f"ch_concat_{name}_chconcat")


def pooled(data, kind, name):
    return pool(data, kind, f"{kind}_pool_{name}_pool", kernel=3, pad=1)


def shrunk(data, name):
    return pool(data, "max", f"max_pool_{name}_pool", kernel=3, stride=2)


def block_a(data, name, projected):
    """35×35 for images of 299 pixels a side."""
    return merged(
        name,
        tower(data, name, 64),
        tower(data, f"{name}_tower", 48, same(64, 5, 5)),
        tower(data, f"{name}_tower_1", 64, same(96, 3, 3), same(96, 3, 3)),
        tower(pooled(data, "avg", name), f"{name}_tower_2", projected),
    )


def reduction_a(data, name):
    """From 35×35 to 17×17."""
    return merged(
        name,
        tower(data, name, half(384)),
        tower(data, f"{name}_tower", 64, same(96, 3, 3), half(96)),
        shrunk(data, name),
    )


def block_b(data, name, inner):
    """17×17."""
    long = [same(inner, 7, 1), same(inner, 1, 7), same(inner, 7, 1), same(192, 1, 7)]
    return merged(
        name,
        tower(data, name, 192),
        tower(data, f"{name}_tower", inner, same(inner, 1, 7), same(192, 7, 1)),
        tower(data, f"{name}_tower_1", inner, *long),
        tower(pooled(data, "avg", name), f"{name}_tower_2", 192),
    )


def reduction_b(data, name):
    """From 17×17 to 8×8."""
    return merged(
        name,
        tower(data, f"{name}_tower", 192, half(320)),
        tower(data, f"{name}_tower_1", 192, same(192, 1, 7), same(192, 7, 1), half(192)),
        shrunk(data, name),
    )


def block_c(data, name, pool_type):
    """8×8: the towers end in two convolutions side by side."""

    def forked(stem, tower_name):
        return [
            unit(stem, f"{tower_name}_mixed_conv", **same(384, 1, 3)),
            unit(stem, f"{tower_name}_mixed_conv_1", **same(384, 3, 1)),
        ]

    return merged(
        name,
        tower(data, name, 320),
        *forked(tower(data, f"{name}_tower", 384), f"{name}_tower"),
        *forked(tower(data, f"{name}_tower_1", 448, same(384, 3, 3)), f"{name}_tower_1"),
        tower(pooled(data, pool_type, name), f"{name}_tower_2", 192),
    )


def get_symbol(num_classes=1000, **_):
    """For images of 75 pixels a side or more; 299 is what it was made for."""
    net = unit(mx.sym.Variable("data"), "conv", 32, kernel=(3, 3), stride=(2, 2))
    net = unit(net, "conv_1", 32, kernel=(3, 3))
    net = unit(net, "conv_2", **same(64, 3, 3))
    net = pool(net, "max", "pool", kernel=3, stride=2)
    net = unit(net, "conv_3", 80)
    net = unit(net, "conv_4", 192, kernel=(3, 3))
    net = pool(net, "max", "pool1", kernel=3, stride=2)
    net = block_a(net, "mixed", 32)
    net = block_a(net, "mixed_1", 64)
    net = block_a(net, "mixed_2", 64)
    net = reduction_a(net, "mixed_3")
    net = block_b(net, "mixed_4", 128)
    net = block_b(net, "mixed_5", 160)
    net = block_b(net, "mixed_6", 160)
    net = block_b(net, "mixed_7", 192)
    net = reduction_b(net, "mixed_8")
    net = block_c(net, "mixed_9", "avg")
    net = block_c(net, "mixed_10", "max")
    return classify(global_pool(net, "global_pool"), num_classes, "fc1")
