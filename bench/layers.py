"""Random layers by Symbind and its peers, side by side: is any shape far slower than elsewhere, are the numbers right?

Draws layers (convolutions over one to three axes with odd kernels, strides, dilations and groups; deconvolutions,
pooling, matrix products, norms, softmax; batches of 1 to 64; float32 and half types), and times each in the same run:
an inference pass, and a training pass with all gradients. The processes take turns, a few milliseconds each, with a
pause in which the threads of the last one go to sleep. Prints the geometric mean of our time over the better peer's,
how many are slower than 1.5 times, and the worst as a Markdown table. Our results are compared with PyTorch's.

PEER_TORCH and PEER_MXNET name the Python of an environment with the peer.

usage: PEER_TORCH=.../bin/python PEER_MXNET=.../bin/python python3 bench/layers.py [--count 2000] [--seed 1]
"""

import argparse
import math
import random

from run import OURS
from side_by_side import add_options, geometric_mean, ratios, time_all, worst

KINDS = {  # how often each is drawn
    "Convolution": 46,
    "Deconvolution": 10,
    "Pooling": 12,
    "FullyConnected": 6,
    "dot": 5,
    "batch_dot": 5,
    "BatchNorm": 4,
    "LayerNorm": 3,
    "InstanceNorm": 2,
    "GroupNorm": 2,
    "L2Normalization": 2,
    "softmax": 2,
    "log_softmax": 1,
}
LIMIT = 1.5  # of our time, relative to that of the better peer
MOST_PRODUCTS = 3e8  # multiply-adds of a forward pass
MOST_ELEMENTS = 4e6  # of an array


def channels(draw):
    """Often whole vectors, as often odd numbers."""
    return draw.choice(
        [1, 2, 3, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512] + [draw.randint(1, 300) for _ in range(9)]
    )


def draw_batch(draw):
    return draw.choice([1, 1, 2, 3, 4, 8, 10, 16, 32, 64])


def draw_dtype(draw):
    return draw.choice(["float32"] * 6 + ["float16", "bfloat16"])


def draw_convolution(draw, transposed):
    axes = draw.choice([1, 2, 2, 2, 3])
    data_channels, filters = channels(draw), channels(draw)
    largest = (300, 64, 20)[axes - 1]
    space = [draw.randint(1, largest) for _ in range(axes)]
    kernel = [draw.choice([1, 1, 2, 3, 3, 3, 5, 7, draw.randint(1, 11)]) for _ in range(axes)]
    groups = 1
    if draw.random() < 0.3:
        common = math.gcd(data_channels, filters)
        groups = draw.choice([g for g in range(1, common + 1) if common % g == 0])
        if draw.random() < 0.4:
            filters = groups = data_channels  # each channel by itself
    if draw.random() < 0.3:
        kernel = [kernel[0]] * axes
    stride = [draw.choice([1, 1, 1, 2, 3]) for _ in range(axes)]
    dilate = [draw.choice([1, 1, 1, 1, 2, 3]) for _ in range(axes)]
    pad = [draw.choice([0, size // 2 * step, draw.randint(0, size)]) for size, step in zip(kernel, dilate)]
    if not transposed and axes == 2 and draw.random() < 0.08:  # words as rows: a kernel as wide as the data
        data_channels, groups, filters = 1, 1, draw.choice([50, 100, 128])
        space = [draw.randint(20, 60), draw.choice([50, 100, 128, 300])]
        kernel, stride, dilate, pad = [draw.randint(2, 5), space[1]], [1, 1], [1, 1], [0, 0]
    batch = draw_batch(draw)
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilate)]
    if transposed:
        output = [(n - 1) * s - 2 * p + r for n, s, p, r in zip(space, stride, pad, reach)]
        weight = [data_channels, filters // groups, *kernel]
    else:
        output = [(n + 2 * p - r) // s + 1 for n, s, p, r in zip(space, stride, pad, reach)]
        weight = [filters, data_channels // groups, *kernel]
    if min(output) < 1:
        return None
    no_bias = draw.random() < 0.4
    arrays = {"data": [batch, data_channels, *space], "weight": weight}
    if not no_bias:
        arrays["bias"] = [filters]
    params = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad, "num_filter": filters}
    params |= {"num_group": groups, "no_bias": no_bias}
    positions = math.prod(space if transposed else output)
    work = batch * positions * math.prod(weight)
    return params, arrays, [batch, filters, *output], work


def draw_pooling(draw):
    axes = draw.choice([1, 2, 2, 2, 3])
    data = [draw_batch(draw), channels(draw), *(draw.randint(2, (500, 80, 24)[axes - 1]) for _ in range(axes))]
    params = {"pool_type": draw.choice(["max", "avg"])}
    if draw.random() < 0.2:
        return params | {"global_pool": True, "kernel": [1] * axes}, {"data": data}, data, math.prod(data)
    kernel = [draw.choice([2, 2, 3, 3, 5, draw.randint(1, 9)]) for _ in range(axes)]
    pad = [draw.choice([0, 0, size // 2]) for size in kernel]
    if any(n + 2 * p < size for n, p, size in zip(data[2:], pad, kernel)):
        return None
    stride = [draw.choice([1, 2, 2, 3]) for _ in range(axes)]
    params |= {"kernel": kernel, "stride": stride, "pad": pad, "count_include_pad": draw.random() < 0.5}
    return params, {"data": data}, data, math.prod(data) * math.prod(kernel) / math.prod(stride)


def draw_product(draw, kind):
    def extent():
        return draw.choice([draw.randint(1, 40), draw.randint(1, 500), 2 ** draw.randint(0, 11)])

    rows, inner, columns = extent(), extent(), extent()
    if kind == "FullyConnected":
        no_bias = draw.random() < 0.4
        rows = draw_batch(draw)
        arrays = {"data": [rows, inner], "weight": [columns, inner]} | ({} if no_bias else {"bias": [columns]})
        return {"num_hidden": columns, "no_bias": no_bias}, arrays, [rows, columns], rows * inner * columns
    batch = [draw.choice([1, 2, 5, 16, 64, draw.randint(1, 200)])] if kind == "batch_dot" else []
    transpose = [draw.random() < 0.3, draw.random() < 0.3]
    arrays = {
        "lhs": batch + ([inner, rows] if transpose[0] else [rows, inner]),
        "rhs": batch + ([columns, inner] if transpose[1] else [inner, columns]),
    }
    params = {"transpose_a": transpose[0], "transpose_b": transpose[1]}
    return params, arrays, [*batch, rows, columns], math.prod(batch) * rows * inner * columns


def draw_norm(draw, kind):
    rank = draw.choice([2, 3, 4, 4]) if kind in ("LayerNorm", "BatchNorm", "softmax", "log_softmax") else 4
    data = [draw_batch(draw), channels(draw), *(draw.randint(1, (300, 60)[rank - 3]) for _ in range(rank - 2))]
    if kind in ("softmax", "log_softmax"):
        return {"axis": draw.choice([-1, -1, 1])}, {"data": data}, data, math.prod(data)
    if kind == "L2Normalization":
        mode = draw.choice(["instance", "channel", "spatial"])
        return {"mode": mode, "eps": 1e-5}, {"data": data}, data, math.prod(data)
    params = {"eps": 1e-3}
    scales = data[1]
    if kind == "LayerNorm":
        scales = data[-1]
    if kind == "GroupNorm":
        scales = params["num_groups"] = draw.choice([g for g in range(1, data[1] + 1) if data[1] % g == 0])
    arrays = {"data": data, "gamma": [scales], "beta": [scales]}
    if kind == "BatchNorm":
        params["fix_gamma"] = False
        arrays |= {"moving_mean": [scales], "moving_var": [scales]}
    return params, arrays, data, math.prod(data)


def draw_layer(draw, kinds):
    """A layer, within the limits."""
    while True:
        kind = draw.choices(list(kinds), list(kinds.values()))[0]
        if kind in ("Convolution", "Deconvolution"):
            drawn = draw_convolution(draw, kind == "Deconvolution")
        elif kind == "Pooling":
            drawn = draw_pooling(draw)
        elif kind in ("FullyConnected", "dot", "batch_dot"):
            drawn = draw_product(draw, kind)
        else:
            drawn = draw_norm(draw, kind)
        if drawn is None:
            continue
        params, arrays, output, work = drawn
        sizes = [math.prod(shape) for shape in [*arrays.values(), output]]
        if work > MOST_PRODUCTS or max(sizes) > MOST_ELEMENTS:
            continue
        gradients = [name for name in arrays if not name.startswith("moving")]
        dtype = draw_dtype(draw)
        if kind == "BatchNorm" and math.prod(output) == output[1]:
            continue  # one number has no variance
        return {"kind": kind, "dtype": dtype, "params": params, "arrays": arrays, "gradients": gradients}


def describe(layer):
    """A layer in a few words."""
    params = {name: value for name, value in layer["params"].items() if name not in ("num_filter", "eps", "fix_gamma")}
    words = [
        f"{name} {'×'.join(map(str, value)) if isinstance(value, list) else value}" for name, value in params.items()
    ]
    plain = {"stride": 1, "dilate": 1, "pad": 0}
    words = [
        word
        for word, (name, value) in zip(words, params.items())
        if not (name in plain and set(value) == {plain[name]})
        and value is not False
        and (name, value) != ("num_group", 1)
    ]
    shapes = [f"{name} {'×'.join(map(str, shape))}" for name, shape in layer["arrays"].items() if len(shape) > 1]
    return ", ".join([*shapes, *words])


def print_table(rows, names, count):
    print(
        "| layer | type | number: shape | pass | "
        + " | ".join(f"{name} ms" for name in names)
        + " | ours / better peer |"
    )
    print("|---|---|---|---|" + "---:|" * (len(names) + 1))
    lines = []
    for row in rows:
        for mode, ratio in ratios(row).items():
            lines.append((ratio, row, mode))
    for ratio, row, mode in sorted(lines, key=lambda line: -line[0])[:count]:
        layer, times = row["layer"], row["ms"][mode]
        cells = [f"{times[name]:.3f}" if name in times else "-" for name in names]
        number = f"{layer['number']}"
        print(
            f"| {layer['kind']} | {layer['dtype']} | {number}: {describe(layer)} | {mode} | {' | '.join(cells)} "
            f"| {ratio:.2f} |"
        )


def report(rows, names, arguments):
    measured = [ratio for row in rows for ratio in ratios(row).values()]
    slow = [row for row in rows if worst(row) > LIMIT]
    print(f"\n{len(rows)} layers, {len(measured)} passes, {arguments.threads} threads, seed {arguments.seed}")
    print(f"geometric mean of our time over the better peer's: {geometric_mean(measured):.2f}")
    print(f"layers slower than {LIMIT} × the better peer: {len(slow)}")
    wrong = [row for row in rows if row["differences"]]
    print(f"layers whose numbers differ from PyTorch's: {len(wrong)}")
    for row in wrong:
        print(f"  {row['layer']['number']} {row['layer']['kind']} {row['layer']['dtype']} {row['differences']}")
    for row in rows:
        if OURS in row["errors"]:
            print(f"  {row['layer']['number']} {row['layer']['kind']}: {row['errors'][OURS]}")
    print(f"\nThe worst {arguments.worst}:\n")
    print_table(rows, names, arguments.worst)


def main():
    parser = argparse.ArgumentParser(description="Times random layers by Symbind and its peers.")
    parser.add_argument("--count", type=int, default=2000, help="layers to draw (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (%(default)s)")
    parser.add_argument("--only", action="append", choices=KINDS, help="layers of this kind only; may be repeated")
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], help="layers of this type only")
    parser.add_argument("--number", type=int, action="append", help="these of the layers drawn only; may be repeated")
    add_options(parser)
    parser.add_argument("--worst", type=int, default=50, help="rows of the table (%(default)s)")
    arguments = parser.parse_args()

    draw = random.Random(arguments.seed)
    kinds = {kind: KINDS[kind] for kind in arguments.only or KINDS}
    layers = []
    for number in range(arguments.count):
        layer = draw_layer(draw, kinds)
        layer |= {"number": number, "seed": arguments.seed * 100003 + number}
        layers.append(layer)
    if arguments.number:
        layers = [layers[number] for number in arguments.number]
    if arguments.dtype:
        layers = [layer for layer in layers if layer["dtype"] == arguments.dtype]

    names, rows = time_all(layers, arguments, LIMIT)
    report(rows, names, arguments)


if __name__ == "__main__":
    main()
