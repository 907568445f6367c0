"""Symbols: names, attributes, inference, composition, files."""

import copy
import json
import pickle

import numpy as np
import pytest

import symbind as mx


def mlp():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")


def test_lists_and_inference():
    net = mlp()
    arguments = ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias", "softmax_label"]
    assert net.list_arguments() == arguments and net.list_outputs() == ["softmax_output"]
    shapes, outs, aux = net.infer_shape(data=(5, 4))
    assert dict(zip(arguments, shapes))["fc1_weight"] == (8, 4) and outs == [(5, 3)] and aux == []
    with pytest.warns(UserWarning, match="shapes.*: data, fc1_weight, .*fc2_weight"):
        assert net.infer_shape() == (None, None, None)
    with pytest.warns(UserWarning, match="types.*: data, fc1_weight"):
        assert net.infer_type() == (None, None, None)
    assert net.infer_type_partial()[1] == [None]
    assert net.infer_shape_partial(data=(0, 4))[0][0] == (0, 4)
    assert net.infer_type(data=np.float64)[1] == [np.float64]
    with pytest.raises(mx.MXNetError, match="fc1"):
        net.infer_shape(data=(5, 4), fc1_weight=(8, 5))


def test_internals_children_and_indexing():
    net = mlp()
    internals = net.get_internals()
    assert internals["relu1_output"].name == "relu1"
    assert [output.name for output in internals][-1] == "softmax"
    assert net.get_children().list_outputs() == ["fc2_output", "softmax_label"]
    group = mx.sym.Group([net, internals["fc1_output"]])
    assert group.list_outputs() == ["softmax_output", "fc1_output"] and len(group) == 2
    assert group.name is None and repr(group) == "<Symbol group [softmax, fc1]>"
    assert group[1].name == "fc1" and group[-1].name == "fc1"
    with pytest.raises(IndexError):
        group[2]
    with pytest.raises(ValueError):
        group["nothing"]
    with pytest.raises(TypeError):
        mx.sym.Group([net, None])


def test_attributes_and_scopes():
    with mx.AttrScope(ctx_group="stage1", lr_mult="0.1"):
        net = mx.sym.FullyConnected(mx.sym.Variable("data", wd_mult=2), num_hidden=2, name="fc")
    assert net.attr("ctx_group") == "stage1" and net.attr("lr_mult") == "0.1"
    assert net.attr_dict()["fc_weight"]["__ctx_group__"] == "stage1"
    assert net.attr_dict()["data"]["__wd_mult__"] == "2"
    with pytest.raises(DeprecationWarning, match="attr_dict"):  # as MXNet does, where old versions gave all attributes
        net.list_attr(recursive=True)
    net._set_attr(__mood__="great")
    assert net.attr("__mood__") == "great" and net.attr("none") is None
    with pytest.raises(mx.MXNetError, match="mood"):
        net._set_attr(mood="great")  # an operator takes its parameters for such names
    with mx.AttrScope(mood="fine"):
        assert mx.sym.Variable("x").attr("mood") == "fine"
    with pytest.raises(ValueError):
        mx.AttrScope(number=1)
    variable = mx.sym.Variable("v", shape=(2, 3), init=mx.init.One(), dtype="float16", __layout__="TNC")
    assert variable.attr("__shape__") == "(2, 3)" and variable.attr("__layout__") == "TNC"
    with pytest.raises(ValueError):
        mx.sym.Variable("v", unknown=1)


def test_names():
    with mx.name.NameManager():
        assert mx.sym.Flatten(mx.sym.Variable("x")).name == "flatten0"
        assert mx.sym.Flatten(mx.sym.Variable("x")).name == "flatten1"
        assert mx.sym.Softmax(mx.sym.Variable("x")).list_arguments() == ["x", "softmax0_label"]
    with mx.name.Prefix("net_"):
        assert mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=1, name="fc").list_arguments() == [
            "x",
            "net_fc_weight",
            "net_fc_bias",
        ]

    class Shouting(mx.name.NameManager):
        def get(self, name, hint):
            return super().get(name, hint).upper()

    with Shouting():
        assert mx.sym.Flatten(mx.sym.Variable("x")).name == "FLATTEN0"


def test_composition_and_arithmetic():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    net = 2 * a + b / 4 - (a**2) * (1 - b) + (a > b) + (3 == a)
    x, y = np.array([1.0, 3.0], np.float32), np.array([2.0, 5.0], np.float32)
    (out,) = net.eval(ctx=mx.cpu(), a=mx.nd.array(x), b=mx.nd.array(y))
    np.testing.assert_allclose(out.asnumpy(), 2 * x + y / 4 - x**2 * (1 - y) + (x > y) + (x == 3), rtol=1e-6)
    inner = mx.sym.exp(mx.sym.Variable("c"), name="e")
    assert net(a=inner).list_arguments() == ["c", "b"]
    with pytest.raises(TypeError):
        net(a=3)
    with pytest.raises(mx.base.NotImplementedForSymbol):
        bool(a)
    with pytest.raises(mx.base.NotImplementedForSymbol):
        a.asnumpy()
    with pytest.raises(TypeError):
        a + "text"


def test_methods_are_operators():
    x = mx.sym.Variable("x")
    values = mx.nd.arange(6).reshape((2, 3))
    for net, expected in [
        (x.sum(axis=1), [3, 12]),
        (x.reshape((3, 2)).transpose().astype("float64"), [[0, 2, 4], [1, 3, 5]]),
        (x.reshape(-1), [0, 1, 2, 3, 4, 5]),
    ]:
        np.testing.assert_array_equal(net.eval(x=values)[0].asnumpy(), expected)


def test_files_and_copies(tmp_path):
    net = mlp()
    path = str(tmp_path / "net-symbol.json")
    net.save(path)
    for other in (
        mx.sym.load(path),
        mx.sym.load_json(net.tojson()),
        pickle.loads(pickle.dumps(net)),
        copy.copy(net),
        copy.deepcopy(net),
    ):
        assert other.tojson() == net.tojson()
    with pytest.raises(mx.MXNetError):
        mx.sym.load_json("{")
    with pytest.raises(mx.MXNetError, match="nowhere"):
        mx.sym.load(str(tmp_path / "nowhere.json"))
    with pytest.raises(TypeError):
        mx.sym.load_json(None)


def test_functions_of_a_symbol_and_a_number_are_named_as_in_mxnet():
    x = mx.sym.Variable("x")
    with mx.name.NameManager():
        assert mx.sym.maximum(x, 0).name == "_maximumscalar0"
        assert mx.sym.minimum(0, x).name == "_minimumscalar0"
        assert mx.sym.pow(x, 2).name == "_powerscalar0"
        assert mx.sym.pow(2, x).name == "_rpowerscalar0"
        assert mx.sym.hypot(x, 2).name == "_hypotscalar0"
        assert mx.sym.maximum(x, x).name == "_maximum0"


def test_numbers_of_numpy_go_with_symbols():
    x = mx.sym.Variable("x")
    net = mx.sym.Group([np.sqrt(4) * x, np.float32(1) - x, x / np.float64(2), np.int64(8) / x, np.float32(2) < x])
    values = [output.asscalar() for output in net.eval(x=mx.nd.array([4]))]
    assert values == [8, -3, 2, 2, 1]
    for mixed in (lambda: np.ones(2) * x, lambda: x + np.ones(2), lambda: np.exp(x)):
        with pytest.raises(TypeError, match="of a Symbol"):
            mixed()


def test_a_pickle_of_mxnet_s_is_read():
    text = mlp().tojson()
    net = mx.sym.Symbol(None)
    net.__setstate__({"handle": text})
    assert net.tojson() == text
    with pytest.raises(mx.MXNetError):
        net.__setstate__({"handle": "{"})
    assert net.tojson() == text


def test_methods_with_an_inplace_argument_make_the_same_nodes():
    x = mx.sym.Variable("x")
    for plain, in_place in (
        (x.expand_dims(axis=1, name="n"), x.expand_dims(1, inplace=True, name="n")),
        (x.squeeze(axis=1, name="n"), x.squeeze(1, inplace=True, name="n")),
        (x.flatten(name="n"), x.flatten(inplace=True, name="n")),
    ):
        assert plain.tojson() == in_place.tojson()
    assert x.diag(1).attr("k") == "1"
    assert x.optimize_for("MKLDNN") is x and x.get_backend_symbol("default") is x
    with pytest.raises(mx.MXNetError, match="backward"):
        x.gradient(["x"])


def test_remainders_are_named_as_in_mxnet():
    x = mx.sym.Variable("x")
    with mx.name.NameManager():
        assert [(x % 2).name, (2 % x).name, (x % x).name] == ["_modscalar0", "_rmodscalar0", "_mod0"]


def test_scalars_are_written_as_in_mxnet():
    """Scripts that resume compare the JSON of a network with that of a file."""
    x = mx.sym.Variable("x")
    scalar = lambda net: json.loads(net.tojson())["nodes"][-1]["attrs"]["scalar"]  # noqa: E731
    assert [scalar(each) for each in (x + 2, x * 0.5, 2 - x, -x, x**2)] == ["2", "0.5", "2", "-1.0", "2"]
    pairs = (mx.sym.maximum(x, 0), mx.sym.minimum(2, x), mx.sym.hypot(x, 0.5), mx.sym.pow(x, np.int64(3)))
    assert [scalar(each) for each in pairs] == ["0", "2", "0.5", "3"]


def test_nodes_of_other_namespaces_are_named_after_their_functions():
    x = mx.sym.Variable("x")
    with mx.name.NameManager():
        nets = (
            mx.sym.contrib.MultiBoxPrior(x),
            mx.contrib.symbol.Proposal(x, x, x),
            mx.sym.linalg.gemm2(x, x),
            mx.sym.image.to_tensor(x),
            mx.sym.concat(x, x),
            mx.sym.elemwise_add(x, x),
        )
        assert [each.name for each in nets] == [
            "multiboxprior0",
            "proposal0",
            "gemm20",
            "to_tensor0",
            "concat0",
            "elemwise_add0",
        ]
        deformable = mx.sym.contrib.DeformableConvolution(x, x, kernel=(3, 3), num_filter=2)
        assert deformable.list_arguments()[1:] == ["deformableconvolution0_weight", "deformableconvolution0_bias"]
    with mx.name.Prefix("a_"):
        assert mx.sym.contrib.box_nms(x).name == "a_box_nms0"
        assert mx.sym.contrib.box_nms(x, name="n").name == "a_n"


def test_thousands_of_arguments_are_given_by_name():
    names = [f"input{i}" for i in range(2500)]
    variables = [mx.sym.Variable(name) for name in names]
    net = mx.sym.add_n(*variables)
    shapes = dict.fromkeys(names, (2,))
    assert net.infer_shape(**shapes)[1] == [(2,)]
    assert net.infer_shape_partial(**shapes)[1] == [(2,)]
    types = dict.fromkeys(names, "float32")
    assert net.infer_type(**types)[1] == [np.float32] and net.infer_type_partial(**types)[1] == [np.float32]
    other = net(**{name: mx.sym.Variable("other_" + name) for name in names})
    assert other.list_arguments() == ["other_" + name for name in names]
    ones = dict.fromkeys(names, mx.nd.ones((2,)))
    np.testing.assert_array_equal(net.eval(mx.cpu(), **ones)[0].asnumpy(), [2500, 2500])
    executor = net.simple_bind(mx.cpu(), grad_req="null", **shapes)
    np.testing.assert_array_equal(executor.forward(is_train=False, **ones)[0].asnumpy(), [2500, 2500])
    wider = executor.reshape(allow_up_sizing=True, **dict.fromkeys(names, (3,)))
    assert wider.forward()[0].shape == (3,)


def test_any_name_is_an_argument():
    net = mx.sym.Variable("self") * mx.sym.Variable("kwargs")
    assert net.infer_shape(self=(2,), kwargs=(2,))[1] == [(2,)]
    executor = net.simple_bind(mx.cpu(), self=(1,), kwargs=(1,))
    outputs = executor.forward(self=mx.nd.full((1,), 3), kwargs=mx.nd.full((1,), 2))
    assert outputs[0].asscalar() == 6
    assert net(self=mx.sym.Variable("a")).list_arguments() == ["a", "kwargs"]


def test_a_warning_about_inference_names_the_line_of_the_call():
    with pytest.warns(UserWarning, match="shapes") as warnings:
        mlp().infer_shape()
    assert warnings[0].filename == __file__


def test_a_missing_argument_is_named():
    with pytest.raises(TypeError, match="Symbol.simple_bind.*'ctx'"):
        mlp().simple_bind()


@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 4)])
def test_rows_are_masked_by_a_vector(shape):
    values, mask = np.arange(np.prod(shape)).reshape(shape) + 1.0, [0, 1, 2]
    expected = values * np.reshape(mask, (3,) + (1,) * (len(shape) - 1))
    net = mx.sym.element_mask(mx.sym.Variable("rows"), rhs=mx.sym.Variable("mask"), name="masked")
    assert net.list_outputs() == ["masked_output"]
    executor = net.simple_bind(mx.cpu(), rows=shape, mask=(3,))
    output = executor.forward(is_train=True, rows=mx.nd.array(values), mask=mx.nd.array(mask))[0]
    np.testing.assert_array_equal(output.asnumpy(), expected)
    executor.backward(mx.nd.ones(shape))
    np.testing.assert_array_equal(executor.grad_dict["rows"].asnumpy(), expected / values)
    np.testing.assert_array_equal(mx.nd.element_mask(mx.nd.array(values), mx.nd.array(mask)).asnumpy(), expected)
