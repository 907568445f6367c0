"""Attention, resizing, windows as columns, slices replaced and other operators of MXNet's contrib namespace."""

import numpy as np

from .common import DTYPES, FLOATS, case

NUMBERS = [dtype for dtype in DTYPES if dtype != "bool"]


def attention_cases():
    def named(which):
        return "_contrib_interleaved_matmul_" + which

    for name, heads, length, batch, features in [("two", 2, 3, 2, 4), ("one", 1, 4, 3, 2), ("short", 3, 1, 1, 1)]:
        attrs = {"heads": heads}

        def packed(v, parts, rows=length, heads=heads, batch=batch, features=features):
            return v.real(rows, batch, heads * parts * features)

        slots = batch * heads
        yield case(named("selfatt_qk"), name, lambda v, p=packed: {"queries_keys_values": p(v, 3)}, attrs)
        yield case(
            named("selfatt_valatt"),
            name,
            lambda v, p=packed, n=length, s=slots: {"queries_keys_values": p(v, 3), "attention": v.real(s, n, n)},
            attrs,
        )
        yield case(
            named("encdec_qk"), name, lambda v, p=packed: {"queries": p(v, 1), "keys_values": p(v, 2, rows=5)}, attrs
        )
        yield case(
            named("encdec_valatt"),
            name,
            lambda v, p=packed, n=length, s=slots: {"keys_values": p(v, 2, rows=5), "attention": v.real(s, n, 5)},
            attrs,
        )
    yield case(
        named("selfatt_qk"),
        "add",
        lambda v: {"queries_keys_values": v.real(3, 2, 12)},
        {"heads": 2},
        grad_req="add",
    )
    for dtype in NUMBERS:
        yield case(
            "_contrib_div_sqrt_dim",
            dtype,
            lambda v, dtype=dtype: {"data": v.real(2, 3, 5, dtype=dtype, low=0, high=60)},
            grad_req="write" if dtype in FLOATS else None,
        )


def resize_cases():
    op = "_contrib_BilinearResize2D"

    def image(*shape, dtype="float32"):
        return lambda v: {"data": v.real(*(shape or (2, 2, 3, 4)), dtype=dtype)}

    for dtype in FLOATS:
        yield case(op, dtype, image(dtype=dtype), {"height": 5, "width": 7})
    for align in ("True", "False"):
        for name, rows, columns in [
            ("larger", 6, 9),
            ("smaller", 2, 3),
            ("row", 1, 5),
            ("column", 5, 1),
            ("same", 3, 4),
        ]:
            yield case(
                op,
                f"{name}_align_{align}",
                image(),
                {"height": rows, "width": columns, "align_corners": align},
            )
    for mode in ["to_even_down", "to_even_up", "to_odd_down", "to_odd_up"]:
        yield case(op, mode, image(1, 2, 5, 4), {"mode": mode})
    scales = {"scale_height": 1.5, "scale_width": 2}
    yield case(op, "scaled", image(1, 2, 5, 4), scales)
    yield case(op, "odd_scale", image(1, 2, 5, 4), dict(scales, mode="odd_scale"))
    yield case(op, "odd_scale_of_0", image(1, 2, 5, 4), dict(scales, mode="odd_scale", scale_height=0))
    yield case(
        op,
        "like",
        lambda v: {"data": v.real(1, 2, 3, 4), "like": v.real(2, 1, 5, 2)},
        {"mode": "like"},
        no_grad=["like"],
    )
    yield case(op, "of_one_pixel", image(1, 1, 1, 1), {"height": 3, "width": 2})
    yield case(op, "add", image(), {"height": 5, "width": 3}, grad_req="add")
    yield case(op, "bad_rank", image(2, 3, 4), {"height": 5, "width": 3}, expect_error=True)
    yield case(op, "bad_scale", image(), {"mode": "odd_scale"}, expect_error=True)
    op = "_contrib_AdaptiveAvgPooling2D"
    for dtype in FLOATS:
        yield case(op, dtype, image(dtype=dtype), {"output_size": "(2, 3)"})
    for name, size in [("default", None), ("one_number", "3"), ("larger", "(7, 5)"), ("columns", "(1, 4)")]:
        yield case(op, name, image(1, 2, 5, 7), {"output_size": size} if size else {})
    for size in ["0", "(0, 3)", "(2, 0)"]:
        yield case(op, "none_" + size, image(1, 2, 5, 7), {"output_size": size})
    yield case(op, "add", image(), {"output_size": "(2, 2)"}, grad_req="add")


def window_cases():
    window = {"kernel": "(2, 3)", "stride": "(2, 1)", "dilate": "(1, 2)", "pad": "(1, 1)"}
    for dtype in FLOATS:
        yield case("im2col", dtype, lambda v, d=dtype: {"data": v.real(2, 2, 5, 6, dtype=d)}, window)
    yield case("im2col", "plain", lambda v: {"data": v.real(1, 3, 4, 4)}, {"kernel": "(2, 2)"})
    yield case("im2col", "add", lambda v: {"data": v.real(1, 3, 4, 4)}, {"kernel": "(2, 2)"}, grad_req="add")
    yield case("im2col", "too_large", lambda v: {"data": v.real(1, 3, 4, 4)}, {"kernel": "(5, 2)"}, expect_error=True)
    back = dict(window, output_size="(5, 6)")
    for dtype in FLOATS:
        yield case("col2im", dtype, lambda v, d=dtype: {"data": v.real(2, 12, 12, dtype=d)}, back)
    yield case("col2im", "add", lambda v: {"data": v.real(2, 12, 12)}, back, grad_req="add")
    yield case("col2im", "bad_windows", lambda v: {"data": v.real(2, 12, 11)}, back, expect_error=True)
    yield case("col2im", "bad_channels", lambda v: {"data": v.real(2, 13, 12)}, back, expect_error=True)


def index_cases():
    op = "_contrib_index_array"
    for name, shape, attrs in [
        ("all", (2, 3), {}),
        ("chosen", (2, 3, 2), {"axes": "(2, 0)"}),
        ("last", (4,), {"axes": "(-1,)"}),
    ]:
        yield case(op, name, lambda v, s=shape: {"data": v.real(*s)}, attrs, grad_req=None)
    op = "_contrib_arange_like"
    for name, attrs in [
        ("plain", {}),
        ("context", {"ctx": "cpu(0)"}),
        ("steps", {"start": 1, "step": 0.5}),
        ("axis", {"axis": 1}),
        ("last_axis", {"axis": -1, "start": 2}),
        ("repeated", {"repeat": 2}),
        ("repeated_along_an_axis", {"repeat": 3, "axis": 1}),
        ("downwards", {"repeat": -2, "start": 1, "step": 0.5}),
        ("downwards_along_an_axis", {"repeat": -1, "axis": 1}),
    ]:
        yield case(op, name, lambda v: {"data": v.real(2, 4)}, attrs, grad_req=None)
    op = "_contrib_index_copy"

    def rows(v, *inner, dtype="float32"):
        return {
            "old_tensor": v.real(5, *inner, dtype=dtype),
            "index_vector": np.array([3, 0, 4], "int64"),
            "new_tensor": v.real(3, *inner, dtype=dtype),
        }

    yield case(op, "rows", lambda v: rows(v, 2), no_grad=["index_vector"], grad_req=None)
    yield case(op, "numbers", lambda v: rows(v), grad_req=None)
    yield case(op, "of_rank_3", lambda v: rows(v, 2, 3), grad_req=None)
    yield case(op, "float64", lambda v: rows(v, 2, dtype="float64"), grad_req=None)


def split_cases():
    op = "_split_v2"
    for name, shape, attrs in [
        ("indices", (2, 6), {"indices": "(0, 1, 3)", "axis": 1}),
        ("first_axis", (6, 2), {"indices": "(0, 2, 5)", "axis": 0}),
        ("an_empty_part", (2, 6), {"indices": "(0, 2, 2)", "axis": 1}),
        ("sections", (2, 6), {"indices": "()", "sections": 3, "axis": -1}),
        ("squeezed", (2, 3), {"indices": "()", "sections": 3, "axis": 1, "squeeze_axis": "True"}),
    ]:
        yield case(op, name, lambda v, s=shape: {"data": v.real(*s)}, attrs)
    for name, attrs in [
        ("descending", {"indices": "(0, 3, 1)", "axis": 1}),
        ("beyond", {"indices": "(0, 9)", "axis": 1}),
        ("not_squeezable", {"indices": "(0, 2)", "axis": 1, "squeeze_axis": "True"}),
    ]:
        yield case(op, name, lambda v: {"data": v.real(2, 6)}, attrs, expect_error=True)


def histogram_cases():
    op = "_histogram"
    equal = {"bin_cnt": 5, "range": "(-1.5, 1.5)"}
    for dtype in FLOATS:
        yield case(op, dtype, lambda v, d=dtype: {"data": v.real(4, 9, dtype=d)}, equal, grad_req=None)
    for dtype in ["int32", "int64", "uint8"]:
        attrs = {"bin_cnt": 5, "range": "(0, 9)"}
        yield case(op, dtype, lambda v, d=dtype: {"data": v.real(50, dtype=d, low=0, high=12)}, attrs, grad_req=None)
    yield case(
        op,
        "given_bins",
        lambda v: {"data": v.real(60), "bins": np.array([-1, -0.5, 0, 0.25, 1.5], "float32")},
        grad_req=None,
    )
    yield case(op, "half", lambda v: {"data": v.real(60)}, {"bin_cnt": 5}, expect_error=True)


def function_cases():
    op = "_contrib_quadratic"
    for dtype in FLOATS:
        yield case(op, dtype, lambda v, d=dtype: {"data": v.real(2, 3, dtype=d)}, {"a": 1.5, "b": -2, "c": 3})
    for dtype in ["int32", "int64"]:
        attrs = {"a": 1.5, "b": 2, "c": 3}
        yield case(op, dtype, lambda v, d=dtype: {"data": v.real(2, 3, dtype=d, low=0, high=9)}, attrs, grad_req=None)
    yield case(op, "default", lambda v: {"data": v.real(2, 3)})
    yield case(op, "add", lambda v: {"data": v.real(2, 3)}, {"a": 1.5, "b": -2}, grad_req="add")
    yield case("_contrib_gradientmultiplier", "doubled", lambda v: {"data": v.real(2, 3)}, {"scalar": 2})
    halved = {"scalar": -0.5, "is_int": "False"}
    yield case("_contrib_gradientmultiplier", "reversed", lambda v: {"data": v.real(2, 3)}, halved)
    yield case("_contrib_gradientmultiplier", "add", lambda v: {"data": v.real(2, 3)}, {"scalar": 3}, grad_req="add")
    for op in ["_contrib_round_ste", "_contrib_sign_ste"]:
        for dtype in FLOATS:
            yield case(op, dtype, lambda v, d=dtype: {"data": v.real(4, 5, dtype=d, low=-4, high=4)})
    op = "_identity_with_attr_like_rhs"
    yield case(op, "plain", lambda v: {"lhs": v.real(2, 3), "rhs": v.real(2, 3)})
    yield case(op, "bad_shape", lambda v: {"lhs": v.real(2, 3), "rhs": v.real(3, 2)}, expect_error=True)
    yield case("cast_storage", "default", lambda v: {"data": v.real(2, 3)}, {"stype": "default"})
    yield case("_onehot_encode", "plain", lambda v: {"lhs": v.labels(4, classes=3), "rhs": v.real(4, 3)}, grad_req=None)
    yield case(
        "_rnn_param_concat",
        "vectors",
        lambda v: {"arg0": v.real(3), "arg1": v.real(2)},
        {"num_args": 2, "dim": 0},
    )
    yield case("_scatter_elemwise_div", "plain", lambda v: {"lhs": v.real(2, 3), "rhs": v.nonzero(2, 3)})
    yield case("_scatter_plus_scalar", "plain", lambda v: {"data": v.real(2, 3)}, {"scalar": 2})
    yield case("_scatter_minus_scalar", "plain", lambda v: {"data": v.real(2, 3)}, {"scalar": 2})


def layer_cases():
    def arrays(v, *shape):
        channels = shape[1]
        return {
            "data": v.real(*shape),
            "gamma": v.real(channels, low=0.5, high=1.5),
            "beta": v.real(channels),
            "moving_mean": v.real(channels),
            "moving_var": v.real(channels, low=0.5, high=2),
        }

    op = "_contrib_SyncBatchNorm"
    for name, attrs in [
        ("plain", {}),
        ("with_gamma", {"fix_gamma": "False", "eps": 0.01, "momentum": 0.8}),
        ("global", {"use_global_stats": "True"}),
        ("eps_below_0", {"fix_gamma": "False", "eps": -0.25}),
    ]:
        yield case(op, name, lambda v: arrays(v, 4, 3, 2, 2), dict(attrs, key="bn"))
    op = "Pooling_v1"
    for name, attrs in [
        ("max", {"kernel": "(2, 2)", "stride": "(2, 2)"}),
        ("max_of_zeros", {"kernel": "(3, 3)", "stride": "(2, 2)", "pad": "(1, 1)"}),
        ("avg", {"kernel": "(3, 2)", "stride": "(2, 1)", "pad": "(1, 1)", "pool_type": "avg"}),
        ("sum", {"kernel": "(2, 2)", "pool_type": "sum"}),
        ("max_wide_pad", {"kernel": "(1, 2)", "stride": "(2, 2)", "pad": "(1, 3)"}),
        ("avg_wide_pad", {"kernel": "(3, 2)", "stride": "(2, 1)", "pad": "(3, 2)", "pool_type": "avg"}),
        ("sum_wide_pad", {"kernel": "(2, 2)", "stride": "(2, 2)", "pad": "(3, 4)", "pool_type": "sum"}),
        ("avg_rounded_up", {"kernel": "(3, 3)", "stride": "(2, 2)", "pool_type": "avg", "pooling_convention": "full"}),
        ("global", {"kernel": "(1, 1)", "global_pool": "True", "pool_type": "avg"}),
        ("global_max", {"kernel": "(2, 2)", "global_pool": "True"}),
    ]:
        yield case(op, name, lambda v: {"data": v.distinct(2, 2, 6, 6)}, attrs)
    yield case(op, "bad_rank", lambda v: {"data": v.real(2, 2, 6)}, {"kernel": "(2,)"}, expect_error=True)


def cases():
    for each in [
        attention_cases,
        resize_cases,
        window_cases,
        index_cases,
        split_cases,
        histogram_cases,
        function_cases,
        layer_cases,
    ]:
        yield from each()
