"""Pooling."""

from .common import DTYPES, case

OP = "Pooling"


def data(*shape, dtype="float32"):
    return lambda v: {"data": v.distinct(*shape, dtype=dtype)}


def cases():
    types = [("max", {}), ("avg", {}), ("sum", {}), ("lp", {"p_value": "2"})]
    for pool_type, extra in types:
        base = dict(extra, pool_type=pool_type)
        for dtype in DTYPES:
            yield case(
                OP,
                "%s_%s" % (pool_type, dtype),
                data(1, 2, 4, 4, dtype=dtype),
                dict(base, kernel="(2, 2)", stride="(2, 2)"),
            )
        for name, shape, attrs in [
            ("default", (1, 2, 4, 4), {"kernel": "(2, 2)"}),
            ("stride1", (2, 1, 4, 5), {"kernel": "(3, 2)", "stride": "(1, 1)"}),
            ("stride", (1, 2, 7, 6), {"kernel": "(3, 2)", "stride": "(2, 3)"}),
            ("pad", (1, 2, 5, 5), {"kernel": "(3, 3)", "pad": "(1, 1)", "stride": "(2, 2)"}),
            ("pad_uneven", (1, 1, 4, 6), {"kernel": "(2, 3)", "pad": "(1, 2)"}),
            ("full", (1, 2, 6, 7), {"kernel": "(3, 3)", "stride": "(2, 2)", "pooling_convention": "full"}),
            (
                "full_pad",
                (1, 1, 6, 5),
                {"kernel": "(3, 2)", "stride": "(2, 2)", "pad": "(1, 1)", "pooling_convention": "full"},
            ),
            ("full_stride3", (1, 1, 8, 6), {"kernel": "(2, 2)", "stride": "(3, 3)", "pooling_convention": "full"}),
            (
                "full_wide_stride",
                (1, 1, 5, 7),
                {"kernel": "(2, 2)", "stride": "(4, 4)", "pad": "(1, 1)", "pooling_convention": "full"},
            ),
            ("valid", (1, 1, 6, 7), {"kernel": "(3, 3)", "stride": "(2, 2)", "pooling_convention": "valid"}),
            ("global", (2, 3, 3, 4), {"global_pool": "True"}),
            (
                "global_kernel",
                (2, 2, 3, 4),
                {"global_pool": "True", "kernel": "(2, 2)", "stride": "(2, 2)", "pad": "(1, 1)"},
            ),
            ("count_pad", (1, 1, 4, 5), {"kernel": "(3, 3)", "pad": "(1, 1)", "count_include_pad": "True"}),
            ("count_no_pad", (1, 1, 4, 5), {"kernel": "(3, 3)", "pad": "(1, 1)", "count_include_pad": "False"}),
            (
                "count_no_pad_full",
                (1, 1, 6, 5),
                {
                    "kernel": "(3, 2)",
                    "stride": "(2, 2)",
                    "pad": "(1, 1)",
                    "count_include_pad": "False",
                    "pooling_convention": "full",
                },
            ),
            ("layout_nchw", (1, 2, 4, 4), {"kernel": "(2, 2)", "layout": "NCHW"}),
            ("layout_nhwc", (1, 4, 4, 2), {"kernel": "(2, 2)", "layout": "NHWC"}),
            (
                "layout_nhwc_pad",
                (2, 5, 3, 2),
                {"kernel": "(3, 2)", "stride": "(2, 1)", "pad": "(1, 1)", "layout": "NHWC"},
            ),
            ("global_nhwc", (2, 3, 2, 3), {"global_pool": "True", "layout": "NHWC"}),
            ("cudnn_off", (1, 1, 4, 4), {"kernel": "(2, 2)", "cudnn_off": "True"}),
            ("odd", (3, 1, 7, 1), {"kernel": "(3, 1)", "stride": "(2, 1)"}),
            ("1d", (2, 3, 8), {"kernel": "(3,)", "stride": "(2,)"}),
            ("1d_pad", (1, 2, 7), {"kernel": "(3,)", "pad": "(1,)"}),
            ("1d_full", (1, 2, 8), {"kernel": "(3,)", "stride": "(2,)", "pooling_convention": "full"}),
            (
                "1d_same",
                (1, 2, 7),
                {"kernel": "(3,)", "stride": "(2,)", "pad": "(0, 0, 0)", "pooling_convention": "same"},
            ),
            (
                "1d_same_even",
                (1, 2, 8),
                {"kernel": "(2,)", "stride": "(3,)", "pad": "(0, 0, 0)", "pooling_convention": "same"},
            ),
            ("1d_same_stride1", (1, 1, 5), {"kernel": "(3,)", "pad": "(0, 0, 0)", "pooling_convention": "same"}),
            ("1d_global", (2, 3, 7), {"global_pool": "True"}),
            ("1d_ncw", (1, 2, 5), {"kernel": "(2,)", "layout": "NCW"}),
            ("1d_nwc", (1, 5, 2), {"kernel": "(2,)", "layout": "NWC"}),
            ("3d", (1, 2, 4, 3, 4), {"kernel": "(2, 2, 2)", "stride": "(2, 1, 2)"}),
            ("3d_pad", (1, 1, 3, 4, 3), {"kernel": "(2, 3, 2)", "pad": "(1, 1, 1)", "stride": "(2, 2, 1)"}),
            ("3d_full", (1, 1, 4, 5, 4), {"kernel": "(3, 2, 3)", "stride": "(2, 2, 2)", "pooling_convention": "full"}),
            ("3d_global", (1, 2, 2, 3, 2), {"global_pool": "1"}),
            ("3d_ncdhw", (1, 2, 3, 3, 3), {"kernel": "(2, 2, 2)", "layout": "NCDHW"}),
            ("3d_ndhwc", (1, 3, 3, 3, 2), {"kernel": "(2, 2, 2)", "layout": "NDHWC"}),
        ]:
            yield case(OP, pool_type + "_" + name, data(*shape), dict(base, **attrs))
        yield case(OP, pool_type + "_add", data(1, 2, 4, 4), dict(base, kernel="(3, 3)"), grad_req="add")
        yield case(
            OP, pool_type + "_ties", lambda v: {"data": v.labels(1, 2, 4, 4, classes=2)}, dict(base, kernel="(2, 2)")
        )
    yield case(OP, "p_with_max", data(1, 1, 4, 4), {"kernel": "(2, 2)", "p_value": "2"})
    for p in ("1", "2", "3"):
        for name, attrs in [
            ("pad", {"kernel": "(3, 3)", "pad": "(1, 1)", "stride": "(2, 2)"}),
            ("global", {"global_pool": "True"}),
        ]:
            yield case(OP, "lp%s_%s" % (p, name), data(1, 1, 5, 5), dict(attrs, pool_type="lp", p_value=p))
    for name, shape, attrs in [
        ("no_kernel", (1, 1, 4, 4), {}),
        ("kernel_too_big", (1, 1, 2, 2), {"kernel": "(3, 3)"}),
        ("pad_too_big", (1, 1, 4, 4), {"kernel": "(2, 2)", "pad": "(2, 2)"}),
        ("bad_rank", (4, 4), {"kernel": "(2, 2)"}),
        ("rank_mismatch", (1, 1, 4, 4), {"kernel": "(2,)"}),
        ("bad_type", (1, 1, 4, 4), {"kernel": "(2, 2)", "pool_type": "min"}),
        ("lp_no_p", (1, 1, 4, 4), {"kernel": "(2, 2)", "pool_type": "lp"}),
        ("lp_p4", (1, 1, 4, 4), {"kernel": "(2, 2)", "pool_type": "lp", "p_value": "4"}),
        ("same_no_pad", (1, 1, 4), {"kernel": "(2,)", "pooling_convention": "same"}),
        ("same_2d", (1, 1, 4, 4), {"kernel": "(2, 2)", "pooling_convention": "same"}),
        ("bad_layout", (1, 1, 4, 4), {"kernel": "(2, 2)", "layout": "NCW"}),
    ]:
        yield case(OP, "error_" + name, data(*shape), attrs, expect_error=True)
