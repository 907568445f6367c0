"""Convolution."""

from .common import DTYPES, case

OP = "Convolution"


def make(shape, weight, bias=True, dtype="float32"):
    def inputs(v):
        result = {"data": v.real(*shape, dtype=dtype), "weight": v.real(*weight, dtype=dtype)}
        if bias:
            result["bias"] = v.real(weight[0], dtype=dtype)
        return result

    return inputs


def cases():
    for dtype in DTYPES:
        if dtype == "int8":  # oneDNN takes it as quantized; not comparable
            continue
        for rank, kernel, size in [
            (1, "(2,)", (2, 2, 5)),
            (2, "(2, 2)", (1, 2, 4, 4)),
            (3, "(2, 2, 2)", (1, 1, 3, 3, 3)),
        ]:
            yield case(
                OP,
                "%s_%dd" % (dtype, rank),
                make(size, (3, size[1]) + (2,) * rank, dtype=dtype),
                {"kernel": kernel, "num_filter": "3"},
            )
    for name, shape, kernel, filters, attrs in [
        ("1d_stride", (2, 3, 9), (3,), 2, {"stride": "(2,)"}),
        ("1d_pad", (2, 3, 7), (3,), 2, {"pad": "(1,)"}),
        ("1d_dilate", (1, 2, 9), (3,), 3, {"dilate": "(2,)"}),
        ("1d_all", (1, 4, 11), (3,), 4, {"stride": "(2,)", "pad": "(2,)", "dilate": "(2,)", "num_group": "2"}),
        ("1d_layout", (1, 2, 6), (3,), 3, {"layout": "NCW"}),
        ("2d_3x3", (2, 2, 5, 5), (3, 3), 3, {}),
        ("2d_1x1", (2, 3, 3, 3), (1, 1), 4, {}),
        ("2d_5x3", (1, 2, 7, 6), (5, 3), 2, {}),
        ("2d_stride", (1, 2, 7, 6), (3, 2), 2, {"stride": "(2, 3)"}),
        ("2d_pad", (1, 2, 4, 5), (3, 3), 2, {"pad": "(1, 2)"}),
        ("2d_same", (2, 3, 5, 5), (3, 3), 2, {"pad": "(1, 1)"}),
        ("2d_dilate", (1, 2, 7, 8), (3, 3), 2, {"dilate": "(2, 3)"}),
        ("2d_all", (1, 2, 9, 8), (3, 2), 2, {"stride": "(2, 1)", "pad": "(1, 2)", "dilate": "(2, 2)"}),
        ("2d_group", (1, 4, 4, 4), (3, 3), 6, {"num_group": "2"}),
        ("2d_depthwise", (2, 3, 5, 5), (3, 3), 3, {"num_group": "3", "pad": "(1, 1)"}),
        ("2d_depthwise_twice", (1, 3, 4, 4), (2, 2), 6, {"num_group": "3"}),
        ("2d_layout", (1, 2, 4, 4), (3, 3), 2, {"layout": "NCHW"}),
        ("2d_list", (1, 2, 4, 4), (3, 3), 2, {"stride": "[1, 1]", "pad": "[1, 1]"}),
        ("2d_tuning", (1, 2, 4, 4), (3, 3), 2, {"workspace": "512", "cudnn_tune": "off", "cudnn_off": "True"}),
        ("2d_odd", (3, 1, 7, 1), (3, 1), 5, {}),
        ("2d_whole", (2, 3, 4, 5), (4, 5), 2, {}),
        ("2d_kernel_in_pad", (1, 1, 2, 2), (3, 3), 1, {"pad": "(3, 3)"}),
        ("3d_stride", (1, 2, 5, 4, 5), (2, 2, 2), 2, {"stride": "(2, 1, 2)"}),
        ("3d_pad", (1, 1, 3, 3, 2), (3, 2, 2), 2, {"pad": "(1, 0, 1)"}),
        ("3d_dilate", (1, 1, 5, 4, 4), (2, 2, 2), 2, {"dilate": "(2, 1, 3)"}),
        ("3d_group", (1, 4, 3, 3, 3), (2, 2, 2), 2, {"num_group": "2"}),
        ("3d_layout", (1, 1, 3, 3, 3), (2, 2, 2), 2, {"layout": "NCDHW"}),
    ]:
        groups = int(attrs.get("num_group", 1))
        weight = (filters, shape[1] // groups) + kernel
        full = dict(attrs, kernel=str(kernel), num_filter=filters)
        yield case(OP, name, make(shape, weight), full)
        yield case(OP, name + "_no_bias", make(shape, weight, False), dict(full, no_bias="True"))
    for rank in (1, 2, 3):
        shape = (2, 2) + (4,) * rank
        yield case(
            OP,
            "add_%dd" % rank,
            make(shape, (2, 2) + (2,) * rank),
            {"kernel": str((2,) * rank), "num_filter": "2"},
            grad_req="add",
        )
    yield case(
        OP,
        "add_group",
        make((1, 4, 4, 4), (4, 2, 2, 2)),
        {"kernel": "(2, 2)", "num_filter": "4", "num_group": "2"},
        grad_req="add",
    )
    # Channels-last layouts.
    yield case(
        OP,
        "nhwc",
        make((1, 4, 4, 2), (3, 2, 2, 2)),
        {"kernel": "(2, 2)", "num_filter": "3", "layout": "NHWC"},
        expect_error=True,
    )
    yield case(
        OP,
        "ndhwc",
        make((1, 3, 3, 3, 2), (3, 2, 2, 2, 2)),
        {"kernel": "(2, 2, 2)", "num_filter": "3", "layout": "NDHWC"},
        expect_error=True,
    )
    for name, shape, weight, attrs in [
        ("bad_weight", (1, 2, 4, 4), (3, 1, 2, 2), {}),
        ("bad_rank", (2, 4, 4), (3, 2, 2, 2), {}),
        ("kernel_too_big", (1, 2, 2, 1), (3, 2, 2, 2), {}),
        ("stride_zero", (1, 2, 4, 4), (3, 2, 2, 2), {"stride": "(0, 1)"}),
        ("dilate_zero", (1, 2, 4, 4), (3, 2, 2, 2), {"dilate": "(0, 1)"}),
        ("bad_group", (1, 3, 4, 4), (3, 1, 2, 2), {"num_group": "2"}),
        ("bad_layout", (1, 2, 4, 4), (3, 2, 2, 2), {"layout": "NCW"}),
        ("short_stride", (1, 2, 4, 4), (3, 2, 2, 2), {"stride": "(2,)"}),
    ]:
        yield case(
            OP, name, make(shape, weight), dict({"kernel": "(2, 2)", "num_filter": "3"}, **attrs), expect_error=True
        )
    yield case(OP, "no_kernel", make((1, 2, 4, 4), (3, 2, 2, 2)), {"num_filter": "3"}, expect_error=True)
