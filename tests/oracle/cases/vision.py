"""Regions of images, and images sampled at computed coordinates."""

import numpy as np

from .common import FLOATS, case


def region_cases():
    op = "ROIPooling"
    regions = [[0, 0, 0, 4, 4], [1, 1, 2, 6, 5], [0, 3, 3, 1, 1], [1, 6, 4, 12, 9], [0, 20, 20, 30, 30]]

    def arrays(rois=regions, dtype="float32", shape=(2, 3, 6, 8)):
        return lambda v: {"data": v.distinct(*shape, dtype=dtype), "rois": np.array(rois, dtype)}

    square = {"pooled_size": "(2, 2)", "spatial_scale": "1"}
    for dtype in FLOATS:
        yield case(op, dtype, arrays(dtype=dtype), square)
    yield case(op, "scaled", arrays(), dict(square, spatial_scale="0.5"))
    yield case(op, "rounded", arrays([[0, 0.5, 1.5, 4.5, 4.25], [1, 2.5, 2.5, 3.5, 3.5]]), square)
    yield case(op, "uneven", arrays(), dict(square, pooled_size="(3, 2)", spatial_scale="0.75"))
    yield case(op, "smaller_than_cells", arrays([[0, 2, 2, 3, 3]]), dict(square, pooled_size="(7, 7)"))
    yield case(op, "before_the_image", arrays([[1, -9, -9, -5, -5], [0, -3, -2, 2, 1]]), square)
    yield case(op, "add", arrays(), square, grad_req="add")
    yield case(op, "bad_rois", arrays([[0, 1, 2, 3]]), square, expect_error=True)
    yield case(op, "bad_scale", arrays(), dict(square, spatial_scale="2"), expect_error=True)
    yield case(op, "bad_size", arrays(), dict(square, pooled_size="(0, 2)"), expect_error=True)


def affine(v, batch, dtype="float32"):
    """Matrices that keep most points inside and none on a pixel."""
    plain = np.array([0.75, 0.125, 0.0625, -0.125, 0.8125, -0.03125])
    return (plain + v.real(batch, 6, low=-0.25, high=0.25) / 4).astype(dtype)


def grid_cases():
    op = "GridGenerator"
    affine_grid = {"transform_type": "affine", "target_shape": "(3, 4)"}
    yield case(op, "affine", lambda v: {"data": affine(v, 2)}, affine_grid)
    yield case(op, "affine_add", lambda v: {"data": affine(v, 2)}, affine_grid, grad_req="add")
    yield case(op, "warp", lambda v: {"data": v.real(2, 2, 3, 4)}, {"transform_type": "warp"})
    yield case(op, "warp_add", lambda v: {"data": v.real(1, 2, 2, 3)}, {"transform_type": "warp"}, grad_req="add")
    for name, shape, attrs in [
        ("bad_matrix", (2, 5), affine_grid),
        ("bad_flow", (2, 3, 3, 4), {"transform_type": "warp"}),
        ("no_target", (2, 6), {"transform_type": "affine"}),
    ]:
        yield case(op, name, lambda v, shape=shape: {"data": v.real(*shape)}, attrs, expect_error=True)


def sampler_cases():
    op = "BilinearSampler"

    def arrays(shape=(2, 3, 4, 5), grid=(2, 2, 3, 4), reach=1.0, dtype="float32"):
        return lambda v: {
            "data": v.real(*shape, dtype=dtype),
            # Odd multiples of 1/128: no point is a pixel.
            "grid": (v.real(*grid, low=-reach, high=reach) + 1 / 128).astype(dtype),
        }

    for dtype in FLOATS:
        yield case(op, dtype, arrays(dtype=dtype))
    yield case(op, "beyond_the_edges", arrays(reach=2.0), {"cudnn_off": "True"})
    yield case(op, "larger", arrays((1, 2, 3, 3), (1, 2, 5, 7)))
    yield case(op, "add", arrays(), grad_req="add")
    yield case(op, "bad_batch", arrays((2, 3, 4, 5), (1, 2, 3, 4)), expect_error=True)
    yield case(op, "bad_grid", arrays((2, 3, 4, 5), (2, 3, 3, 4)), expect_error=True)


def transformer_cases():
    op = "SpatialTransformer"
    kind = {"transform_type": "affine", "sampler_type": "bilinear", "target_shape": "(3, 4)"}

    def arrays(shape=(2, 3, 4, 5), factor=1, dtype="float32"):
        return lambda v: {"data": v.real(*shape, dtype=dtype), "loc": (affine(v, shape[0]) * factor).astype(dtype)}

    for dtype in FLOATS:
        yield case(op, dtype, arrays(dtype=dtype), kind)
    yield case(op, "beyond_the_edges", arrays(factor=1.75), dict(kind, cudnn_off="False"))
    yield case(op, "larger", arrays((1, 1, 3, 3)), dict(kind, target_shape="(7, 6)"))
    yield case(op, "add", arrays(), kind, grad_req="add")
    yield case(op, "no_target", arrays(), {k: v for k, v in kind.items() if k != "target_shape"}, expect_error=True)


def correlation_cases():
    op = "Correlation"

    def images(*shape, dtype="float32"):
        return lambda v: {"data1": v.distinct(*shape, dtype=dtype), "data2": v.distinct(*shape, dtype=dtype)}

    for dtype in FLOATS:
        yield case(op, dtype, images(2, 3, 4, 5, dtype=dtype))
    for name, shape, attrs in [
        ("patches", (1, 2, 6, 7), {"kernel_size": "3"}),
        ("far", (1, 2, 6, 6), {"max_displacement": "2"}),
        ("padded", (1, 2, 3, 4), {"pad_size": "2", "max_displacement": "2"}),
        ("steps", (1, 2, 8, 9), {"stride1": "2", "max_displacement": "2", "stride2": "2"}),
        (
            "all",
            (2, 2, 5, 6),
            {"kernel_size": "3", "max_displacement": "3", "stride1": "2", "stride2": "2", "pad_size": 4},
        ),
        ("in_place", (1, 2, 3, 4), {"max_displacement": "0"}),
        ("distance", (1, 2, 5, 5), {"is_multiply": "False", "pad_size": "1"}),
    ]:
        yield case(op, name, images(*shape), attrs)
    yield case(op, "add", images(1, 2, 4, 4), grad_req="add")
    yield case(op, "even_patches", images(1, 2, 6, 6), {"kernel_size": "2"}, expect_error=True)
    yield case(op, "too_small", images(1, 2, 2, 2), expect_error=True)


def cases():
    for family in (region_cases, grid_cases, sampler_cases, transformer_cases, correlation_cases):
        yield from family()
