"""Pieces of a single-shot detector: anchors, targets, two losses in a group, detections; a metric with two values."""

import logging

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)


def feature(data, name, num_filter, batch_norm=False):
    net = mx.symbol.Convolution(data, kernel=(3, 3), pad=(1, 1), stride=(2, 2), num_filter=num_filter, name=name)
    if batch_norm:
        net = mx.symbol.BatchNorm(net, name=name + "_bn")
    return mx.symbol.Activation(net, act_type="relu", name=name + "_relu")


def multibox(layers, classes, sizes, ratios):
    locations, scores, anchors = [], [], []
    for k, layer in enumerate(layers):
        name = layer.name
        if k == 0:
            layer = mx.symbol.L2Normalization(data=layer, mode="channel", name=name + "_norm")
            scale = mx.symbol.Variable(
                name + "_scale", shape=(1, 6, 1, 1), init=mx.init.Constant(20), attr={"__wd_mult__": "0.1"}
            )
            layer = mx.symbol.broadcast_mul(lhs=scale, rhs=layer)
        count = len(sizes[k]) - 1 + len(ratios[k])
        bias = mx.symbol.Variable(name + "_loc_bias", init=mx.init.Constant(0.0), attr={"__lr_mult__": "2.0"})
        for kind, depth, into in (("loc", 4, locations), ("cls", classes + 1, scores)):
            given = {"bias": bias} if kind == "loc" else {}
            pred = mx.symbol.Convolution(
                data=layer, kernel=(3, 3), pad=(1, 1), num_filter=count * depth, name=name + "_" + kind, **given
            )
            into.append(mx.symbol.Flatten(mx.symbol.transpose(pred, axes=(0, 2, 3, 1))))
        prior = mx.contrib.symbol.MultiBoxPrior(
            layer,
            sizes="(" + ",".join(map(str, sizes[k])) + ")",
            ratios="(" + ",".join(map(str, ratios[k])) + ")",
            clip=False,
            name=name + "_anchors",
            steps="(-1.0, -1.0)",
        )
        anchors.append(mx.symbol.Flatten(prior))
    scores = mx.symbol.Reshape(mx.symbol.Concat(*scores, num_args=len(scores), dim=1), shape=(0, -1, classes + 1))
    anchors = mx.symbol.Reshape(mx.symbol.Concat(*anchors, num_args=len(anchors), dim=1), shape=(0, -1, 4))
    return mx.symbol.Concat(*locations, dim=1), mx.symbol.transpose(scores, axes=(0, 2, 1)), anchors


def network(train):
    first = feature(mx.symbol.Variable("data"), "c1", 6, batch_norm=True)
    second = feature(first, "c2", 8)
    boxes, scores, anchors = multibox([first, second], 2, [[0.2, 0.3], [0.4, 0.6]], [[1, 2, 0.5], [1, 2]])
    if not train:
        prob = mx.symbol.SoftmaxActivation(data=scores, mode="channel", name="cls_prob")
        return mx.contrib.symbol.MultiBoxDetection(
            *[prob, boxes, anchors], name="detection", nms_threshold=0.5, variances=(0.1, 0.1, 0.2, 0.2), nms_topk=20
        )
    target = mx.contrib.symbol.MultiBoxTarget(
        *[anchors, mx.symbol.Variable("label"), scores],
        overlap_threshold=0.5,
        ignore_label=-1,
        negative_mining_ratio=3,
        negative_mining_thresh=0.5,
        variances=(0.1, 0.1, 0.2, 0.2),
        name="target",
    )
    prob = mx.symbol.SoftmaxOutput(
        data=scores,
        label=target[2],
        ignore_label=-1,
        use_ignore=True,
        multi_output=True,
        normalization="valid",
        name="cls_prob",
    )
    off = mx.symbol.smooth_l1(target[1] * (boxes - target[0]), scalar=1.0)
    loss = mx.symbol.MakeLoss(off, grad_scale=1.0, normalization="valid", name="loc_loss")
    return mx.symbol.Group([prob, loss, mx.symbol.MakeLoss(data=target[2], grad_scale=0, name="cls_label")])


class MultiBoxMetric(mx.metric.EvalMetric):
    def __init__(self):
        super().__init__("MultiBox")
        self.names = ["CrossEntropy", "SmoothL1"]
        self.reset()

    def reset(self):
        self.num_inst, self.sum_metric = [0, 0], [0.0, 0.0]

    def reset_local(self):
        self.reset()

    def update(self, labels, preds):
        prob, loss, label = [pred.asnumpy() for pred in preds[:3]]
        valid = np.where(label.flatten() >= 0)[0]
        picked = prob.transpose((0, 2, 1)).reshape((-1, prob.shape[1]))[valid, label.flatten()[valid].astype(int)]
        for i, value in enumerate((-np.log(picked + 1e-8).sum(), loss.sum())):
            self.sum_metric[i] += value
            self.num_inst[i] += len(valid)

    def get(self):
        return self.names, [total / max(count, 1) for total, count in zip(self.sum_metric, self.num_inst)]


class FromOneGenerator(mx.init.Initializer):
    def __init__(self):
        super().__init__()
        self.generator = np.random.RandomState(0)

    def _init_weight(self, name, arr):
        arr[:] = self.generator.normal(0, 0.1, arr.shape)


rng = np.random.RandomState(6)
images, labels = rng.normal(0, 0.1, (16, 3, 24, 24)).astype("f"), -np.ones((16, 3, 5), "f")
for i in range(16):
    for k in range(rng.randint(1, 3)):
        kind, (x, y), size = rng.randint(2), rng.uniform(0, 0.6, 2), rng.choice([0.25, 0.4])
        labels[i, k] = (kind, x, y, x + size, y + size)
        images[i, kind, int(y * 24) : int((y + size) * 24), int(x * 24) : int((x + size) * 24)] += 1
data = mx.io.NDArrayIter(images, labels, 4, label_name="label")
module = mx.mod.Module(network(True), label_names=("label",), fixed_param_names=["c1_bn_beta"])
metric = MultiBoxMetric()
module.fit(
    data,
    eval_metric=metric,
    batch_end_callback=mx.callback.Speedometer(4, 2),
    optimizer_params={"learning_rate": 0.004, "momentum": 0.9, "wd": 5e-4, "clip_gradient": 2.0},
    initializer=FromOneGenerator(),
    num_epoch=2,
)
for name, value in module.score(data, metric):
    print("RESULT %s %.6f" % (name, value))
arg_params, aux_params = module.get_params()
for name in ("c1_weight", "c1_relu_scale", "c1_relu_loc_weight", "c2_relu_cls_weight", "c2_relu_loc_bias"):
    print("RESULT %s %.6f" % (name, abs(arg_params[name].asnumpy()).sum()))
detector = mx.mod.Module(network(False), label_names=None)
detector.bind([("data", (4, 3, 24, 24))], for_training=False)
detector.set_params(arg_params, aux_params, allow_extra=True)
found = detector.predict(mx.io.NDArrayIter(images, None, 4)).asnumpy()
print("RESULT detections %d" % (found[:, :, 0] >= 0).sum())
print("RESULT best %.6f" % found[:, :, 1].max())
