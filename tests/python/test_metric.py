"""Metrics, ours and those written in Python."""

import copy
import json
import math
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import symbind as mx

LABEL = [0, 1, 1]
SCORES = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]
NUMBERS = [0.5, 0.5, 1]


def label():
    return mx.nd.array(LABEL)


def scores():
    return mx.nd.array(SCORES)


# What MXNet 1.9.1 answers for the arrays above: class, arguments, whether it takes NUMBERS, name, value, sum_metric and
# num_inst.
RECORDED = [
    ("Accuracy", {}, False, "accuracy", 2 / 3, 2, 3),
    ("TopKAccuracy", {"top_k": 2}, False, "top_k_accuracy_2", 1, 3, 3),
    ("F1", {}, False, "f1", 2 / 3, 2 / 3, 1),
    ("F1", {"average": "micro"}, False, "f1", 2 / 3, None, None),
    ("MCC", {}, False, "mcc", 0.5, 0.5, 1),
    ("PCC", {}, False, "pcc", 0.5, None, None),
    ("CrossEntropy", {}, False, "cross-entropy", 0.5108256, 1.5324769, 3),
    ("NegativeLogLikelihood", {}, False, "nll-loss", 0.5108256, 1.5324769, 3),
    ("Perplexity", {"ignore_label": None}, False, "perplexity", 1.6666666, None, None),
    ("MSE", {}, True, "mse", 0.1666667, 0.1666667, 1),
    ("MAE", {}, True, "mae", 0.3333333, 0.3333333, 1),
    ("RMSE", {}, True, "rmse", 0.4082483, 0.4082483, 1),
    ("PearsonCorrelation", {}, True, "pearsonr", 0.5, 0.5, 1),
    ("PearsonCorrelation", {"average": "micro"}, True, "pearsonr", 0.5, None, None),
    ("Loss", {}, False, "loss", 0.5, 3, 6),
    ("Torch", {}, False, "torch", 0.5, 3, 6),
    ("Caffe", {}, False, "caffe", 0.5, 3, 6),
]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: r[0] + "".join(map(str, r[1].values())))
def test_values_and_copies(recorded):
    name, arguments, numbers, value_name, value, total, count = recorded
    metric = getattr(mx.metric, name)(**arguments)
    got = metric.get()
    assert got[0] == value_name and math.isnan(got[1]) and isinstance(got, tuple)
    preds = mx.nd.array(NUMBERS) if numbers else scores()
    metric.update([label()], [preds])
    assert metric.get()[1] == pytest.approx(value, rel=1e-6)
    if count is not None:
        assert metric.sum_metric == pytest.approx(total, rel=1e-6) and metric.num_inst == count

    for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), copy.copy(metric)):
        assert type(other) is type(metric) and other.get() == metric.get()
        assert other.get_global() == metric.get_global() and other.get_config() == metric.get_config()
        other.update([mx.nd.array([1, 0, 0])], [preds])
        assert other.get() != metric.get() or name in ("Loss", "Torch", "Caffe", "TopKAccuracy")
    half = copy.deepcopy(metric)
    metric.update([mx.nd.array([1, 0, 0])], [preds])
    half.update([mx.nd.array([1, 0, 0])], [preds])
    assert half.get() == metric.get()

    metric.reset_local()
    assert math.isnan(metric.get()[1]) and not math.isnan(metric.get_global()[1])
    metric.reset()
    assert math.isnan(metric.get_global()[1])


def test_one_metric_from_all_sides():
    metric = mx.metric.Accuracy(axis=1, name="mine", output_names=["o"], label_names=["l"])
    assert (metric.name, metric.output_names, metric.label_names, metric.axis) == ("mine", ["o"], ["l"], 1)
    assert str(metric) == "EvalMetric: {'mine': nan}"
    metric.update_dict(OrderedDict(l=label(), other=scores()), {"x": label(), "o": scores()})
    assert metric.get_name_value() == [("mine", 2 / 3)] == metric.get_global_name_value()
    assert str(metric) == "EvalMetric: {'mine': 0.6666666666666666}"
    assert (metric.sum_metric, metric.num_inst) == (2.0, 3)
    metric.sum_metric += 1
    metric.num_inst += np.int64(1)
    assert metric.get() == ("mine", 0.75) and metric.get_global() == ("mine", 2 / 3)
    metric.name = "renamed"
    assert metric.get() == ("renamed", 0.75)
    assert metric.get_config() == {
        "axis": 1,
        "metric": "Accuracy",
        "name": "renamed",
        "output_names": ["o"],
        "label_names": ["l"],
    }
    assert mx.metric.Accuracy().output_names is None
    with pytest.raises(mx.MXNetError, match="unknown label 'l'"):
        metric.update_dict({"other": label()}, {"o": scores()})


def test_what_update_takes():
    for labels, preds in [
        (label(), scores()),
        ([label()], [scores()]),
        (np.array(LABEL), np.array(SCORES)),
        ([np.array(LABEL, "uint16")], [np.array(SCORES, "float16")]),
        ((label(),), (np.array(SCORES),)),
    ]:
        metric = mx.metric.Accuracy()
        metric.update(labels, preds)
        assert metric.get() == ("accuracy", 2 / 3)
    with pytest.raises(mx.MXNetError, match="as many labels as predictions"):
        metric.update([label()], [scores(), scores()])


def test_wrong_arguments():
    with pytest.raises(mx.MXNetError, match="top_k must be more than 1"):
        mx.metric.TopKAccuracy()
    with pytest.raises(mx.MXNetError, match="macro or micro"):
        mx.metric.F1(average="mean")
    with pytest.raises(TypeError, match="axis: int"):
        mx.metric.Accuracy(axes=2)
    with pytest.raises(ValueError, match="unknown metric 'nosuch'; there are acc, accuracy"):
        mx.metric.create("nosuch")
    with pytest.raises(TypeError, match="given by its name"):
        mx.metric.create(5)
    with pytest.raises(TypeError, match="subclass of EvalMetric"):
        mx.metric.register(int)


# ---- composites and functions


def test_several_at_once():
    mine = mx.metric.Accuracy(name="mine")
    both = mx.metric.create(["acc", mine, "ce"])
    assert isinstance(both, mx.metric.CompositeEvalMetric)
    both.add("mse")
    assert both.get()[0] == ["accuracy", "mine", "cross-entropy", "mse"] and len(both.metrics) == 4
    assert both.metrics[1] is mine is both.get_metric(1)
    grown = mx.metric.CompositeEvalMetric(["acc"])
    parts = grown.metrics
    parts.append(mx.metric.MSE())
    parts.extend(["mae", mine])
    assert len(parts) == len(grown.metrics) == 4 and grown.get()[0][:3] == ["accuracy", "mse", "mae"]
    with pytest.raises(TypeError, match="can be added"):
        parts.remove(mine)
    assert both.metrics[0] is both.get_metric(0) and isinstance(both.metrics[0], mx.metric.Accuracy)
    both = mx.metric.CompositeEvalMetric(metrics=["acc", "ce"])
    both.update([label()], [scores()])
    names, values = both.get()
    assert names == ["accuracy", "cross-entropy"]
    assert values == pytest.approx([2 / 3, 0.5108256], rel=1e-6)
    assert both.get_name_value() == list(zip(names, values))
    assert [config["metric"] for config in both.get_config()["metrics"]] == ["Accuracy", "CrossEntropy"]
    again = pickle.loads(pickle.dumps(both))
    assert again.get() == both.get() and again.metrics[0] is not both.metrics[0]
    both.reset()
    assert again.get() != both.get()
    with pytest.raises(ValueError, match="2 metrics, not one at 5"):
        both.get_metric(5)
    assert mx.metric.CompositeEvalMetric().get() == ([], [])


def difference(label, pred):
    assert type(label) is np.ndarray and type(pred) is np.ndarray
    return float(np.abs(label - pred).sum())


def test_functions():
    for metric in (mx.metric.np(difference), mx.metric.create(difference), mx.metric.CustomMetric(difference)):
        assert metric.name == "difference"
        metric.update([label()], [mx.nd.array(NUMBERS)])
        assert metric.get() == ("difference", 1.0)
        assert pickle.loads(pickle.dumps(metric)).get() == metric.get()
    assert mx.metric.np(lambda label, pred: 1).name == "custom(<lambda>)"
    assert mx.metric.np(difference, name="x").name == "x"
    pair = mx.metric.np(lambda label, pred: (np.float32(3), np.int32(2)), allow_extra_outputs=True)
    pair.update([label()], [scores(), scores()])
    assert pair.get() == ("custom(<lambda>)", 1.5)
    with pytest.raises(mx.MXNetError, match="as many labels as predictions"):
        mx.metric.np(difference).update([label()], [scores(), scores()])
    with pytest.raises(ZeroDivisionError):
        mx.metric.np(lambda label, pred: 1 / 0).update([label()], [scores()])
    with pytest.raises(NotImplementedError):
        pair.get_config()
    with pytest.raises(TypeError, match="expected a function"):
        mx.metric.CustomMetric(3)


def test_check_label_shapes():
    with pytest.raises(ValueError, match="Shape of labels 1 does not match shape of predictions 2"):
        mx.metric.check_label_shapes([1], [1, 2])
    with pytest.raises(ValueError, match=r"Shape of labels \(3,\) does not match shape of predictions \(3, 2\)"):
        mx.metric.check_label_shapes(label(), scores(), shape=True)
    labels, preds = mx.metric.check_label_shapes(label(), scores(), wrap=True)
    assert isinstance(labels, list) and isinstance(preds, list)


# ---- classes written in Python


@mx.metric.register
@mx.metric.alias("written_here")
class Written(mx.metric.EvalMetric):
    def __init__(self, factor=1):
        super().__init__("written", factor=factor)
        self.factor = factor

    def update(self, labels, preds):
        mx.metric.check_label_shapes(labels, preds)
        for one, other in zip(labels, preds):
            self.sum_metric += self.factor * np.abs(one.asnumpy() - other.asnumpy()).sum()
            self.num_inst += one.size


class Several(mx.metric.EvalMetric):
    """Keeps lists, as multi-task examples do; its reset is called by __init__."""

    def __init__(self, count):
        self.count = count
        super().__init__("several")
        self.name = ["first", "second"]

    def reset(self):
        self.sum_metric = [0.0] * self.count
        self.num_inst = [0] * self.count

    def update(self, labels, preds):
        for i in range(self.count):
            self.sum_metric[i] += float(preds[i].asnumpy().sum())
            self.num_inst[i] += 1

    def get(self):
        return self.name, [s / n if n else float("nan") for s, n in zip(self.sum_metric, self.num_inst)]


def test_a_class_of_ones_own():
    metric = mx.metric.create("WRITTEN_here", factor=2)
    assert isinstance(metric, Written) and isinstance(mx.metric.create("written"), Written)
    assert math.isnan(metric.get()[1]) and metric.sum_metric == 0 and metric.global_num_inst == 0
    metric.update([label()], [mx.nd.array(NUMBERS)])
    assert metric.get() == ("written", 2 / 3) == metric.get_global()
    assert metric.get_config() == {
        "factor": 2,
        "metric": "Written",
        "name": "written",
        "output_names": None,
        "label_names": None,
    }
    for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert type(other) is Written and other.get() == metric.get() and other.factor == 2
        other.update([label()], [label()])
        assert other.get() != metric.get()
    metric.reset_local()
    assert math.isnan(metric.get()[1])
    with pytest.raises(NotImplementedError, match="EvalMetric does not define update"):
        mx.metric.EvalMetric("x").update([], [])


def test_sums_may_be_anything():
    metric = Several(2)
    metric.update([], [mx.nd.ones((2,)), mx.nd.zeros((2,))])
    assert metric.get() == (["first", "second"], [2, 0])
    assert metric.get_name_value() == [("first", 2), ("second", 0)]
    assert str(metric) == "EvalMetric: {'first': 2.0, 'second': 0.0}"
    metric.reset_local()
    assert metric.sum_metric == [0, 0]


class PerOutput(mx.metric.EvalMetric):
    """As before MXNet 1.0: the number of metrics is an argument."""

    def update(self, labels, preds):
        for i, (label, pred) in enumerate(zip(labels, preds)):
            self.sum_metric[i] += float((label == pred).sum().asscalar())
            self.num_inst[i] += label.size


def test_a_metric_may_be_several_by_number():
    metric = PerOutput("acc", 2)
    assert metric.num == 2 and metric.get()[0] == ["acc_0", "acc_1"] and np.isnan(metric.get()[1]).all()
    metric.update([mx.nd.array([1, 2]), mx.nd.array([3, 4])], [mx.nd.array([1, 2]), mx.nd.array([3, 5])])
    assert metric.get() == (["acc_0", "acc_1"], [1, 0.5])
    assert (
        metric.get_name_value() == pickle.loads(pickle.dumps(metric)).get_name_value() == [("acc_0", 1), ("acc_1", 0.5)]
    )
    metric.reset()
    assert metric.sum_metric == [0, 0] and metric.num_inst == [0, 0]
    named = PerOutput(["first", "second"], 2)
    assert named.name == ["first", "second"] and named.get()[0] == ["first", "second"]
    alone = PerOutput("acc", num=2)  # a keyword of the class's own
    assert (alone.sum_metric, alone.num_inst, alone.get()[0]) == (0, 0, "acc")


class Silent(mx.metric.EvalMetric):
    """Never calls EvalMetric.__init__."""

    def __init__(self):
        self.name, self.label_names, self.output_names = "silent", None, ["o"]
        self.reset()

    def update(self, labels, preds):
        self.sum_metric += len(labels)
        self.num_inst += len(preds)


def test_python_classes_seen_from_native_ones():
    """A composite calls its parts from C++."""

    class Duck:
        updates = 0

        def update(self, labels, preds):
            self.updates += 1

        def reset(self):
            self.updates = 0

        def get(self):
            return "duck", np.float32(self.updates)

    written, several, silent, duck = Written(), Several(1), Silent(), Duck()
    together = mx.metric.CompositeEvalMetric([written, several, silent])
    together.add(duck)
    assert together.metrics[0] is written and together.metrics[3] is duck
    together.update_dict({"l": label()}, {"o": label()})
    names, values = together.get()
    assert names == ["written", "first", "silent", "duck"] and values == [0, 2, 1, 1]
    assert together.get_global() == (names, values)
    together.reset_local()
    assert duck.updates == 0 and several.sum_metric == [0] and written.num_inst == 0
    assert math.isnan(together.get()[1][0])
    del written, several, silent, duck
    together.update([label()], [label()])
    assert together.get()[1] == [0, 2, 1, 1]


def test_exceptions_of_python_classes_pass():
    class Failing(Written):
        def update(self, labels, preds):
            raise KeyError("nothing here")

        def get(self):
            return "only a name"

    together = mx.metric.CompositeEvalMetric([Failing()])
    with pytest.raises(KeyError, match="nothing here"):
        together.update([label()], [scores()])
    with pytest.raises(TypeError, match=r"get\(\) of a metric returns \(name, value\)"):
        together.get()


def test_a_subclass_of_a_native_class():
    class Doubled(mx.metric.Accuracy):
        def __init__(self):
            super().__init__(name="doubled")
            self.calls = 0

        def update(self, labels, preds):
            self.calls += 1
            super().update(labels, preds)
            super().update(labels, preds)

    doubled = Doubled()
    together = mx.metric.CompositeEvalMetric([doubled])
    together.update_dict({"l": label()}, {"o": scores()})
    assert doubled.calls == 1 and doubled.num_inst == 6
    doubled.update_dict({"l": label()}, {"o": scores()})
    assert doubled.calls == 2 and together.get() == (["doubled"], [2 / 3])
    again = copy.deepcopy(doubled)
    assert type(again) is Doubled and again.calls == 2 and again.get() == doubled.get()


def test_get_may_return_an_iterator_over_names_and_values():
    class Two(mx.metric.EvalMetric):
        def update(self, labels, preds):
            self.num_inst += 1

        def get(self):
            return zip(*((f"{self.name}{task}", task * self.num_inst) for task in range(2)))

    metric = Two("task")
    metric.update([], [])
    assert metric.get_name_value() == [("task0", 0), ("task1", 1)]
    both = mx.metric.CompositeEvalMetric([metric, "acc"])
    assert both.get()[0] == ["task0", "task1", "accuracy"] and both.get()[1][:2] == [0, 1]


def test_a_row_with_a_nan_predicts_no_class():
    nan = float("nan")
    labels, preds = mx.nd.array([0, 1, 0, 1]), mx.nd.array([[0.9, 0.1], [0.2, 0.8], [nan, nan], [nan, 0.5]])
    for name, arguments, expected in [
        ("acc", {}, 0.5),
        ("top_k_accuracy", {"top_k": 2}, 0.5),
        ("f1", {}, 0.5),
        ("mcc", {}, 0),
        ("pcc", {}, 0),
    ]:
        metric = mx.metric.create(name, **arguments)
        metric.update([labels], [preds])
        assert metric.get()[1] == expected, name
    for name, arguments in [("perplexity", {"ignore_label": None}), ("ce", {}), ("nll_loss", {}), ("loss", {})]:
        metric = mx.metric.create(name, **arguments)
        metric.update([labels], [preds])
        assert math.isnan(metric.get()[1]), name


@pytest.mark.parametrize(
    "made",
    [
        lambda: mx.metric.Accuracy(axis=0),
        lambda: mx.metric.TopKAccuracy(top_k=3, name="top"),
        lambda: mx.metric.Perplexity(ignore_label=2),
        lambda: mx.metric.F1(average="micro"),
        lambda: mx.metric.CrossEntropy(eps=0.25, output_names=["a"], label_names=["b"]),
        lambda: mx.metric.CompositeEvalMetric([mx.metric.Accuracy(axis=0), "mse"]),
    ],
)
def test_a_metric_goes_to_json_and_comes_back(made):
    config = made().get_config()
    for text in (config, json.dumps(config)):
        back = mx.metric.create(text)
        assert type(back) is type(made()) and back.get_config() == config
    assert mx.metric.create('["accuracy", {"axis": 0}]').axis == 0
    with pytest.raises(ValueError, match="no further arguments"):
        mx.metric.create(config, name="x")
    with pytest.raises(ValueError, match="nope"):
        mx.metric.create('{"metric": "nope"}')


def test_sums_have_the_precision_of_float32_arrays():
    # what MXNet 1.9.1 prints
    mse, loss, entropy = mx.metric.MSE(), mx.metric.Loss(), mx.metric.CrossEntropy()
    mse.update([mx.nd.array([0.1])], [mx.nd.array([0.4])])
    loss.update(None, [mx.nd.array([0.1, 0.2])])
    entropy.update([mx.nd.array([0])], [mx.nd.array([[0.1, 0.9]])])
    assert mse.get()[1] == 0.09000000357627869 and loss.sum_metric == 0.30000001192092896
    assert entropy.get()[1] == pytest.approx(2.3025851249694824, rel=2e-7)


def test_pcc_takes_classes():
    metric = mx.metric.PCC()
    metric.update([mx.nd.array([0, 1, 2, 1])], [mx.nd.array([0, 2, 2, 1])])
    assert metric.get()[1] == pytest.approx(0.7)


def test_metrics_that_fail_raise_what_went_wrong():
    class WithoutInit(mx.metric.EvalMetric):
        def __init__(self):
            pass

        def update(self, labels, preds):
            pass

    with pytest.raises(AttributeError, match="has no name yet"):
        WithoutInit().get_config()
    with pytest.raises(AttributeError, match="yet"):
        WithoutInit().get()

    class Failing(mx.metric.EvalMetric):
        def update(self, labels, preds):
            pass

        @property
        def name(self):
            raise RuntimeError("no name today")

        @name.setter
        def name(self, value):
            pass

    for call in (Failing("x").get, Failing("x").get_global, Failing("x").get_config):
        with pytest.raises(RuntimeError, match="no name today"):
            call()

    class Uneven(mx.metric.EvalMetric):
        def update(self, labels, preds):
            pass

        def get(self):
            return ["first", "second"], [1]

    with pytest.raises(IndexError):
        Uneven("x").get_name_value()

    class Plain(mx.metric.EvalMetric):
        def update(self, labels, preds):
            pass

    with pytest.raises(KeyError, match="mistyped"):
        Plain("x", label_names=["mistyped"]).update_dict({"label": mx.nd.ones(2)}, {"output": mx.nd.ones(2)})
