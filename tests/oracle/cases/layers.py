"""Leaky rectifiers, normalizations, products of many matrices."""

import numpy as np

from .common import DTYPES, FLOATS, case


def leaky_cases():
    op = "LeakyReLU"

    def data(*shape, dtype="float32"):
        return lambda v: {"data": v.nonzero(*shape, dtype=dtype, low=-3, high=3)}

    for act in ("leaky", "elu", "selu", "gelu"):
        for dtype in FLOATS:
            yield case(op, act + "_" + dtype, data(3, 4, dtype=dtype), {"act_type": act})
        yield case(op, act + "_slope", data(3, 4), {"act_type": act, "slope": "0.75"})
        yield case(op, act + "_images", data(2, 3, 2, 2), {"act_type": act})
        yield case(op, act + "_add", data(2, 5), {"act_type": act}, grad_req="add")
    yield case(op, "default", data(3, 4))
    yield case(op, "bad", data(3, 4), {"act_type": "relu"}, expect_error=True)

    def with_gamma(shape, channels, dtype="float32"):
        return lambda v: {
            "data": v.nonzero(*shape, dtype=dtype, low=-3, high=3),
            "gamma": v.real(channels, dtype=dtype, low=0, high=1),
        }

    prelu = {"act_type": "prelu"}
    for dtype in FLOATS:
        yield case(op, "prelu_" + dtype, with_gamma((3, 4), 4, dtype), prelu)
    yield case(op, "prelu_one", with_gamma((3, 4), 1), prelu)
    yield case(op, "prelu_images", with_gamma((2, 3, 2, 2), 3), prelu)
    yield case(op, "prelu_images_one", with_gamma((2, 3, 2, 2), 1), prelu)
    yield case(op, "prelu_add", with_gamma((3, 4), 4), prelu, grad_req="add")


def normalization_cases():
    def data(*shape, dtype="float32"):
        return lambda v: {"data": v.nonzero(*shape, dtype=dtype)}

    op = "L2Normalization"
    for mode in ("instance", "channel", "spatial"):
        for dtype in FLOATS:
            yield case(op, mode + "_" + dtype, data(2, 3, 4, dtype=dtype), {"mode": mode})
        yield case(op, mode + "_images", data(2, 3, 2, 2), {"mode": mode})
        yield case(op, mode + "_eps", data(2, 3, 4), {"mode": mode, "eps": "0.5"})
    yield case(op, "rows", data(3, 4))
    yield case(op, "add", data(3, 4), grad_req="add")
    yield case(op, "channel_of_rows", data(3, 4), {"mode": "channel"}, expect_error=True)

    op = "LRN"
    for dtype in FLOATS:
        yield case(op, dtype, data(2, 5, 2, 2, dtype=dtype), {"nsize": "3", "alpha": "0.5"})
    for name, attrs in [
        ("default", {"nsize": "5"}),
        ("beta", {"nsize": "3", "beta": "0.5", "alpha": "0.75"}),
        ("knorm", {"nsize": "3", "knorm": "1", "alpha": "0.75"}),
        ("one", {"nsize": "1", "alpha": "0.75"}),
        ("even", {"nsize": "2", "alpha": "0.75"}),
        ("four", {"nsize": "4", "alpha": "0.75"}),
    ]:
        yield case(op, name, data(1, 6, 2, 3), attrs)
    yield case(op, "add", data(1, 4, 2, 2), {"nsize": "3"}, grad_req="add")

    def scaled(shape, extent, dtype="float32"):
        return lambda v: {
            "data": v.real(*shape, dtype=dtype, low=-3, high=3),
            "gamma": v.nonzero(extent, dtype=dtype),
            "beta": v.real(extent, dtype=dtype),
        }

    op = "InstanceNorm"
    for dtype in FLOATS:
        yield case(op, dtype, scaled((2, 3, 5), 3, dtype))
    yield case(op, "images", scaled((2, 3, 2, 4), 3))
    yield case(op, "eps", scaled((2, 3, 5), 3), {"eps": "0.5"})
    yield case(op, "add", scaled((2, 3, 5), 3), grad_req="add")
    yield case(op, "bad_gamma", scaled((2, 3, 5), 4), expect_error=True)

    op = "LayerNorm"
    for dtype in FLOATS:
        yield case(op, dtype, scaled((3, 5), 5, dtype))
    for name, shape, extent, attrs in [
        ("three", (2, 3, 5), 5, {}),
        ("axis1", (2, 4, 3), 4, {"axis": "1"}),
        ("axis_negative", (2, 4, 3), 4, {"axis": "-2"}),
        ("eps", (3, 5), 5, {"eps": "0.5"}),
    ]:
        yield case(op, name, scaled(shape, extent), attrs)
    yield case(op, "statistics", scaled((3, 5), 5), {"output_mean_var": "True"}, grad_req="null")
    yield case(op, "add", scaled((3, 5), 5), grad_req="add")
    yield case(op, "bad_gamma", scaled((2, 5), 4), expect_error=True)

    op = "GroupNorm"
    two = {"num_groups": "2"}
    for dtype in FLOATS:
        yield case(op, dtype, scaled((2, 4, 3), 2, dtype), two)
    yield case(op, "one", scaled((2, 3, 5), 1))
    yield case(op, "each_channel", scaled((2, 3, 5), 3), {"num_groups": "3"})
    yield case(op, "images", scaled((2, 4, 2, 3), 2), two)
    yield case(op, "eps", scaled((2, 4, 3), 2), dict(two, eps="0.5"))
    yield case(op, "statistics", scaled((2, 4, 3), 2), dict(two, output_mean_var="True"), grad_req="null")
    yield case(op, "add", scaled((2, 4, 3), 2), two, grad_req="add")
    yield case(op, "bad_groups", scaled((2, 4, 3), 3), {"num_groups": "3"}, expect_error=True)
    yield case(op, "rows", scaled((3, 4), 2), two, expect_error=True)


def product_cases():
    op = "batch_dot"

    def pair(a, b, dtype="float32"):
        return lambda v: {"lhs": v.real(*a, dtype=dtype), "rhs": v.real(*b, dtype=dtype)}

    for dtype in DTYPES:
        yield case(op, dtype, pair((2, 3, 4), (2, 4, 5), dtype))
    for ta in (False, True):
        for tb in (False, True):
            a = (2, 4, 3) if ta else (2, 3, 4)
            b = (2, 5, 4) if tb else (2, 4, 5)
            yield case(op, "transposed_%d%d" % (ta, tb), pair(a, b), {"transpose_a": ta, "transpose_b": tb})
    yield case(op, "four_axes", pair((2, 2, 3, 4), (2, 2, 4, 1)))
    yield case(op, "stype", pair((2, 3, 4), (2, 4, 5)), {"forward_stype": "default"})
    yield case(op, "add", pair((1, 3, 4), (1, 4, 5)), grad_req="add")
    yield case(op, "bad_batch", pair((1, 3, 4), (2, 4, 5)), expect_error=True)
    yield case(op, "bad_inner", pair((2, 3, 4), (2, 3, 5)), expect_error=True)
    yield case(op, "zeros", lambda v: {"lhs": np.zeros((2, 1, 1), "float32"), "rhs": v.real(2, 1, 1)})


def deconvolution_cases():
    op = "Deconvolution"

    def arrays(data, weight, bias=None, dtype="float32"):
        def make(v):
            made = {"data": v.real(*data, dtype=dtype), "weight": v.real(*weight, dtype=dtype)}
            if bias:
                made["bias"] = v.real(bias, dtype=dtype)
            return made

        return make

    square = {"kernel": "(3, 3)", "num_filter": "4"}
    for dtype in FLOATS:
        yield case(op, dtype, arrays((2, 3, 4, 5), (3, 4, 3, 3), dtype=dtype), square)
    for name, data, weight, bias, attrs in [
        ("bias", (2, 3, 4, 5), (3, 4, 3, 3), 4, dict(square, no_bias="False")),
        ("stride", (2, 3, 3, 4), (3, 4, 3, 3), None, dict(square, stride="(2, 2)")),
        ("pad", (2, 3, 4, 5), (3, 4, 3, 3), None, dict(square, pad="(1, 1)")),
        ("stride_pad", (1, 3, 4, 5), (3, 4, 3, 3), None, dict(square, stride="(2, 2)", pad="(1, 1)")),
        ("adj", (1, 3, 4, 5), (3, 4, 3, 3), None, dict(square, stride="(2, 2)", pad="(1, 1)", adj="(1, 1)")),
        ("adj_bias", (1, 3, 3, 3), (3, 4, 3, 3), 4, dict(square, stride="(2, 2)", adj="(1, 0)", no_bias="False")),
        ("dilate", (1, 2, 4, 4), (2, 4, 3, 3), None, dict(square, dilate="(2, 2)")),
        (
            "target",
            (1, 2, 5, 5),
            (2, 4, 4, 4),
            None,
            dict(square, kernel="(4, 4)", stride="(2, 2)", target_shape="(10, 10)"),
        ),
        ("target_odd", (1, 2, 5, 5), (2, 4, 3, 3), None, dict(square, stride="(2, 2)", target_shape="(10, 10)")),
        ("groups", (1, 4, 3, 3), (4, 2, 3, 3), None, dict(square, num_group="2")),
        (
            "each_channel",
            (1, 4, 3, 3),
            (4, 1, 4, 4),
            None,
            dict(square, kernel="(4, 4)", num_group="4", stride="(2, 2)", pad="(1, 1)"),
        ),
        ("line", (2, 3, 5), (3, 4, 3), None, {"kernel": "(3,)", "num_filter": "4", "stride": "(2,)"}),
        (
            "line_without_target",
            (2, 3, 5),
            (3, 4, 3),
            None,
            {"kernel": "(3,)", "num_filter": "4", "stride": "(2,)", "target_shape": "(0, 0)"},
        ),
        ("negative_workspace", (1, 3, 4, 4), (3, 4, 3, 3), None, dict(square, workspace="-1")),
        ("layout", (1, 3, 4, 4), (3, 4, 3, 3), None, dict(square, layout="NCHW")),
        ("ignored", (1, 3, 4, 4), (3, 4, 3, 3), None, dict(square, workspace="1", cudnn_tune="off", cudnn_off="True")),
    ]:
        yield case(op, name, arrays(data, weight, bias), attrs)
    yield case(op, "add", arrays((1, 3, 4, 4), (3, 4, 3, 3), 4), dict(square, no_bias="False"), grad_req="add")
    yield case(op, "bad_weight", arrays((1, 3, 4, 4), (4, 3, 3, 3)), square, expect_error=True)


def upsampling_cases():
    op = "UpSampling"

    def images(*shapes, dtype="float32"):
        return lambda v: {"arg%d" % i: v.real(*s, dtype=dtype) for i, s in enumerate(shapes)}

    nearest = {"sample_type": "nearest", "scale": "2"}
    for dtype in FLOATS:
        yield case(op, dtype, images((1, 2, 2, 3), dtype=dtype), dict(nearest, num_args="1"))
    yield case(op, "three_times", images((2, 1, 2, 2)), {"sample_type": "nearest", "scale": "3", "num_args": "1"})
    yield case(op, "ignored", images((2, 1, 2, 2)), dict(nearest, num_args="1", workspace="1", num_filter="2"))
    yield case(op, "negative", images((2, 1, 2, 2)), dict(nearest, num_args="1", workspace="-1", num_filter="-1"))
    two = dict(nearest, num_args="2")
    yield case(op, "joined", images((1, 2, 4, 4), (1, 3, 2, 2)), two)
    yield case(op, "added", images((1, 2, 4, 4), (1, 2, 2, 2)), dict(two, multi_input_mode="sum"))
    yield case(op, "add", images((1, 2, 2, 2)), dict(nearest, num_args="1"), grad_req="add")

    def spread(data, kernel, dtype="float32"):
        return lambda v: {
            "data": v.real(*data, dtype=dtype),
            "weight": v.real(data[1], 1, kernel, kernel, dtype=dtype),
        }

    def bilinear(scale, channels):
        return {"sample_type": "bilinear", "scale": scale, "num_filter": channels, "num_args": "2"}

    for dtype in FLOATS:
        yield case(op, "bilinear_" + dtype, spread((2, 3, 2, 4), 4, dtype), bilinear(2, 3))
    yield case(op, "bilinear_three_times", spread((1, 2, 3, 2), 5), bilinear(3, 2))
    yield case(op, "bilinear_four_times", spread((1, 1, 2, 2), 8), bilinear(4, 1))
    yield case(op, "bilinear_once", spread((1, 2, 2, 2), 1), bilinear(1, 2))
    yield case(op, "bilinear_counts_one", spread((1, 2, 2, 3), 4), dict(bilinear(2, 2), num_args="1"))
    yield case(op, "bilinear_add", spread((1, 2, 2, 3), 4), bilinear(2, 2), grad_req="add")
    yield case(op, "bilinear_bad_weight", spread((1, 2, 2, 3), 3), bilinear(2, 2), expect_error=True)


def sparse_cases():
    op = "IdentityAttachKLSparseReg"

    def arrays(*shape, dtype="float32"):
        return lambda v: {
            "data": v.real(*shape, dtype=dtype, low=0, high=1),
            "moving_avg": v.real(shape[1], dtype=dtype, low=0.25, high=0.75),
        }

    yield case(op, "default", arrays(3, 4))
    for name, attrs in [
        ("target", {"sparseness_target": "0.25"}),
        ("penalty", {"penalty": "0.5"}),
        ("momentum", {"momentum": "0.25"}),
    ]:
        yield case(op, name, arrays(3, 4), attrs)
    yield case(op, "add", arrays(2, 5), {"penalty": "0.125"}, grad_req="add")
    yield case(op, "bad_momentum", arrays(3, 4), {"momentum": "2"}, expect_error=True)


def cases():
    for family in (
        leaky_cases,
        normalization_cases,
        product_cases,
        deconvolution_cases,
        upsampling_cases,
        sparse_cases,
    ):
        for one in family():
            if one["attrs"].get("act_type") == "selu":
                one["quirk"] = "the gradient is not the slope"
            yield one
