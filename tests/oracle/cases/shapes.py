"""Axes put in, left out, exchanged, joined, cut, repeated, padded."""

import numpy as np

from .common import DTYPES, case

IMAGES = (2, 4, 4, 6)


def real(name="data", *shape, dtype="float32"):
    return lambda v: {name: v.real(*shape, dtype=dtype, low=-3, high=3)}


def several(*shapes, dtype="float32", names=None):
    names = names or ["arg%d" % i for i in range(len(shapes))]
    return lambda v: {n: v.real(*s, dtype=dtype, low=-3, high=3) for n, s in zip(names, shapes)}


def simple():
    """(operator, shape, attributes of every variant)"""
    yield "expand_dims", (2, 3), [{"axis": "0"}, {"axis": "1"}, {"axis": "2"}, {"axis": "-1"}, {"axis": "-3"}]
    yield "squeeze", (1, 2, 1), [{}, {"axis": "0"}, {"axis": "-1"}, {"axis": "(0, 2)"}, {"axis": "None"}]
    yield "SwapAxis", (2, 3, 4), [{"dim1": "0", "dim2": "2"}, {"dim1": "1", "dim2": "0"}, {"dim1": "-1", "dim2": "1"}]
    yield (
        "reverse",
        (2, 3, 4),
        [{"axis": "0"}, {"axis": "(1, 2)"}, {"axis": "(0, 2)"}, {"axis": "-1"}, {"axis": "(1, 0, 1)"}],
    )
    yield "depth_to_space", (2, 8, 2, 3), [{"block_size": "2"}]
    yield "space_to_depth", IMAGES, [{"block_size": "2"}]
    yield (
        "SliceChannel",
        (2, 6, 4),
        [
            {"num_outputs": "3"},
            {"num_outputs": "2", "axis": "0"},
            {"num_outputs": "2", "axis": "0", "squeeze_axis": "True"},
            {"num_outputs": "1"},
            {"num_outputs": "4", "axis": "2", "squeeze_axis": "1"},
        ],
    )
    yield (
        "slice_axis",
        (3, 4, 5),
        [
            {"axis": "0", "begin": "1", "end": "3"},
            {"axis": "1", "begin": "-3", "end": "-1"},
            {"axis": "-1", "begin": "2", "end": "None"},
            {"axis": "2", "begin": "0", "end": "5"},
        ],
    )
    yield (
        "tile",
        (2, 3),
        [{"reps": "(2,)"}, {"reps": "(2, 3)"}, {"reps": "(2, 1, 2)"}, {"reps": "(1, 2)"}, {"reps": "()"}],
    )
    yield (
        "repeat",
        (2, 3),
        [
            {"repeats": "2"},
            {"repeats": "3", "axis": "0"},
            {"repeats": "2", "axis": "-1"},
            {"repeats": "1", "axis": "1"},
        ],
    )
    yield (
        "broadcast_to",
        (1, 3, 1),
        [{"shape": "(2, 3, 4)"}, {"shape": "(0, 0, 2)"}, {"shape": "(1, 3, 1)"}, {"shape": "(2, 0, 0)"}],
    )
    yield (
        "broadcast_axis",
        (1, 3, 1),
        [{"axis": "0", "size": "2"}, {"axis": "(0, 2)", "size": "(2, 3)"}, {"axis": "2", "size": "4"}],
    )
    borders = ["(0, 0, 0, 0, 1, 2, 0, 1)", "(0, 0, 0, 0, 2, 2, 1, 1)"]
    yield (
        "Pad",
        (2, 2, 3, 4),
        [{"mode": m, "pad_width": w} for m in ("constant", "edge", "reflect") for w in borders]
        + [{"mode": "constant", "pad_width": borders[0], "constant_value": "2.5"}],
    )
    yield "Pad", (1, 2, 3, 2, 2), [{"mode": "edge", "pad_width": "(0, 0, 0, 0, 1, 1, 0, 1, 2, 0)"}]
    yield (
        "Crop",
        (2, 3, 5, 6),
        [
            {"num_args": "1", "h_w": "(2, 3)"},
            {"num_args": "1", "h_w": "(2, 3)", "offset": "(1, 2)"},
            {"num_args": "1", "h_w": "(2, 3)", "center_crop": "True"},
        ],
    )


def cases():
    for op, shape, variants in simple():
        name = "arg0" if op == "Crop" else "data"
        for i, attrs in enumerate(variants):
            yield case(op, "%dd_%d" % (len(shape), i), real(name, *shape), attrs)
        for dtype in DTYPES:
            if op != "Pad" or len(shape) == 4:
                yield case(op, dtype, real(name, *shape, dtype=dtype), variants[0])
        if op != "Pad" or len(shape) == 4:
            yield case(op, "add", real(name, *shape), variants[0], grad_req="add")
    # A negative width cuts off elements.
    for name, shape, width in [
        ("cut", (2, 2, 3, 4), "(0, 0, 0, 0, -1, 0, 0, -2)"),
        ("cut_and_padded", (1, 2, 3, 4), "(0, 0, 0, 0, -1, 2, 1, -2)"),
        ("cut_beyond", (1, 1, 2, 4), "(0, 0, 0, 0, -1, 1, -5, 3)"),
        ("cut_behind", (1, 1, 2, 4), "(0, 0, 0, 0, 1, -1, 3, -5)"),
        ("cut_5d", (1, 1, 2, 3, 3), "(0, 0, 0, 0, -1, 0, 1, -1, 0, -1)"),
        ("all_cut", (1, 2, 3, 4), "(0, 0, 0, 0, 0, 0, -1, -3)"),
    ]:
        for mode in ("constant", "edge", "reflect"):
            grad_req = "null" if mode == "constant" else "write"  # the gradient of a constant border reads beyond rows
            yield case("Pad", mode + "_" + name, real("data", *shape), {"mode": mode, "pad_width": width}, grad_req)
    for op, shape, attrs in [
        ("expand_dims", (2, 3), {"axis": "3"}),
        ("squeeze", (1, 2, 1), {"axis": "1"}),
        ("SliceChannel", (2, 6), {"num_outputs": "4"}),
        ("SliceChannel", (2, 6), {"num_outputs": "3", "squeeze_axis": "True"}),
        ("slice_axis", (2, 3), {"axis": "1", "begin": "0", "end": "9"}),
        ("slice_axis", (2, 3), {"axis": "1", "begin": "-9", "end": "2"}),
        ("slice_axis", (2, 3), {"axis": "1", "begin": "2", "end": "2"}),
        ("broadcast_to", (2, 3), {"shape": "(2, 4)"}),
        ("broadcast_to", (3,), {"shape": "(2, 3)"}),
        ("broadcast_axis", (2, 3), {"axis": "1", "size": "2"}),
        ("depth_to_space", (2, 6, 2, 2), {"block_size": "2"}),
        ("space_to_depth", (2, 6, 3, 2), {"block_size": "2"}),
    ]:
        yield case(
            op, "bad_%s_%s" % (len(shape), "_".join(attrs.values())), real("data", *shape), attrs, expect_error=True
        )
    for op, name, attrs in [
        ("split", "old_name", {"num_outputs": "3"}),
        ("swapaxes", "old_name", {"dim1": "0", "dim2": "1"}),
        ("flip", "old_name", {"axis": "1"}),
        ("broadcast_axes", "old_name", {"axis": "0", "size": "3"}),
    ]:
        yield case(op, name, real("data", 1, 3), attrs)
    yield case("pad", "old_name", real("data", 1, 1, 2, 2), {"mode": "edge", "pad_width": "(0, 0, 0, 0, 1, 1, 1, 1)"})

    for op in ("stack", "add_n"):
        for dtype in DTYPES:
            yield case(op, dtype, several((2, 3), (2, 3), dtype=dtype), {"num_args": "2"})
        yield case(op, "one", several((2, 3)), {"num_args": "1"})
        yield case(op, "three", several((2, 3), (2, 3), (2, 3)), {"num_args": "3"})
        yield case(op, "add", several((2, 3), (2, 3)), {"num_args": "2"}, grad_req="add")
        yield case(op, "bad", several((2, 3), (2, 4)), {"num_args": "2"}, expect_error=True)
    for axis in ("0", "1", "2", "-1", "-3"):
        yield case("stack", "axis" + axis, several((2, 3), (2, 3)), {"num_args": "2", "axis": axis})
    yield case("ElementWiseSum", "old_name", several((2, 3), (2, 3)), {"num_args": "2"})

    names = ["data", "shape_like"]
    for name, a, b, attrs in [
        ("all", (4, 5), (2, 3), {}),
        ("axes", (4, 5), (2, 3), {"axes": "(1,)"}),
        ("axis_last", (4, 5), (2, 3), {"axes": "(-1,)"}),
        ("ranks", (4, 5), (2,), {"axes": "(0,)"}),
        ("same", (2, 3), (2, 3), {}),
    ]:
        yield case("slice_like", name, several(a, b, names=names), attrs)
    yield case("slice_like", "add", several((4, 5), (2, 3), names=names), grad_req="add")
    yield case("slice_like", "bad", several((4, 5), (6, 3), names=names), expect_error=True)
    names = ["lhs", "rhs"]
    for name, a, b, attrs in [
        ("all", (1, 3), (2, 3), {}),
        ("axes", (1, 3), (2, 5), {"lhs_axes": "(0,)", "rhs_axes": "(1,)"}),
        ("axes_last", (1, 3, 1), (2, 5), {"lhs_axes": "(0, -1)", "rhs_axes": "(-1, 0)"}),
    ]:
        yield case("broadcast_like", name, several(a, b, names=names), attrs)
    yield case("broadcast_like", "bad", several((2, 3), (4, 3), names=names), expect_error=True)
    for name, attrs in [("plain", {}), ("offset", {"offset": "(1, 2)"}), ("center", {"center_crop": "True"})]:
        yield case("Crop", "like_" + name, several((2, 1, 5, 6), (2, 3, 2, 3)), dict(attrs, num_args="2"))
    outside = np.zeros((1, 1, 4, 4), "float32")
    yield case("Crop", "outside", lambda v: {"arg0": outside}, {"num_args": "1", "h_w": "(5, 2)"}, expect_error=True)
