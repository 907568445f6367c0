"""Every operator by Symbind and its peers, side by side, at a small and a large size: a row each, the slowest first.

Times an inference pass, and a training pass with all gradients where the operator has any; the libraries take turns
(side_by_side.py). Our results are compared with PyTorch's. On a GPU PyTorch is the only peer.

usage: PEER_TORCH=.../bin/python PEER_MXNET=.../bin/python python3 bench/operators.py [--only NAME] [--device gpu]
"""

import argparse
import math

from run import OURS
from side_by_side import add_options, geometric_mean, ratios, time_all

SIZES = {"small": 1, "large": 16}  # the factor of extents that grow
LIMIT = 1.2  # of our time, relative to that of the better peer


class Table:
    """The rows. Extents are numbers, or functions of the size's factor."""

    def __init__(self):
        self.rows = []

    def add(self, kind, torch, arrays, params=None, grads=None, values=None, name=None):
        """`torch`: what it is in PyTorch, over the arrays by name. `grads`: all arrays unless told otherwise."""
        self.rows.append(
            {
                "name": name or kind,
                "kind": kind,
                "torch": torch,
                "arrays": arrays,
                "params": params or {},
                "grads": list(arrays) if grads is None else grads,
                "values": values or {},
            }
        )

    def layers(self, only):
        for number, row in enumerate(self.rows):
            if only and row["name"] not in only:
                continue
            for size, factor in SIZES.items():
                arrays = {
                    name: [extent(factor) if callable(extent) else extent for extent in shape]
                    for name, shape in row["arrays"].items()
                }
                yield {
                    "number": number,
                    "seed": number,
                    "size": size,
                    "dtype": "float32",
                    "gradients": row["grads"],
                    "inputs": list(arrays),
                    **{key: row[key] for key in ("name", "kind", "torch", "params", "values")},
                    "arrays": arrays,
                }


def n(base):
    """An extent that grows with the size."""
    return lambda factor: base * factor


def add_elementwise(table):
    flat = [n(128), n(128)]
    rules = {  # name: (PyTorch, values)
        "exp": ("data.exp()", None),
        "log": ("data.log()", "positive"),
        "sqrt": ("data.sqrt()", "positive"),
        "rsqrt": ("data.rsqrt()", "positive"),
        "square": ("data.square()", None),
        "abs": ("data.abs()", None),
        "negative": ("-data", None),
        "reciprocal": ("data.reciprocal()", "positive"),
        "cbrt": ("data.pow(1 / 3)", "positive"),
        "tanh": ("data.tanh()", None),
        "sigmoid": ("data.sigmoid()", None),
        "relu": ("data.relu()", None),
        "softsign": ("F.softsign(data)", None),
        "erf": ("data.erf()", None),
        "erfinv": ("data.erfinv()", "below one"),
        "expm1": ("data.expm1()", None),
        "log1p": ("data.log1p()", "positive"),
        "log2": ("data.log2()", "positive"),
        "log10": ("data.log10()", "positive"),
        "sin": ("data.sin()", None),
        "cos": ("data.cos()", None),
        "tan": ("data.tan()", "below one"),
        "arcsin": ("data.asin()", "below one"),
        "arccos": ("data.acos()", "below one"),
        "arctan": ("data.atan()", None),
        "sinh": ("data.sinh()", None),
        "cosh": ("data.cosh()", None),
        "arcsinh": ("data.asinh()", None),
        "arccosh": ("data.acosh()", "above one"),
        "arctanh": ("data.atanh()", "below one"),
        "gammaln": ("data.lgamma()", "positive"),
        "smooth_l1": ("F.smooth_l1_loss(data, torch.zeros_like(data), reduction='none')", None),
    }
    for name, (torch, values) in rules.items():
        table.add(name, torch, {"data": flat}, values={"data": values} if values else None)
    for name, torch in {
        "sign": "data.sign()",
        "floor": "data.floor()",
        "ceil": "data.ceil()",
        "round": "data.round()",
        "rint": "data.round()",
        "trunc": "data.trunc()",
        "logical_not": "data.logical_not()",
        "zeros_like": "torch.zeros_like(data)",
        "ones_like": "torch.ones_like(data)",
    }.items():
        table.add(name, torch, {"data": flat}, grads=[])
    table.add("clip", "data.clamp(-0.5, 0.5)", {"data": flat}, {"a_min": -0.5, "a_max": 0.5})
    table.add("hard_sigmoid", "(data * 0.2 + 0.5).clamp(0, 1)", {"data": flat})
    table.add("Cast", "data.half()", {"data": flat}, {"dtype": "float16"}, grads=[])
    table.add("_plus_scalar", "data + 2.0", {"data": flat}, {"scalar": 2.0})
    table.add("_mul_scalar", "data * 2.0", {"data": flat}, {"scalar": 2.0})
    table.add("_power_scalar", "data.pow(2.5)", {"data": flat}, {"scalar": 2.5}, values={"data": "positive"})
    for kind, slope in {
        "leaky": "F.leaky_relu(data, 0.25)",
        "elu": "F.elu(data, 0.25)",
        "gelu": "F.gelu(data)",
    }.items():
        table.add("LeakyReLU", slope, {"data": flat}, {"act_type": kind}, name=f"LeakyReLU {kind}")
    table.add(
        "LeakyReLU",
        "F.prelu(data, gamma)",
        {"data": [n(8), 64, n(32)], "gamma": [64]},
        {"act_type": "prelu"},
        name="LeakyReLU prelu",
    )


def add_pairs(table):
    flat = [n(128), n(128)]
    for name, sign in {"add": "+", "sub": "-", "mul": "*", "div": "/"}.items():
        values = {"rhs": "positive"}
        table.add(f"elemwise_{name}", f"lhs {sign} rhs", {"lhs": flat, "rhs": flat}, values=values)
        row = {"lhs": flat, "rhs": [1, n(128)]}
        table.add(f"broadcast_{name}", f"lhs {sign} rhs", row, values=values)
    for name in ("maximum", "minimum"):
        table.add(f"broadcast_{name}", f"torch.{name}(lhs, rhs)", {"lhs": flat, "rhs": [1, n(128)]})
    table.add(
        "broadcast_power",
        "lhs ** rhs",
        {"lhs": flat, "rhs": [1, n(128)]},
        values={"lhs": "positive", "rhs": "below one"},
    )
    table.add("broadcast_hypot", "torch.hypot(lhs, rhs)", {"lhs": flat, "rhs": [1, n(128)]})
    table.add("broadcast_greater", "(lhs > rhs).float()", {"lhs": flat, "rhs": [1, n(128)]}, grads=[])
    table.add("broadcast_to", "data.expand(p['shape']).contiguous()", {"data": [1, 2048]}, {"shape": [2048, 2048]})
    table.add(
        "where",
        "torch.where(condition != 0, x, y)",
        {"condition": flat, "x": flat, "y": flat},
        grads=["x", "y"],
        values={"condition": "truth"},
    )
    table.add("add_n", "a + b + c", {"a": flat, "b": flat, "c": flat})


def add_reductions(table):
    matrix = [n(64), n(256)]
    for axis in (0, 1):
        for name, call in {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}.items():
            table.add(name, f"data.{call}({axis})", {"data": matrix}, {"axis": axis}, name=f"{name} axis {axis}")
        for name in ("argmax", "argmin"):
            torch = f"data.{name}({axis}).float()"
            table.add(name, torch, {"data": matrix}, {"axis": axis}, grads=[], name=f"{name} axis {axis}")
    table.add("sum", "data.sum().view(1)", {"data": matrix}, name="sum of all")
    table.add("prod", "data.prod(1)", {"data": [n(64), n(256)]}, {"axis": 1}, values={"data": "probability"})
    table.add("nansum", "data.nansum(1)", {"data": matrix}, {"axis": 1})
    table.add("norm", "data.norm(dim=1)", {"data": matrix}, {"axis": 1})
    table.add("cumsum", "data.cumsum(1)", {"data": matrix}, {"axis": 1})
    table.add("softmax", "data.softmax(-1)", {"data": matrix})
    table.add("log_softmax", "data.log_softmax(-1)", {"data": matrix})
    table.add("softmin", "(-data).softmax(-1)", {"data": matrix})
    table.add("SoftmaxActivation", "data.softmax(-1)", {"data": matrix})
    table.add("L2Normalization", "F.normalize(data, dim=1)", {"data": matrix})
    table.add(
        "LayerNorm",
        "F.layer_norm(data, gamma.shape, gamma, beta, 1e-5)",
        {"data": matrix, "gamma": [n(256)], "beta": [n(256)]},
    )
    images = {"data": [n(2), 32, n(16), 16], "gamma": [32], "beta": [32]}
    table.add("InstanceNorm", "F.instance_norm(data, None, None, gamma, beta, True, 0.1, 1e-3)", images)
    table.add("LRN", "F.local_response_norm(data, 5, 1e-4, 0.75, 2.0)", {"data": images["data"]}, {"nsize": 5})


def add_products(table):
    table.add("dot", "lhs @ rhs", {"lhs": [n(64), n(64)], "rhs": [n(64), n(64)]})
    table.add("batch_dot", "torch.bmm(lhs, rhs)", {"lhs": [n(4), 64, n(16)], "rhs": [n(4), n(16), 64]})
    table.add("linalg.gemm2", "lhs @ rhs", {"lhs": [n(2), n(16), n(16)], "rhs": [n(2), n(16), n(16)]})
    table.add("linalg.syrk", "A @ A.mT", {"A": [n(2), n(16), n(16)]})
    table.add("linalg.potrf", "torch.linalg.cholesky(A)", {"A": [n(2), n(16), n(16)]}, values={"A": "definite"})
    table.add(
        "linalg.trsm",
        "torch.linalg.solve_triangular(A, B, upper=False)",
        {"A": [n(2), n(16), n(16)], "B": [n(2), n(16), n(16)]},
        values={"A": "triangular"},
    )
    table.add("linalg.trmm", "A.tril() @ B", {"A": [n(2), n(16), n(16)], "B": [n(2), n(16), n(16)]})
    table.add("linalg.inverse", "torch.linalg.inv(A)", {"A": [n(2), n(16), n(16)]}, values={"A": "definite"})
    table.add("linalg.det", "torch.linalg.det(A)", {"A": [n(2), n(8), n(8)]}, values={"A": "triangular"})
    table.add("linalg.extractdiag", "A.diagonal(dim1=-2, dim2=-1).contiguous()", {"A": [n(2), n(16), n(16)]})
    table.add("linalg.makediag", "torch.diag_embed(A)", {"A": [n(2), n(16)]})
    table.add(
        "contrib.interleaved_matmul_selfatt_qk",
        "torch.bmm("
        "(q := queries_keys_values.view(*queries_keys_values.shape[:2], 8, 3, -1))[:, :, :, 0].flatten(1, 2)"
        ".transpose(0, 1) / q.shape[-1] ** 0.5, q[:, :, :, 1].flatten(1, 2).permute(1, 2, 0))",
        {"queries_keys_values": [n(8), n(2), 3 * 8 * 64]},
        {"heads": 8},
    )


def add_movements(table):
    cube = {"data": [n(16), 32, n(32)]}
    table.add("transpose", "data.permute(2, 1, 0).contiguous()", cube, {"axes": [2, 1, 0]})
    table.add("SwapAxis", "data.transpose(0, 1).contiguous()", cube, {"dim1": 0, "dim2": 1})
    table.add("slice_axis", "data[:, 8:24].contiguous()", cube, {"axis": 1, "begin": 8, "end": 24})
    table.add("slice", "data[:, 8:24, 4:16].contiguous()", cube, {"begin": [0, 8, 4], "end": [100000, 24, 16]})
    table.add("reverse", "data.flip(1)", cube, {"axis": 1})
    table.add("tile", "data.tile(1, 2, 2)", cube, {"reps": [1, 2, 2]})
    table.add("repeat", "data.repeat_interleave(2, 1)", cube, {"repeats": 2, "axis": 1})
    table.add("Concat", "torch.cat([a, b], 1)", {"a": cube["data"], "b": cube["data"]}, {"dim": 1})
    table.add("stack", "torch.stack([a, b], 1)", {"a": cube["data"], "b": cube["data"]}, {"axis": 1})
    table.add("diag", "data.diagonal().contiguous()", {"data": [n(128), n(128)]})
    images = {"data": [n(1), 32, n(8), 64]}
    pad = {"mode": "constant", "pad_width": [0, 0, 0, 0, 1, 1, 2, 2]}
    table.add("Pad", "F.pad(data, (2, 2, 1, 1))", images, pad, name="Pad constant")
    table.add("Pad", "F.pad(data, (2, 2, 1, 1), 'reflect')", images, pad | {"mode": "reflect"}, name="Pad reflect")
    table.add("Pad", "F.pad(data, (2, 2, 1, 1), 'replicate')", images, pad | {"mode": "edge"}, name="Pad edge")
    table.add(
        "depth_to_space",
        "(lambda n, c, h, w: data.view(n, 2, 2, c // 4, h, w).permute(0, 3, 4, 1, 5, 2)"
        ".reshape(n, c // 4, 2 * h, 2 * w))(*data.shape)",
        images,
        {"block_size": 2},
    )
    table.add("UpSampling", "F.interpolate(data, scale_factor=2)", images, {"scale": 2, "sample_type": "nearest"})
    table.add(
        "contrib.BilinearResize2D",
        "F.interpolate(data, size=(64, 96), mode='bilinear', align_corners=True)",
        images,
        {"height": 64, "width": 96},
    )
    table.add("contrib.AdaptiveAvgPooling2D", "F.adaptive_avg_pool2d(data, (7, 5))", images, {"output_size": [7, 5]})
    table.add("im2col", "F.unfold(data, 3, 1, 1, 1)", images, {"kernel": [3, 3], "pad": [1, 1]})
    table.add("SequenceReverse", "data.flip(0)", cube)
    table.add(
        "SequenceMask",
        "data * (torch.arange(data.shape[0], device=data.device)[:, None] < sequence_length)[:, :, None]",
        cube | {"sequence_length": [32]},
        {"use_sequence_length": True},
        grads=["data"],
        values={"sequence_length": 16},
    )


def add_indexing(table):
    rows = {"a": [n(512), 64], "indices": [n(256)]}
    table.add("take", "a[indices.long()]", rows, grads=["a"], values={"indices": 500})
    table.add("one_hot", "F.one_hot(indices.long(), 128).float()", {"indices": [n(256)]}, {"depth": 128}, grads=[],
              values={"indices": 128})  # fmt: skip
    table.add(
        "pick",
        "data.gather(1, index.long()[:, None])[:, 0]",
        {"data": [n(256), 64], "index": [n(256)]},
        grads=["data"],
        values={"index": 64},
    )
    table.add(
        "gather_nd",
        "data[indices[0].long(), indices[1].long()]",
        {"data": [n(256), 256], "indices": [2, n(1024)]},
        grads=["data"],
        values={"indices": 250},
    )
    matrix = {"data": [n(32), n(64)]}
    table.add("sort", "data.sort(-1).values", matrix, grads=[])
    table.add("argsort", "torch.argsort(data, dim=-1, stable=True).float()", matrix, grads=[])
    table.add("topk", "data.topk(5, -1).values", matrix, {"k": 5, "ret_typ": "value"}, grads=[])
    table.add(
        "contrib.box_iou",
        "(lambda o: o / ((lhs[:, 2:] - lhs[:, :2]).prod(-1)[:, None] + (rhs[:, 2:] - rhs[:, :2]).prod(-1) - o))("
        "(torch.minimum(lhs[:, None, 2:], rhs[:, 2:]) - torch.maximum(lhs[:, None, :2], rhs[:, :2]))"
        ".clamp(0).prod(-1))",
        {"lhs": [n(64), 4], "rhs": [n(64), 4]},
        {"format": "corner"},
        grads=[],
        values={"lhs": "boxes", "rhs": "boxes"},
    )


def add_layers(table):
    images = {"data": [n(1), 32, n(4), 64]}
    table.add("Activation", "data.relu()", images, {"act_type": "relu"}, name="Activation relu")
    table.add("Activation", "F.softplus(data)", images, {"act_type": "softrelu"}, name="Activation softrelu")
    window = {"kernel": [3, 3], "stride": [2, 2], "pad": [1, 1]}
    table.add("Pooling", "F.max_pool2d(data, 3, 2, 1)", images, window | {"pool_type": "max"}, name="Pooling max")
    table.add("Pooling", "F.avg_pool2d(data, 3, 2, 1)", images, window | {"pool_type": "avg"}, name="Pooling avg")
    table.add("BilinearSampler", "F.grid_sample(data, grid.permute(0, 2, 3, 1), align_corners=True)",
              {"data": [n(1), 16, 32, 64], "grid": [n(1), 2, 32, 64]}, values={"grid": "below one"})  # fmt: skip


def operator_table():
    table = Table()
    for add in (
        add_elementwise,
        add_pairs,
        add_reductions,
        add_products,
        add_movements,
        add_indexing,
        add_layers,
    ):
        add(table)
    return table


def print_table(lines, names):
    print("| operator | size | pass | " + " | ".join(f"{name} ms" for name in names) + " | ours / better peer |")
    print("|---|---|---|" + "---:|" * (len(names) + 1))
    for ratio, row, mode in lines:
        times = row["ms"][mode]
        cells = [f"{times[name]:.4f}" if name in times else "-" for name in names]
        print(f"| {row['layer']['name']} | {row['layer']['size']} | {mode} | {' | '.join(cells)} | {ratio:.2f} |")


def report(rows, names, arguments):
    lines = [(ratio, row, mode) for row in rows for mode, ratio in ratios(row).items()]
    lines.sort(key=lambda line: -line[0])
    for size in SIZES:
        found = [ratio for ratio, row, _ in lines if row["layer"]["size"] == size]
        slow = sum(ratio > LIMIT for ratio in found)
        mean = geometric_mean(found)
        print(f"{size}: {len(found)} passes, geometric mean {mean:.2f}, slower than {LIMIT} × the better peer: {slow}")
    for row in rows:
        name = f"{row['layer']['name']}, {row['layer']['size']}"
        if row["differences"]:
            print(f"  {name}: numbers differ from PyTorch's: {row['differences']}")
        for library in (OURS, "PyTorch"):
            if library in row["errors"]:
                print(f"  {name}: {library}: {row['errors'][library]}")
    print()
    print_table(lines[: arguments.worst], names)


def main():
    table = operator_table()
    parser = argparse.ArgumentParser(description="Times every operator by Symbind and its peers.")
    parser.add_argument("--only", action="append", help="this row only; may be repeated")
    add_options(parser)
    parser.add_argument("--worst", type=int, default=10**6, help="rows of the table (all)")
    arguments = parser.parse_args()
    layers = list(table.layers(arguments.only))
    if not layers:
        parser.error(f"there is no row of this name; there are {', '.join(row['name'] for row in table.rows)}")
    elements = max(math.prod(shape) for layer in layers for shape in layer["arrays"].values())
    print(
        f"{len(layers)} cases, arrays of up to {elements:,} elements, {arguments.threads} threads, {arguments.device}"
    )
    names, rows = time_all(layers, arguments, LIMIT)
    report(rows, names, arguments)


if __name__ == "__main__":
    main()
