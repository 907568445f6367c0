"""Proposals, anchors, boxes, and regions and windows that are read between pixels."""

import numpy as np

from .common import FLOATS, case


def proposal_arrays(images=1, anchors=3, rows=4, columns=5, info=(16, 20, 1), spread=0.25, dtype="float32"):
    def make(v):
        # Every score different: the order of equal ones is not MXNet's to keep.
        scores = v.rng.permutation(images * 2 * anchors * rows * columns) / 1024.0
        return {
            "cls_prob": scores.reshape(images, 2 * anchors, rows, columns).astype(dtype),
            "bbox_pred": (v.real(images, 4 * anchors, rows, columns) * spread).astype(dtype),
            "im_info": np.array([info] * images, dtype),
        }

    return make


def proposal_cases():
    small = {"scales": "(4,)", "feature_stride": "4", "rpn_post_nms_top_n": "8", "rpn_min_size": "2"}
    for op in ("_contrib_Proposal", "_contrib_MultiProposal"):
        images = 1 if op == "_contrib_Proposal" else 3
        for name, attrs, arrays in [
            ("boxes", {}, {}),
            ("scores", {"output_score": "True"}, {}),
            ("few_searched", {"rpn_pre_nms_top_n": "12", "output_score": "True"}, {}),
            ("all_searched", {"rpn_pre_nms_top_n": "-1", "threshold": "0.4", "output_score": "1"}, {}),
            ("repeated", {"rpn_post_nms_top_n": "40", "threshold": "0.1", "output_score": "True"}, {}),
            ("least_size", {"rpn_min_size": "9", "output_score": "True", "rpn_post_nms_top_n": "30"}, {}),
            ("scaled", {"rpn_min_size": "5", "output_score": "True"}, {"info": (16, 20, 2)}),
            ("padded_image", {"output_score": "True", "rpn_post_nms_top_n": "20"}, {"info": (9.5, 11, 1)}),
            ("iou_loss", {"iou_loss": "True", "output_score": "True"}, {"spread": 2}),
            ("ratios", {"ratios": "(0.3, 1, 2.7)", "scales": "(2, 3.5)"}, {"anchors": 6}),
            (
                "stride",
                {"feature_stride": "7", "scales": "(1, 2)", "ratios": "(1,)"},
                {"anchors": 2, "info": (28, 35, 1)},
            ),
        ]:
            grad_req = "write" if name == "boxes" else "null"  # gradients are zero
            yield case(op, name, proposal_arrays(images, **arrays), dict(small, **attrs), grad_req=grad_req)
        yield case(
            op,
            "anchors_without_offsets",
            proposal_arrays(images, spread=0),
            dict(small, threshold="1"),
            grad_req="null",
        )
        yield case(op, "no_rows", proposal_arrays(images), dict(small, rpn_post_nms_top_n="0"), grad_req="null")
        yield case(op, "add", proposal_arrays(images), small, grad_req="add")
        yield case(op, "bad_anchors", proposal_arrays(images, anchors=2), small, expect_error=True)
    yield case("_contrib_Proposal", "batch", proposal_arrays(2), small, expect_error=True)


REGIONS = [[0, 0, 0, 9, 7], [1, 2.25, 1.25, 12.25, 10.75], [0, 3.25, 3.25, 3.25, 3.25], [1, 8.25, 6.25, 30.75, 20.25]]


def psroi_cases():
    op = "_contrib_PSROIPooling"

    def arrays(channels=8, regions=REGIONS, dtype="float32"):
        return lambda v: {"data": v.real(2, channels, 6, 7, dtype=dtype), "rois": np.array(regions, dtype)}

    plain = {"spatial_scale": "0.5", "output_dim": "2", "pooled_size": "2"}
    for dtype in FLOATS:
        yield case(op, dtype, arrays(dtype=dtype), plain)
    yield case(op, "group", arrays(), dict(plain, group_size="2", pooled_size="3"))
    yield case(op, "large_group", arrays(18), dict(plain, group_size="3", pooled_size="2"))
    yield case(op, "one_group", arrays(2), dict(plain, group_size="1", pooled_size="3", spatial_scale="0.61"))
    yield case(op, "rounded", arrays(regions=[[0, 0.5, 1.5, 4.5, 6.5], [1, 2.5, 2.5, 3.5, 3.5]]), plain)
    yield case(op, "before_the_image", arrays(regions=[[1, -20, -20, -9, -9], [0, -6, -5, 5, 3]]), plain)
    yield case(op, "backwards", arrays(regions=[[1, 9, 8, 2, 1]]), plain)
    yield case(op, "add", arrays(), plain, grad_req="add")
    yield case(op, "bad_rois", arrays(regions=[[0, 1, 2, 3]]), plain, expect_error=True)


def deformable_psroi_cases():
    op = "_contrib_DeformablePSROIPooling"

    def arrays(channels=8, classes=1, parts=2, regions=REGIONS, dtype="float32"):
        return lambda v: {
            "data": v.real(2, channels, 6, 7, dtype=dtype),
            "rois": np.array(regions, dtype),
            "trans": v.real(len(regions), 2 * classes, parts, parts, dtype=dtype),
        }

    plain = {"spatial_scale": "0.49", "output_dim": "2", "pooled_size": "2", "group_size": "2", "trans_std": "0.13"}
    for dtype in ("float32", "float64"):  # MXNet computes with float16 coordinates in float16
        yield case(op, dtype, arrays(dtype=dtype), plain)
    yield case(op, "samples", arrays(), dict(plain, sample_per_part="3"))
    yield case(op, "classes", arrays(classes=2), dict(plain, sample_per_part="2"))
    yield case(op, "parts", arrays(2, parts=3), dict(plain, group_size="1", pooled_size="4", part_size="3"))
    yield case(op, "large_group", arrays(18, parts=2), dict(plain, group_size="3", sample_per_part="2"))
    yield case(op, "before_the_image", arrays(regions=[[1, -20, -20, -9, -9], [0, -6, -5, 5, 3]]), plain)
    yield case(op, "add", arrays(), plain, grad_req="add")

    def without(v):
        return {"data": v.real(2, 8, 6, 7), "rois": np.array(REGIONS, "float32")}

    yield case(op, "no_trans", without, dict(plain, no_trans="True", sample_per_part="2"))


def deformable_convolution_cases():
    op = "_contrib_DeformableConvolution"

    def arrays(channels=4, filters=2, groups=1, offset_groups=1, kernel=(2, 3), out=(4, 3), bias=True, dtype="float32"):
        def make(v):
            taps = kernel[0] * kernel[1]
            made = {
                "data": v.real(2, channels, 5, 5, dtype=dtype),
                # Odd multiples of 1/128: no point is a pixel.
                "offset": (v.real(2, offset_groups * 2 * taps, *out) + 1 / 128).astype(dtype),
                "weight": v.real(filters, channels // groups, *kernel, dtype=dtype),
            }
            if bias:
                made["bias"] = v.real(filters, dtype=dtype)
            return made

        return make

    plain = {"kernel": "(2, 3)", "num_filter": "2"}
    for dtype in ("float32", "float64"):
        yield case(op, dtype, arrays(dtype=dtype), plain)
    for name, attrs, extents in [
        ("no_bias", {"no_bias": "True"}, {"bias": False}),
        ("groups", {"num_group": "2", "num_filter": "4"}, {"groups": 2, "filters": 4}),
        ("offset_groups", {"num_deformable_group": "2"}, {"offset_groups": 2}),
        (
            "both_groups",
            {"num_deformable_group": "4", "num_group": "2"},
            {"offset_groups": 4, "groups": 2},
        ),
        ("stride", {"stride": "(2, 1)", "pad": "(1, 2)"}, {"out": (3, 7)}),
        ("dilate", {"dilate": "(2, 2)", "pad": "(1, 0)"}, {"out": (5, 1)}),
        ("one", {"kernel": "(1, 1)", "workspace": "512", "layout": "NCHW"}, {"kernel": (1, 1), "out": (5, 5)}),
    ]:
        yield case(op, name, arrays(**extents), dict(plain, **attrs))
    yield case(op, "add", arrays(), plain, grad_req="add")
    yield case(op, "bad_offset", arrays(out=(3, 3)), plain, expect_error=True)
    yield case(op, "bad_groups", arrays(groups=3), dict(plain, num_group="3"), expect_error=True)
    yield case(op, "bad_kernel", arrays(), dict(plain, kernel="(3,)"), expect_error=True)


def prior_cases():
    op = "_contrib_MultiBoxPrior"

    def arrays(*shape):
        return lambda v: {"data": v.real(*shape)}

    for name, attrs in [
        ("plain", {}),
        ("sizes", {"sizes": "(0.5, 0.25)", "ratios": "(1, 2, 0.5)"}),
        ("first_ratio", {"sizes": "(0.5, 0.3)", "ratios": "(2, 0.5)"}),
        ("clip", {"sizes": "(1.5, 0.1)", "clip": "True"}),
        ("steps", {"steps": "(0.3, 0.2)", "offsets": "(0.1, 0.9)", "sizes": "(0.2,)"}),
        ("no_steps", {"steps": "(0, -2)"}),
    ]:
        yield case(op, name, arrays(2, 3, 2, 3), attrs)
    yield case(op, "tall", arrays(1, 1, 5, 2), {"sizes": "(0.4, 0.2)", "ratios": "(1, 3)"})
    for name, attrs in [("bad_steps", {"steps": "(0.3, -1)"}), ("no_sizes", {"sizes": "()"})]:
        yield case(op, name, arrays(1, 1, 2, 2), attrs, expect_error=True)
    yield case(op, "bad_data", arrays(2, 3, 4), expect_error=True)


def grid_anchors(v, rows=4, columns=5):
    """Anchors of several sizes, a little moved: overlaps differ."""
    y, x = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij")
    boxes = []
    for height, width in [(0.4, 0.4), (0.25, 0.5)]:
        boxes.append(np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], -1).reshape(-1, 4))
    anchors = np.concatenate(boxes)
    return (anchors + v.real(*anchors.shape, low=-1, high=1) / 50).astype("float32")[None]


def target_cases():
    op = "_contrib_MultiBoxTarget"

    def arrays(images=2, objects=3, width=5, labels=None):
        def make(v):
            anchors = grid_anchors(v)
            found = -np.ones((images, objects, width))
            for image in range(images):
                for i in range(objects - image):
                    x, y = v.rng.rand(2) * 0.6
                    w, h = 0.15 + v.rng.rand(2) * 0.3
                    found[image, i, :5] = [i % 2, x, y, x + w, y + h]
            found = np.array(labels) if labels is not None else found
            return {
                "anchor": anchors,
                "label": found.astype("float32"),
                "cls_pred": v.real(len(found), 3, anchors.shape[1]) + v.real(len(found), 3, anchors.shape[1]) / 64,
            }

        return make

    for name, attrs, extents in [
        ("plain", {}, {}),
        ("threshold", {"overlap_threshold": "0.3"}, {}),
        ("objects_alone", {"overlap_threshold": "-1"}, {}),
        ("mining", {"negative_mining_ratio": "2"}, {}),
        ("mining_threshold", {"negative_mining_ratio": "3", "negative_mining_thresh": "0.05"}, {}),
        ("mining_fraction", {"negative_mining_ratio": "1.5", "overlap_threshold": "0.4", "ignore_label": "-7"}, {}),
        ("mining_few", {"negative_mining_ratio": "0.25"}, {}),
        ("mining_all", {"negative_mining_ratio": "1000"}, {}),
        ("mining_below_zero", {"negative_mining_ratio": "0.25", "minimum_negative_samples": "-3"}, {}),
        ("variances", {"variances": "(1, 0.5, 0.25, 2)"}, {}),
        ("variances_below_0", {"variances": "(-1, 0.5, -0.25, 2)"}, {}),
        ("wide_labels", {}, {"width": 7}),
        ("many_objects", {"overlap_threshold": "0.25"}, {"objects": 9}),
        ("no_objects", {"ignore_label": "-3", "negative_mining_ratio": "1"}, {"labels": [[[-1] * 5] * 2]}),
        ("apart", {"negative_mining_ratio": "3"}, {"labels": [[[1, 3, 3, 4, 4], [0, 0.1, 0.1, 0.5, 0.5]]]}),
        ("none_matched", {"negative_mining_ratio": "3"}, {"labels": [[[1, 3, 3, 4, 4]]]}),
        ("in_one_place", {}, {"labels": [[[0, 0.1, 0.1, 0.5, 0.5], [1, 0.1, 0.1, 0.5, 0.5]]]}),
        ("ends_at_padding", {}, {"labels": [[[0, 0.1, 0.1, 0.5, 0.5], [-1] * 5, [1, 0.4, 0.4, 0.9, 0.9]]]}),
    ]:
        yield case(op, name, arrays(**extents), attrs, grad_req="write" if name == "plain" else "null")
    yield case(op, "bad_labels", arrays(labels=[[[0, 0.1, 0.1, 0.5]]]), expect_error=True)
    yield case(op, "bad_variances", arrays(), {"variances": "(1, 1)"}, expect_error=True)


def detection_cases():
    op = "_contrib_MultiBoxDetection"

    def arrays(images=2, classes=4):
        def make(v):
            anchors = grid_anchors(v)
            scores = v.rng.permutation(images * classes * anchors.shape[1]).reshape(images, classes, -1) / 512.0
            return {
                "cls_prob": scores.astype("float32"),
                "loc_pred": v.real(images, 4 * anchors.shape[1], low=-1, high=1),
                "anchor": anchors,
            }

        return make

    for name, attrs in [
        ("plain", {}),
        ("threshold", {"threshold": "0.4"}),
        ("none", {"threshold": "100"}),
        ("not_clipped", {"clip": "False"}),
        ("overlap", {"nms_threshold": "0.2"}),
        ("all_classes", {"nms_threshold": "0.2", "force_suppress": "True"}),
        ("best", {"nms_topk": "7", "threshold": "0.2"}),
        ("not_suppressed", {"nms_threshold": "0", "threshold": "0.3"}),
        ("not_suppressed_either", {"nms_threshold": "1.5", "nms_topk": "5"}),
        ("variances", {"variances": "(0.3, 0.1, 0.5, 0.2)"}),
        ("no_variances", {"variances": "(0, 0, 0, 0)"}),
        ("variances_below_0", {"variances": "(-0.3, 0.1, -0.5, 0.2)"}),
        ("background", {"background_id": "1"}),
    ]:
        yield case(op, name, arrays(), attrs, grad_req="write" if name == "plain" else "null")
    yield case(op, "add", arrays(), grad_req="add")

    def mismatched(v):
        return dict(arrays()(v), loc_pred=v.real(2, 12))

    yield case(op, "bad_locations", mismatched, expect_error=True)


def align_cases():
    op = "_contrib_ROIAlign"

    def arrays(channels=3, regions=REGIONS, dtype="float32"):
        # No point on a pixel, where the derivative jumps in another type.
        return lambda v: {"data": v.real(2, channels, 6, 7, dtype=dtype), "rois": np.array(regions, dtype)}

    plain = {"pooled_size": "(2, 3)", "spatial_scale": "0.5"}
    for dtype in FLOATS:
        yield case(op, dtype, arrays(dtype=dtype), plain)
    for name, attrs, extents in [
        ("samples", {"sample_ratio": "2"}, {}),
        ("many_samples", {"sample_ratio": "3", "spatial_scale": "0.37"}, {}),
        ("aligned", {"aligned": "True", "spatial_scale": "0.4"}, {"regions": REGIONS[:2]}),
        ("aligned_samples", {"aligned": "True", "sample_ratio": "2"}, {"regions": REGIONS[1:2]}),
        ("position_sensitive", {"position_sensitive": "True"}, {"channels": 12}),
        ("position_sensitive_samples", {"position_sensitive": "True", "sample_ratio": "2"}, {"channels": 6}),
        ("large", {"pooled_size": "(5, 4)", "spatial_scale": "1"}, {}),
        ("no_image", {}, {"regions": [[-1, 0, 0, 5, 5], [1, 1.25, 1.25, 5.25, 6.25]]}),
        ("outside", {}, {"regions": [[0, -9, -9.25, -5, -5], [1, -3.25, -2.25, 4.25, 5.25], [0, 40, 40, 50, 50]]}),
        ("backwards", {}, {"regions": [[0, 9.25, 8.25, 2.25, 1.25]]}),
    ]:
        yield case(op, name, arrays(**extents), dict(plain, **attrs))
    yield case(op, "add", arrays(), plain, grad_req="add")
    yield case(op, "bad_rois", arrays(regions=[[0, 1, 2, 3]]), plain, expect_error=True)
    yield case(op, "bad_size", arrays(), dict(plain, pooled_size="(2,)"), expect_error=True)


def rotated_cases():
    op = "_contrib_RROIAlign"
    regions = [[0, 3, 3, 4, 3, 30], [1, 2.3, 4.1, 5, 7, -75], [1, 1, 1, 0.2, 0.3, 10], [0, 9, 9, 6, 6, 45]]

    def arrays(rois=regions, dtype="float32"):
        return lambda v: {"data": v.real(2, 2, 6, 7, dtype=dtype), "rois": np.array(rois, dtype)}

    plain = {"pooled_size": "(2, 3)", "spatial_scale": "1"}
    for dtype in ("float32", "float64"):  # MXNet computes with float16 coordinates in float16
        yield case(op, dtype, arrays(dtype=dtype), plain, grad_req="null")
    yield case(op, "samples", arrays(), dict(plain, sampling_ratio="2", spatial_scale="0.5"), grad_req="null")
    yield case(op, "bad_rois", arrays([[0, 1, 2, 3, 4]]), plain, grad_req="null", expect_error=True)


def random_boxes(v, *shape, dtype="float32"):
    """Corners of boxes in the unit square."""
    low = v.rng.randint(0, 48, shape + (2,)) / 64.0
    size = v.rng.randint(4, 32, shape + (2,)) / 64.0
    return np.concatenate([low, low + size], -1).astype(dtype)


def nms_cases():
    op = "_contrib_box_nms"

    def arrays(*batch, count=12, more=0, dtype="float32"):
        def make(v):
            shape = batch + (count,)
            total = int(np.prod(shape))
            scores = (v.rng.permutation(total).reshape(shape + (1,)) - total // 8) / 64.0
            ids = v.rng.randint(-1, 3, shape + (1,))
            numbers = v.real(*shape, more)
            return {"data": np.concatenate([ids, scores, random_boxes(v, *shape), numbers], -1).astype(dtype)}

        return make

    for dtype in FLOATS:
        yield case(op, dtype, arrays(2, dtype=dtype), {"overlap_thresh": "0.25"})
    for name, attrs in [
        ("classes", {"id_index": "0"}),
        ("background", {"id_index": "0", "background_id": "1"}),
        ("no_classes", {"id_index": "-2"}),
        ("all_classes", {"id_index": "0", "force_suppress": "True"}),
        ("best", {"topk": "5"}),
        ("none", {"topk": "0", "out_format": "center"}),
        ("valid", {"valid_thresh": "0.3"}),
        ("none_valid", {"valid_thresh": "100"}),
        ("not_positive", {"valid_thresh": "-10"}),
        ("to_center", {"out_format": "center"}),
        ("from_center", {"in_format": "center", "overlap_thresh": "0.3"}),
        ("center", {"in_format": "center", "out_format": "center", "overlap_thresh": "0.3"}),
    ]:
        yield case(op, name, arrays(2), dict({"overlap_thresh": "0.15"}, **attrs))
    yield case(op, "one_batch", arrays(more=2), {"overlap_thresh": "0.2"})
    yield case(op, "batches", arrays(2, 3, count=6), {"overlap_thresh": "0.2"})
    yield case(op, "add", arrays(2), {"overlap_thresh": "0.2"}, grad_req="add")

    def moved(v):
        data = arrays(2, more=1)(v)["data"]
        return {"data": data[..., [2, 3, 4, 5, 6, 1, 0]]}

    indices = {"coord_start": "0", "score_index": "5", "id_index": "6", "overlap_thresh": "0.2"}
    yield case(op, "other_indices", moved, indices)

    def ties(v):
        data = arrays(count=9)(v)["data"]
        data[:, 1] = 0.5
        return {"data": data}

    yield case(op, "ties", ties, {"overlap_thresh": "0.1"})
    yield case("_contrib_box_non_maximum_suppression", "alias", arrays(2), {"overlap_thresh": "0.2"})
    for name, attrs in [
        ("bad_score", {"score_index": "6"}),
        ("bad_id", {"id_index": "6"}),
        ("bad_coord", {"coord_start": "3"}),
    ]:
        yield case(op, name, arrays(2), attrs, expect_error=True)


def box_cases():
    op = "_contrib_box_iou"
    for dtype in FLOATS:
        yield case(
            op,
            dtype,
            lambda v, dtype=dtype: {
                "lhs": random_boxes(v, 2, 3, dtype=dtype),
                "rhs": random_boxes(v, 4, dtype=dtype),
            },
        )
    yield case(op, "center", lambda v: {"lhs": random_boxes(v, 5), "rhs": random_boxes(v, 4)}, {"format": "center"})
    empty = [[0, 0, 2, 2], [2, 2, 0, 0], [0, 0, 0, 0], [1, 1, 3, 1]]
    yield case(op, "without_area", lambda v: {"lhs": np.array(empty, "float32"), "rhs": np.array(empty, "float32")})
    yield case(
        op, "bad_boxes", lambda v: {"lhs": v.real(2, 3), "rhs": v.real(2, 4)}, {"format": "corner"}, expect_error=True
    )

    op = "_contrib_bipartite_matching"
    for dtype in FLOATS:
        yield case(op, dtype, lambda v, dtype=dtype: {"data": v.distinct(2, 4, 5, dtype=dtype)}, {"threshold": "-0.2"})
    for name, attrs in [
        ("none", {"threshold": "100"}),
        ("ascending", {"threshold": "0.2", "is_ascend": "True"}),
        ("all", {"threshold": "-100", "topk": "-1"}),
    ]:
        yield case(op, name, lambda v: {"data": v.distinct(2, 5, 3)}, attrs)
    yield case(op, "matrix", lambda v: {"data": v.distinct(4, 4)}, {"threshold": "-100"})
    yield case(op, "ties", lambda v: {"data": np.full((1, 3, 4), 0.5, "float32")}, {"threshold": "0.1"})
    yield case(op, "bad_data", lambda v: {"data": v.real(3)}, {"threshold": "0.1"}, expect_error=True)


def code_cases():
    op = "_contrib_box_encode"

    def encode(dtype="float32"):
        return lambda v: {
            "samples": v.real(2, 6, dtype=dtype, low=-1, high=2),
            "matches": v.rng.randint(0, 4, (2, 6)).astype(dtype),
            "anchors": random_boxes(v, 2, 6, dtype=dtype),
            "refs": random_boxes(v, 2, 4, dtype=dtype),
            "means": np.array([0, 0.125, -0.25, 0.5], dtype),
            "stds": np.array([0.5, 1, 0.25, 2], dtype),
        }

    for dtype in FLOATS:
        yield case(op, dtype, encode(dtype))

    op = "_contrib_box_decode"

    def decode(dtype="float32"):
        return lambda v: {"data": v.real(2, 6, 4, dtype=dtype), "anchors": random_boxes(v, 1, 6, dtype=dtype)}

    for dtype in FLOATS:
        yield case(op, dtype, decode(dtype))
    yield case(op, "corner", decode(), {"format": "corner"})
    yield case(op, "stds", decode(), {"std0": "0.5", "std1": "2", "std2": "0.25", "std3": "0.1", "format": "corner"})
    yield case(op, "clip", decode(), {"clip": "0.5", "std2": "0.75"})
    yield case(
        op,
        "bad_data",
        lambda v: {"data": v.real(2, 6, 5), "anchors": random_boxes(v, 1, 6)},
        expect_error=True,
    )


def cases():
    for family in (
        proposal_cases,
        psroi_cases,
        deformable_psroi_cases,
        deformable_convolution_cases,
        prior_cases,
        target_cases,
        detection_cases,
        align_cases,
        rotated_cases,
        nms_cases,
        box_cases,
        code_cases,
    ):
        yield from family()
