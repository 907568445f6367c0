"""Detection operators by their names in mx.sym.contrib and mx.nd.contrib, and a head that trains."""

import numpy as np
import pytest

import symbind as mx

NAMES = """Proposal MultiProposal PSROIPooling DeformablePSROIPooling DeformableConvolution
ModulatedDeformableConvolution MultiBoxPrior MultiBoxTarget MultiBoxDetection ROIAlign RROIAlign box_nms
box_non_maximum_suppression box_iou bipartite_matching box_encode box_decode""".split()


@pytest.mark.parametrize("name", NAMES)
def test_names_are_in_contrib(name):
    assert callable(getattr(mx.sym.contrib, name))
    assert callable(getattr(mx.nd.contrib, name))
    assert callable(getattr(mx.contrib.sym, name)) and callable(getattr(mx.contrib.nd, name))


def test_box_nms_keeps_the_best_of_overlapping_boxes():
    boxes = [
        [0, 0.5, 0.1, 0.1, 0.2, 0.2],
        [1, 0.4, 0.1, 0.1, 0.2, 0.2],
        [0, 0.3, 0.1, 0.1, 0.14, 0.14],
        [2, 0.6, 0.5, 0.5, 0.7, 0.8],
    ]
    data = mx.nd.array(boxes)
    found = mx.nd.contrib.box_nms(data, overlap_thresh=0.1, id_index=0, force_suppress=True).asnumpy()
    np.testing.assert_allclose(found, [boxes[3], boxes[0], [-1] * 6, [-1] * 6], rtol=1e-6)
    same = mx.nd.contrib.box_non_maximum_suppression(data, overlap_thresh=0.1, id_index=0, force_suppress=True)
    np.testing.assert_array_equal(same.asnumpy(), found)


def test_several_outputs():
    rows, columns = mx.nd.contrib.bipartite_matching(mx.nd.array([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]), threshold=1e-12)
    assert rows.asnumpy().tolist() == [1, -1, 0] and columns.asnumpy().tolist() == [2, 0]
    proposals = mx.sym.contrib.Proposal(scales=(8,), output_score=True, name="rpn")
    assert proposals.list_outputs() == ["rpn_output", "rpn_score"]
    assert mx.sym.contrib.Proposal(scales=(8,), name="rpn").list_outputs() == ["rpn_output"]
    target = mx.sym.contrib.MultiBoxTarget(name="t")
    assert target.list_outputs() == ["t_loc_target", "t_loc_mask", "t_cls_target"]


def test_a_head_of_anchors_trains():
    features, label = mx.sym.Variable("data"), mx.sym.Variable("label")
    anchors = mx.sym.contrib.MultiBoxPrior(features, sizes=(0.4, 0.6), ratios=(1, 2))
    cls = mx.sym.Convolution(features, kernel=(3, 3), pad=(1, 1), num_filter=3 * 2, name="cls")
    cls = mx.sym.reshape(mx.sym.transpose(cls, axes=(0, 2, 3, 1)), shape=(0, -1, 2))
    cls = mx.sym.transpose(cls, axes=(0, 2, 1))
    loc = mx.sym.Convolution(features, kernel=(3, 3), pad=(1, 1), num_filter=3 * 4, name="loc")
    loc = mx.sym.Flatten(mx.sym.transpose(loc, axes=(0, 2, 3, 1)))
    target = mx.sym.contrib.MultiBoxTarget(anchors, label, cls, negative_mining_ratio=3)
    cls_loss = mx.sym.SoftmaxOutput(
        cls, target[2], multi_output=True, use_ignore=True, ignore_label=-1, normalization="valid"
    )
    loc_loss = mx.sym.MakeLoss(mx.sym.smooth_l1(target[1] * (loc - target[0]), scalar=1.0), grad_scale=0.1)
    net = mx.sym.Group([cls_loss, loc_loss, mx.sym.BlockGrad(target[2])])

    rng = np.random.RandomState(0)
    executor = net.simple_bind(mx.cpu(), data=(2, 4, 4, 4), label=(2, 2, 5), grad_req="write")
    executor.arg_dict["data"][:] = rng.randn(2, 4, 4, 4)
    executor.arg_dict["label"][:] = [[[0, 0.1, 0.1, 0.5, 0.5], [-1] * 5], [[0, 0.4, 0.3, 0.9, 0.8], [-1] * 5]]
    losses = []
    for _ in range(30):
        outputs = executor.forward(is_train=True)
        classes = outputs[2].asnumpy().astype(int)
        probabilities = outputs[0].asnumpy()
        images, boxes = np.nonzero(classes >= 0)
        losses.append(-np.log(probabilities[images, classes[images, boxes], boxes]).mean() + outputs[1].asnumpy().sum())
        executor.backward()
        for name in ("cls_weight", "cls_bias", "loc_weight", "loc_bias"):
            executor.arg_dict[name][:] -= 0.5 * executor.grad_dict[name]
    assert losses[-1] < 0.5 * losses[0]


def test_errors_name_the_operator_and_the_argument():
    with pytest.raises(mx.MXNetError, match="_contrib_ROIAlign.*pooled_size"):
        mx.nd.contrib.ROIAlign(mx.nd.ones((1, 1, 4, 4)), mx.nd.ones((1, 5)), pooled_size=(2,), spatial_scale=1.0)
    with pytest.raises(mx.MXNetError, match="coord_start"):
        mx.nd.contrib.box_nms(mx.nd.ones((3, 5)))
