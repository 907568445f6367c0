"""Inception-BN: blocks of parallel convolutions whose outputs are concatenated, each normalised."""

import symbind as mx

from .parts import classify, global_pool, pool, relu


def unit(data, filters, name, kernel=1, stride=1, pad=0):
    net = mx.sym.Convolution(
        data,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pad=(pad, pad),
        num_filter=filters,
        name=f"conv_{name}",
    )
    net = mx.sym.BatchNorm(net, eps=1e-5, momentum=0.9, fix_gamma=False, name=f"bn_{name}")
    return relu(net, f"relu_{name}")


def branches(data, name, three_reduce, three, double_reduce, double, stride):
    """3×3 convolutions, one and two in a row, each after a 1×1 convolution that narrows its input."""
    one = unit(data, three_reduce, f"{name}_3x3_reduce")
    one = unit(one, three, f"{name}_3x3", kernel=3, stride=stride, pad=1)
    two = unit(data, double_reduce, f"{name}_double_3x3_reduce")
    two = unit(two, double, f"{name}_double_3x3_0", kernel=3, pad=1)
    two = unit(two, double, f"{name}_double_3x3_1", kernel=3, stride=stride, pad=1)
    return [one, two]


def block(data, name, one, three_reduce, three, double_reduce, double, pool_type, projected):
    """Keeps the size."""
    single = unit(data, one, f"{name}_1x1")
    convolved = branches(data, name, three_reduce, three, double_reduce, double, stride=1)
    pooled = pool(data, pool_type, f"{pool_type}_pool_{name}_pool", kernel=3, pad=1)
    pooled = unit(pooled, projected, f"{name}_proj")
    return mx.sym.Concat(single, *convolved, pooled, name=f"ch_concat_{name}_chconcat")


def reduction(data, name, three_reduce, three, double_reduce, double):
    """Halves height and width."""
    convolved = branches(data, name, three_reduce, three, double_reduce, double, stride=2)
    pooled = pool(data, "max", f"max_pool_{name}_pool", kernel=3, stride=2, pad=1)
    return mx.sym.Concat(*convolved, pooled, name=f"ch_concat_{name}_chconcat")


def get_symbol(num_classes=1000, **_):
    """For images of 32 pixels a side or more; 224 is what it was made for."""
    net = unit(mx.sym.Variable("data"), 64, "1", kernel=7, stride=2, pad=3)
    net = pool(net, "max", "pool_1", kernel=3, stride=2)
    net = unit(net, 64, "2_red")
    net = unit(net, 192, "2", kernel=3, pad=1)
    net = pool(net, "max", "pool_2", kernel=3, stride=2)
    net = block(net, "3a", 64, 64, 64, 64, 96, "avg", 32)
    net = block(net, "3b", 64, 64, 96, 64, 96, "avg", 64)
    net = reduction(net, "3c", 128, 160, 64, 96)
    net = block(net, "4a", 224, 64, 96, 96, 128, "avg", 128)
    net = block(net, "4b", 192, 96, 128, 96, 128, "avg", 128)
    net = block(net, "4c", 160, 128, 160, 128, 160, "avg", 128)
    net = block(net, "4d", 96, 128, 192, 160, 192, "avg", 128)
    net = reduction(net, "4e", 128, 192, 192, 256)
    net = block(net, "5a", 352, 192, 320, 160, 224, "avg", 128)
    net = block(net, "5b", 352, 192, 320, 192, 224, "max", 128)
    return classify(global_pool(net, "global_pool"), num_classes, "fc1")
