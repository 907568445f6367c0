"""Calls that MXNet lets pass, as it lets them pass. Numbers and lists were asked of MXNet 1.9.1."""

import logging
import re
from collections import namedtuple

import numpy as np
import pytest

import symbind as mx


def network():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def arguments():
    return {
        "data": mx.nd.ones((2, 4)),
        "fc_weight": mx.nd.ones((3, 4)),
        "fc_bias": mx.nd.ones((3,)),
        "softmax_label": mx.nd.ones((2,)),
    }


def executor(**more):
    bound = network().simple_bind(mx.cpu(), data=(2, 4), **more)
    bound.copy_params_from(arguments())
    return bound


# Shapes


def test_shapes_that_are_given_win_over_those_that_were_declared():
    x, y = mx.sym.Variable("x", shape=(2, 3)), mx.sym.Variable("y")
    assert (x + y).infer_shape(x=(4, 5)) == ([(4, 5), (4, 5)], [(4, 5)], [])
    assert (x + y).infer_shape_partial(x=(4, 5)) == ([(4, 5), (4, 5)], [(4, 5)], [])
    assert (x * 2).simple_bind(mx.cpu(), x=(4, 5)).outputs[0].shape == (4, 5)
    assert (x * 2).bind(mx.cpu(), {"x": mx.nd.ones((4, 5))}).forward()[0].shape == (4, 5)
    with pytest.raises(mx.MXNetError, match=r"\(2,3\).*\(4,5\)"):
        (x + y).infer_shape(y=(4, 5))


def test_what_cannot_be_decided_is_left_open():
    plain = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=2, name="f")
    assert plain.infer_shape_partial() == ([(), (), ()], [()], [])
    assert plain.infer_shape_partial(x=(0, 5)) == ([(0, 5), (2, 5), (2,)], [(0, 2)], [])
    conv = mx.sym.Convolution(mx.sym.Variable("x"), kernel=(3, 3), num_filter=4, name="c")
    assert conv.infer_shape_partial(x=(0, 3, 0, 0)) == ([(0, 3, 0, 0), (4, 3, 3, 3), (4,)], [(0, 4, 0, 0)], [])
    assert (mx.sym.Variable("a") + mx.sym.Variable("b")).infer_type_partial() == ([None, None], [None], [])


# Names


def test_two_variables_of_one_name_are_bound():
    two = mx.sym.Variable("w") * 2 + mx.sym.Variable("w") * 3
    by_name = two.bind(mx.cpu(), {"w": mx.nd.array([1, 2])})
    assert by_name.forward()[0].asnumpy().tolist() == [5, 10]
    grads = [mx.nd.zeros((2,)), mx.nd.zeros((2,))]
    in_order = two.bind(mx.cpu(), [mx.nd.array([1, 2]), mx.nd.array([10, 20])], args_grad=grads)
    assert in_order.forward(is_train=True)[0].asnumpy().tolist() == [32, 64]
    in_order.backward(mx.nd.ones((2,)))
    assert [grad.asnumpy().tolist() for grad in grads] == [[2, 2], [3, 3]]
    assert len(two.simple_bind(mx.cpu(), w=(2,)).arg_arrays) == 2
    with pytest.raises(ValueError, match="two arrays are named 'w'"):
        assert in_order.arg_dict


def test_names_that_the_network_lacks_are_passed_over(caplog):
    with caplog.at_level(logging.WARNING):
        bound = network().bind(
            mx.cpu(),
            dict(arguments(), other=mx.nd.ones((1,))),
            args_grad={"fc_weight": mx.nd.ones((3, 4)), "second": mx.nd.ones((1,))},
            grad_req={"fc_weight": "write", "third": "add"},
        )
    assert list(bound.arg_dict) == ["data", "fc_weight", "fc_bias", "softmax_label"]
    assert "'second'" in caplog.text and "'third'" in caplog.text
    module = mx.mod.Module(network())
    module.bind([("data", (2, 4))], [("softmax_label", (2,))], grad_req={"fc_weight": "write", "other": "add"})
    module.init_params()
    params = dict(module.get_params()[0], other=mx.nd.ones((1,)))
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        module.set_params(params, {}, allow_extra=True)
        module.set_params({"other": params["other"]}, {}, allow_missing=True, allow_extra=True)
    assert caplog.text == ""


def test_multipliers_are_those_of_arguments():
    weight = mx.sym.Variable("w_weight", lr_mult=2, wd_mult=4)
    net = mx.sym.FullyConnected(
        mx.sym.Variable("data", lr_mult=3), weight, num_hidden=3, name="fc", attr={"__lr_mult__": "5"}
    )
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    module.bind([("data", (2, 4))], [("softmax_label", (2,))])
    module.init_params()
    module.init_optimizer()
    assert module._optimizer.lr_mult == {"data": 3.0, "w_weight": 2.0, "fc_bias": 5.0}
    assert module._optimizer.wd_mult == {"fc_bias": 0.0, "w_weight": 4.0}


# Batches


@pytest.mark.parametrize(
    "label",
    [
        lambda labels: [mx.nd.array(labels)],
        lambda labels: mx.nd.array(labels),
        lambda labels: [np.array(labels)],
        lambda labels: (np.array(labels, dtype=np.int64),),
        lambda labels: np.array(labels),
        lambda labels: [labels],
        lambda labels: [tuple(labels)],
        lambda labels: labels,
        lambda labels: (array for array in [np.array(labels)]),
    ],
)
def test_whatever_looks_like_a_batch_is_one(label):
    points, classes = np.arange(16, dtype=np.float32).reshape(4, 4) / 16, [0, 1, 2, 1]

    class Batch:
        def __init__(self, begin):
            self.data = [points[begin : begin + 2]]
            self.label = label(classes[begin : begin + 2])

    class Batches:
        provide_data, provide_label, batch_size = [("data", (2, 4))], [("softmax_label", (2,))], 2

        def __iter__(self):
            return iter([Batch(0), Batch(2)])

    module = mx.mod.Module(network())
    losses = mx.metric.CrossEntropy()
    module.fit(
        Batches(), eval_metric=losses, num_epoch=1, initializer=mx.init.Zero(), optimizer_params={"learning_rate": 0.5}
    )
    assert losses.num_inst == 4
    bias = module.get_params()[0]["fc_bias"].asnumpy()
    assert np.allclose(bias, expected_bias(points, classes), atol=1e-6)


def expected_bias(points, classes):
    """After two steps of SGD of 2 samples each, from zeros, with a rate of 0.5."""
    weight, bias = np.zeros((3, 4)), np.zeros(3)
    for begin in (0, 2):
        data = points[begin : begin + 2]
        powers = np.exp(data @ weight.T + bias)
        grad = powers / powers.sum(axis=1, keepdims=True) - np.eye(3)[classes[begin : begin + 2]]
        weight, bias = weight - 0.25 * (grad.T @ data), bias - 0.25 * grad.sum(axis=0)
    return bias


# Gradients


@pytest.mark.parametrize("calls", ["TB", "TBB", "FB", "TFB", "TTB", "TBFB", "FTB"])
def test_forward_and_backward_are_called_in_any_order_after_a_forward(calls):
    bound = executor()
    for call in calls:
        bound.backward() if call == "B" else bound.forward(is_train=call == "T")
    assert np.abs(bound.grad_dict["fc_weight"].asnumpy()).sum() == pytest.approx(10.6667, abs=1e-4)


def test_out_grads_may_be_too_many_or_a_single_one():
    two = mx.sym.Group([mx.sym.Variable("a") * 2, mx.sym.Variable("b") * 3])
    one = mx.nd.ones((2,))

    def grads(given):
        into = {"a": mx.nd.zeros((2,)), "b": mx.nd.zeros((2,))}
        bound = two.bind(mx.cpu(), {"a": one, "b": one}, args_grad=into)
        bound.forward(is_train=True)
        bound.backward(given)
        return [into["a"].asnumpy().tolist(), into["b"].asnumpy().tolist()]

    for given in ([one, one], (one, one), [one, one, one]):
        assert grads(given) == [[2, 2], [3, 3]]
    for given in ([one], one, None, []):
        with pytest.raises(mx.MXNetError, match="out_grads are needed"):
            grads(given)
    loss = executor()
    loss.forward(is_train=True)
    loss.backward([mx.nd.ones((2, 3))] * 2)
    assert np.abs(loss.grad_dict["fc_weight"].asnumpy()).sum() == pytest.approx(10.6667, abs=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_gradient_array_may_have_another_float_type(dtype):
    for request, expected in (("write", 0.6667), ("add", 1.6667)):
        grad = mx.nd.ones((3, 4), dtype=dtype)
        bound = network().bind(mx.cpu(), arguments(), args_grad={"fc_weight": grad}, grad_req=request)
        bound.forward(is_train=True)
        bound.backward()
        assert grad.dtype == np.dtype(dtype) and grad.asnumpy()[0, 0] == pytest.approx(expected, abs=2e-3)


# Data


def test_the_order_of_a_shuffled_iterator_is_that_of_the_coming_epoch():
    data = mx.io.NDArrayIter(np.arange(50), batch_size=10, shuffle=True)
    for _ in range(2):
        order = [int(index) for index in data.idx]
        assert sorted(order) == list(range(50)) != order
        assert order == [int(value) for batch in data for value in batch.data[0].asnumpy()]
        data.reset()


def test_what_is_true_is_a_true_flag():
    for shuffle in (1, np.bool_(True), "yes"):
        assert mx.io.NDArrayIter(np.arange(4), batch_size=2, shuffle=shuffle).shuffle is True
    assert mx.io.NDArrayIter(np.arange(4), batch_size=2, shuffle=0).shuffle is False
    bound = executor()
    bound.forward(is_train=1)
    bound.backward()
    module = mx.mod.Module(network())
    module.bind([("data", (2, 4))], [("softmax_label", (2,))], for_training=1, force_rebind=0)
    module.init_params(force_init=1)
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 4))], [mx.nd.zeros((2,))]), is_train=np.bool_(False))
    assert len(module.get_outputs(merge_multi_context=0)[0]) == 1


class Batches:
    """An iterator that is no DataIter."""

    provide_data, provide_label, batch_size = [("data", (2, 4))], [("softmax_label", (2,))], 2

    def __init__(self, make):
        self.make = make

    def reset(self):
        pass

    def __iter__(self):
        for _ in range(2):
            yield self.make()


class Bare:
    def __init__(self, data, label, **more):
        self.data, self.label = data, label
        self.__dict__.update(more)


@pytest.mark.parametrize(
    "make",
    [
        lambda x, y: namedtuple("Batch", ["data", "label"])([x], [y]),
        lambda x, y: Bare([x], [y]),
        lambda x, y: Bare((x,), (y,), pad=None, extra=3),
        lambda x, y: Bare(x, y),
        lambda x, y: Bare([x.asnumpy()], [y.asnumpy()]),
        lambda x, y: [Bare([x], [y])],
        lambda x, y: [Bare([x[:1]], [y[:1]]), Bare([x[1:]], [y[1:]])],
    ],
    ids=["namedtuple", "object", "tuples", "bare arrays", "numpy", "list of one", "slices"],
)
def test_whatever_looks_like_a_batch_is_fitted(make):
    module = mx.mod.Module(network(), context=[mx.cpu(0), mx.cpu(1)])
    args = arguments()
    params = {name: args[name] for name in ("fc_weight", "fc_bias")}
    module.fit(Batches(lambda: make(args["data"], args["softmax_label"])), arg_params=params, num_epoch=1)
    assert module.get_params()[0]["fc_bias"].asnumpy() == pytest.approx([0.993389, 1.013221, 0.993389], abs=1e-6)


# Looking inside


def names_seen(net, monitor_all, train=True, **shapes):
    bound = net.simple_bind(mx.cpu(), **shapes)
    seen = []
    bound.set_monitor_callback(lambda name, array: seen.append(name), monitor_all)
    bound.forward(is_train=train)
    forward = len(seen)
    if train:
        bound.backward()
    return seen[:forward], seen[forward:]


def test_monitors_name_and_count_arrays_as_mxnet_does():
    forward, backward = names_seen(network(), False, data=(2, 4))
    assert forward == ["fc_output", "softmax_output"]
    assert sorted(backward) == [
        "fc_backward_output0",
        "fc_backward_output1",
        "fc_backward_output2",
        "softmax_backward_output0",
        "softmax_backward_output1",
    ]
    forward, _ = names_seen(network(), True, train=False, data=(2, 4))
    assert forward == [
        "data",
        "fc_data",
        "fc_weight",
        "fc_weight",
        "fc_bias",
        "fc_bias",
        "fc_output",
        "softmax_data",
        "softmax_label",
        "softmax_label",
        "softmax_output",
    ]
    norm = mx.sym.BatchNorm(
        mx.sym.Convolution(mx.sym.Variable("data"), kernel=(1, 1), num_filter=2, name="conv"), name="bn"
    )
    assert names_seen(norm, False, train=False, data=(2, 3, 4, 4))[0] == [
        "conv_output",
        "bn_output",
        "bn_mean",
        "bn_var",
    ]


@pytest.mark.parametrize(
    "op, arguments, shape, gradients",
    [
        ("BatchNorm", {"fix_gamma": False}, (2, 3, 4, 4), 3),
        ("BatchNorm", {}, (2, 3, 4, 4), 3),
        ("LayerNorm", {}, (2, 3), 3),
        ("Convolution", {"kernel": (3, 3), "num_filter": 2}, (2, 3, 4, 4), 3),
        ("Deconvolution", {"kernel": (3, 3), "num_filter": 2, "no_bias": False}, (2, 3, 4, 4), 3),
        ("FullyConnected", {"num_hidden": 2}, (2, 3), 3),
        ("LeakyReLU", {"act_type": "prelu"}, (2, 3), 2),
        ("Embedding", {"input_dim": 4, "output_dim": 2}, (2,), 2),
    ],
)
def test_monitors_show_every_gradient_of_a_node(op, arguments, shape, gradients):
    net = getattr(mx.sym, op)(mx.sym.Variable("data"), name="node", **arguments)
    bound = net.simple_bind(mx.cpu(), data=shape)
    bound.forward(is_train=True)
    seen = []
    bound.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    bound.backward([mx.nd.ones(output.shape) for output in bound.outputs])
    shapes = [array.shape for array in bound.grad_arrays]
    assert sorted(seen) == [(f"node_backward_output{i}", shapes[i]) for i in range(gradients)]


def test_monitors_show_the_gradients_of_several_inputs():
    net = mx.sym.Concat(mx.sym.Variable("a"), mx.sym.Variable("b"), name="both")
    bound = net.simple_bind(mx.cpu(), a=(2, 1), b=(2, 3))
    bound.forward(is_train=True)
    seen = []
    bound.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    bound.backward([mx.nd.ones((2, 4))])
    assert sorted(seen) == [("both_backward_output0", (2, 1)), ("both_backward_output1", (2, 3))]


def test_the_line_that_memory_tools_parse_is_where_they_look_for_it():
    bound = (mx.sym.Variable("x") * 2).simple_bind(mx.cpu(), grad_req="null", x=(3 << 20,))
    assert re.search(r"^Total (\d+) MB allocated$", bound.debug_str(), re.MULTILINE).group(1) == "12"
    assert int(bound.debug_str().split("\n")[-3].split()[1]) == 12


# ---- arguments that have no effect


def test_an_iterator_without_labels_may_give_them_no_name():
    batches = mx.io.NDArrayIter(np.ones((4, 2)), None, 2, label_name=None)
    assert batches.provide_label == [] and len(list(batches)) == 2


def test_operators_without_parameters_take_any_argument(caplog):
    data = mx.nd.array([[1, -2]])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert mx.nd.zeros_like(data, dtype="float64").dtype == np.float32
    assert [record.getMessage() for record in caplog.records] == [
        "[zeros_like] has no parameters: the argument 'dtype' has no effect"
    ]
    x = mx.sym.Variable("x")
    net = mx.sym.BlockGrad(mx.sym.Flatten(x, axis=1), grad_scale=2, name="stop")
    assert net.attr_dict()["stop"] == {"grad_scale": "2"}
    for loaded in (net, mx.sym.load_json(net.tojson())):
        assert loaded.eval(x=data)[0].asnumpy().tolist() == [[1, -2]]
    with pytest.raises(mx.MXNetError, match="no parameter 'foo'; it has axis, keepdims, exclude"):
        mx.nd.sum(data, foo=1)
