# ruff: noqa: B023 (queries are answered immediately, before the loop goes on)
"""Symbol facts and .params files recorded from MXNet 1.9.1.

Each function in NETS builds one network; its source is stored next to what
the wheel answered, so that the same network can be built elsewhere by name.
Every network is built in a fresh process with automatic names starting at 0.
"""

import inspect
import json

import mxnet as mx
import numpy as np

sym = mx.sym


# ------------------------------------------------------------- networks


def mlp():
    data = sym.Variable("data")
    net = sym.FullyConnected(data=data, num_hidden=128, name="fc1")
    net = sym.Activation(data=net, act_type="relu", name="relu1")
    net = sym.FullyConnected(data=net, num_hidden=10, name="fc2")
    return sym.SoftmaxOutput(data=net, name="softmax")


def mlp_automatic_names():
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=8)
    net = sym.Activation(net, act_type="tanh")
    net = sym.FullyConnected(net, num_hidden=4, no_bias=True)
    net = sym.Activation(net, act_type="sigmoid")
    net = sym.Dropout(net, p=0.25)
    return sym.SoftmaxOutput(net)


def lenet():
    data = sym.Variable("data")
    net = sym.Convolution(data=data, kernel=(5, 5), num_filter=20, name="conv1")
    net = sym.Activation(data=net, act_type="tanh", name="tanh1")
    net = sym.Pooling(data=net, pool_type="max", kernel=(2, 2), stride=(2, 2), name="pool1")
    net = sym.Convolution(data=net, kernel=(5, 5), num_filter=50, name="conv2")
    net = sym.Activation(data=net, act_type="tanh", name="tanh2")
    net = sym.Pooling(data=net, pool_type="max", kernel=(2, 2), stride=(2, 2), name="pool2")
    net = sym.Flatten(data=net, name="flatten")
    net = sym.FullyConnected(data=net, num_hidden=500, name="fc1")
    net = sym.Activation(data=net, act_type="tanh", name="tanh3")
    net = sym.FullyConnected(data=net, num_hidden=10, name="fc2")
    return sym.SoftmaxOutput(data=net, name="softmax")


def residual():
    data = sym.Variable("data")
    net = sym.BatchNorm(data=data, fix_gamma=True, eps=2e-5, momentum=0.9, name="bn_data")
    net = sym.Convolution(
        data=net, num_filter=8, kernel=(3, 3), stride=(1, 1), pad=(1, 1), no_bias=True, name="conv0", workspace=256
    )
    for unit in range(2):
        name = "unit%d" % unit
        left = sym.BatchNorm(data=net, fix_gamma=False, eps=2e-5, momentum=0.9, name=name + "_bn1")
        left = sym.Activation(data=left, act_type="relu", name=name + "_relu1")
        right = net
        if unit == 1:
            right = sym.Convolution(
                data=left, num_filter=16, kernel=(1, 1), stride=(2, 2), no_bias=True, name=name + "_sc"
            )
        left = sym.Convolution(
            data=left,
            num_filter=8 * (unit + 1),
            kernel=(3, 3),
            stride=(unit + 1, unit + 1),
            pad=(1, 1),
            no_bias=True,
            name=name + "_conv1",
        )
        net = left + right
    net = sym.Pooling(data=net, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")
    net = sym.FullyConnected(data=sym.Flatten(data=net), num_hidden=10, name="fc1")
    return sym.SoftmaxOutput(data=net, name="softmax")


def concat():
    data = sym.Variable("data")
    towers = [
        sym.Convolution(data=data, kernel=(k, k), pad=(k // 2, k // 2), num_filter=k + 1, name="tower%d" % k)
        for k in (1, 3, 5)
    ]
    net = sym.Concat(*towers, name="concat")
    net = sym.Concat(net, data, dim=1)
    return sym.Pooling(net, kernel=(2, 2), pool_type="avg", pooling_convention="full", name="pool")


def concat_many():
    parts = [sym.Variable("v%d" % i) for i in range(12)]
    return sym.Concat(*parts, dim=0, name="all")


def arithmetic():
    a = sym.Variable("a")
    b = sym.Variable("b")
    net = (a + b) * 2 - 1
    net = net / 3.5 + 1.0
    net = 2 - net
    net = 1.5 / net
    net = net**2
    net = (-net) * (a - b) / (a * b)
    return net**b


def comparisons():
    a = sym.Variable("a")
    b = sym.Variable("b")
    return sym.Group([a == b, a != b, a > b, a >= b, a < b, a <= b, a == 1, a != 1, a > 0.5, a >= 2, a < 1e-7, a <= -3])


def attributes():
    data = sym.Variable("data", attr={"mood": "angry"}, lr_mult=0.5)
    weight = sym.Variable(
        "fc1_weight", lr_mult=2, wd_mult=0.0, shape=(4, 0), dtype="float32", init=mx.init.Constant(0.5)
    )
    with mx.AttrScope(ctx_group="stage1", __lr_mult__="3"):
        net = sym.FullyConnected(data=data, weight=weight, num_hidden=4, name="fc1")
        net = sym.Activation(net, act_type="relu", name="act1", attr={"mirror_stage": "True"})
    with mx.AttrScope(ctx_group="stage2"):
        with mx.AttrScope(__depth__="2"):
            net = sym.FullyConnected(net, num_hidden=3, name="fc2")
        net = sym.SoftmaxOutput(net, name="softmax")
    return net


def grouped():
    data = sym.Variable("data")
    fc = sym.FullyConnected(data, num_hidden=6, name="fc")
    first = sym.SoftmaxOutput(fc, name="softmax")
    second = sym.LinearRegressionOutput(sym.sum(fc, axis=1), name="reg")
    return sym.Group([first, sym.BlockGrad(fc, name="seen"), second, data])


def batch_norm_outputs():
    data = sym.Variable("data")
    net = sym.BatchNorm(data, output_mean_var=True, axis=-1, name="bn")
    return sym.Group([net[0] * 2, net[2], net[1]])


def shared_weights():
    weight = sym.Variable("shared_weight")
    bias = sym.Variable("shared_bias")
    left = sym.FullyConnected(sym.Variable("left"), weight=weight, bias=bias, num_hidden=5, name="fc_left")
    right = sym.FullyConnected(sym.Variable("right"), weight=weight, bias=bias, num_hidden=5, name="fc_right")
    return sym.MakeLoss(sym.sum(sym.square(left - right), axis=1), grad_scale=0.5, normalization="batch", name="loss")


def composed():
    stem = sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="stem")
    head = sym.FullyConnected(sym.Variable("y"), num_hidden=2, name="head")
    return head(y=stem, name="joined")


def prefixed():
    with mx.name.Prefix("net_"):
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=3)
        net = sym.Activation(net, act_type="relu", name="act")
    return sym.FullyConnected(net, num_hidden=2)


def shapes():
    data = sym.Variable("data")
    net = sym.Reshape(data, shape=(0, -4, 2, -1, -2))
    net = sym.transpose(net, axes=(0, 2, 1, 3))
    net = sym.slice(net, begin=(0, None, 1), end=(None, 2, None), step=(1, 1, None))
    net = sym.Cast(net, dtype="float64")
    net = sym.mean(net, axis=(2, 3), keepdims=True)
    return sym.broadcast_add(net, sym.Variable("offset"))


def creation():
    a = sym.zeros(shape=(2, 3))
    b = sym.ones(shape=(2, 3), dtype="int32")
    c = sym.Cast(b, dtype="float32")
    return a + c + sym.Variable("x") + sym.random.uniform(low=-1, high=1, shape=(2, 3))


def backward_inference():
    fc = sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="fc")
    net = fc + sym.Variable("y")
    return sym.Concat(net, sym.Variable("z"), dim=1, name="both")


def inputs_of_label():
    fc = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc")
    return sym.SoftmaxOutput(
        fc,
        label=sym.Variable("target"),
        grad_scale=0.5,
        use_ignore=True,
        ignore_label=0,
        multi_output=False,
        normalization="valid",
        name="sm",
    )


def single_variable():
    return sym.Variable("alone")


def internal_output():
    net = mlp()
    return net.get_internals()["relu1_output"]


NETS = [
    # (builder, shape queries, type queries)
    (
        mlp,
        [
            {"data": (32, 784)},
            {"data": (32, 784), "softmax_label": (32,)},
            {"fc1_weight": (128, 784)},
            {"fc1_weight": (128, 0)},
            {"data": (0, 784)},
            {"data": (32, 0)},
            {"softmax_label": (16,)},
            {"data": (32, 784), "fc1_weight": (128, 783)},
            {"data": (32, 784), "softmax_label": (31,)},
            {"data": (32, 28, 28)},
            {"data": (784,)},
            {},
        ],
        [
            {},
            {"data": "float32"},
            {"data": "float64"},
            {"data": "float16"},
            {"data": "int32"},
            {"fc2_bias": "float64"},
            {"data": "float32", "fc1_weight": "float64"},
        ],
    ),
    (mlp_automatic_names, [{"data": (4, 6)}], [{"data": "float32"}]),
    (
        lenet,
        [
            {"data": (8, 1, 28, 28)},
            {"data": (0, 1, 28, 28)},
            {"data": (8, 0, 28, 28)},
            {"conv1_weight": (20, 1, 5, 5)},
            {"data": (8, 28, 28)},
            {"data": (8, 1, 4, 4)},
            {"fc1_weight": (500, 800)},
        ],
        [{"data": "float32"}, {}],
    ),
    (
        residual,
        [{"data": (2, 3, 8, 8)}, {"data": (0, 3, 8, 8)}, {"bn_data_gamma": (3,)}, {"data": (2, 3, 7, 9)}],
        [{"data": "float32"}, {"data": "float16"}, {"data": "float64"}],
    ),
    (concat, [{"data": (2, 3, 6, 6)}, {"data": (2, 0, 6, 6)}, {"data": (2, 3, 6)}], [{"data": "float32"}]),
    (
        concat_many,
        [
            {"v0": (2, 3)},
            dict([("v%d" % i, (i + 1, 3)) for i in range(12)]),
            dict([("v%d" % i, (i + 1, 3 + i)) for i in range(12)]),
        ],
        [{"v3": "int32"}],
    ),
    (
        arithmetic,
        [
            {"a": (2, 3)},
            {"b": (2, 3)},
            {"a": (2, 0), "b": (0, 3)},
            {"a": (2, 3), "b": (3, 2)},
            {"a": (2, 3), "b": (1, 3)},
        ],
        [{"a": "float32"}, {"b": "int32"}, {"a": "float32", "b": "float64"}],
    ),
    (comparisons, [{"a": (5,)}], [{"a": "float32"}, {"a": "int32"}]),
    (attributes, [{"data": (2, 7)}, {}], [{"data": "float32"}, {}]),
    (grouped, [{"data": (4, 5)}], [{"data": "float32"}]),
    (batch_norm_outputs, [{"data": (4, 5, 3)}], [{"data": "float32"}, {"data": "float16"}]),
    (
        shared_weights,
        [
            {"left": (4, 7)},
            {"left": (4, 7), "right": (4, 7)},
            {"left": (4, 7), "right": (4, 8)},
            {"right": (4, 7), "left": (0, 7)},
        ],
        [{"left": "float32"}, {"shared_bias": "float64"}],
    ),
    (composed, [{"x": (2, 4)}], [{"x": "float32"}]),
    (prefixed, [{"data": (2, 4)}], [{"data": "float32"}]),
    (
        shapes,
        [{"data": (3, 4, 5)}, {"data": (3, 4, 5), "offset": (3, 2, 1, 1)}, {"data": (3, 4, 5), "offset": (1, 1, 4, 1)}],
        [{"data": "int32"}, {}],
    ),
    (creation, [{}, {"x": (2, 3)}, {"x": (3, 2)}], [{}]),
    (
        backward_inference,
        [
            {"y": (4, 3), "x": (0, 5), "z": (0, 2)},
            {"y": (4, 3), "x": (0, 5), "z": (4, 2)},
            {"y": (4, 3), "z": (4, 2)},
            {"x": (4, 5)},
            {"z": (4, 2), "x": (0, 5)},
            {"fc_weight": (3, 5), "y": (4, 3), "z": (4, 1)},
            {"y": (4, 2)},
        ],
        [{"z": "float64"}, {"y": "float32", "z": "int32"}],
    ),
    (inputs_of_label, [{"data": (6, 2)}], [{"data": "float64"}]),
    (single_variable, [{}, {"alone": (2, 2)}], [{}, {"alone": "int8"}]),
    (internal_output, [{"data": (2, 3)}], [{"data": "float32"}]),
]


# ------------------------------------------------ things that must not work


def unknown_operator_attribute():
    sym.FullyConnected(sym.Variable("x"), num_hidden=2, colour="red")


def missing_required_attribute():
    sym.FullyConnected(sym.Variable("x"))


def bad_attribute_value():
    sym.Activation(sym.Variable("x"), act_type="fast")


def negative_hidden():
    sym.FullyConnected(sym.Variable("x"), num_hidden=-1).infer_shape(x=(2, 2))


def load_json_not_json():
    sym.load_json("not json")


def load_json_unknown_operator():
    text = mlp().tojson().replace('"FullyConnected"', '"NoSuchOperator"')
    sym.load_json(text)


def compose_unknown_name():
    mlp()(nosuch=sym.Variable("z"))


def index_unknown_output():
    mlp()["nosuch_output"]


def index_out_of_range():
    mlp()[1]


def two_arguments_of_one_name_bind():
    x = sym.Variable("x")
    y = sym.Variable("x")
    (x + y).simple_bind(mx.cpu(), x=(2, 2))


def infer_shape_unknown_argument():
    mlp().infer_shape(nosuch=(2, 2))


def infer_type_conflict():
    net = sym.Variable("a") + sym.Variable("b")
    net.infer_type(a="float32", b="float64")


def bind_missing_argument():
    mlp().bind(mx.cpu(), {"data": mx.nd.zeros((2, 3))})


def bind_wrong_shape():
    net = sym.Variable("a") + sym.Variable("b")
    net.bind(mx.cpu(), {"a": mx.nd.zeros((2,)), "b": mx.nd.zeros((3,))})


def bind_bad_grad_req():
    net = sym.Variable("a") * 2
    net.bind(mx.cpu(), {"a": mx.nd.zeros((2,))}, grad_req="sometimes")


def backward_without_training_forward():
    net = sym.Variable("a") * 2
    ex = net.bind(mx.cpu(), {"a": mx.nd.zeros((2,))}, args_grad={"a": mx.nd.zeros((2,))})
    ex.forward(is_train=False)
    ex.backward(mx.nd.ones((2,)))
    mx.nd.waitall()


def backward_without_head_gradient():
    net = sym.Variable("a") * 2
    ex = net.bind(mx.cpu(), {"a": mx.nd.zeros((2,))}, args_grad={"a": mx.nd.zeros((2,))})
    ex.forward(is_train=True)
    ex.backward()
    mx.nd.waitall()


def attribute_not_a_string():
    sym.Variable("x", attr={"depth": 3})


def scope_key_unknown_to_operator():
    with mx.AttrScope(depth="2"):
        sym.FullyConnected(sym.Variable("x"), num_hidden=2)


def unknown_variable_keyword():
    sym.Variable("x", depth="3")


def simple_bind_incomplete():
    mlp().simple_bind(mx.cpu(), softmax_label=(3,))


def load_missing_file():
    mx.nd.load("no_such_file.params")


BAD = [
    unknown_operator_attribute,
    missing_required_attribute,
    bad_attribute_value,
    negative_hidden,
    load_json_not_json,
    load_json_unknown_operator,
    compose_unknown_name,
    index_unknown_output,
    index_out_of_range,
    two_arguments_of_one_name_bind,
    infer_shape_unknown_argument,
    infer_type_conflict,
    bind_missing_argument,
    bind_wrong_shape,
    bind_bad_grad_req,
    backward_without_training_forward,
    backward_without_head_gradient,
    attribute_not_a_string,
    scope_key_unknown_to_operator,
    unknown_variable_keyword,
    simple_bind_incomplete,
    load_missing_file,
]


# ---------------------------------------------------------------- recording


def lists(triple):
    """infer_shape's answer as JSON; None where nothing was inferred."""
    if triple[0] is None:
        return None
    return {
        key: [None if s is None else list(s) for s in part] for key, part in zip(("args", "outputs", "aux"), triple)
    }


def types(triple):
    if triple[0] is None:
        return None
    return {
        key: [None if t is None else np.dtype(t).name for t in part]
        for key, part in zip(("args", "outputs", "aux"), triple)
    }


def attempt(function):
    try:
        return {"answer": function()}
    except Exception:  # noqa: B902
        return {"error": True}


def describe(builder, shape_queries, type_queries):
    net = builder()
    fact = {
        "tojson": net.tojson(),
        "name": net.name,
        "list_arguments": net.list_arguments(),
        "list_outputs": net.list_outputs(),
        "list_auxiliary_states": net.list_auxiliary_states(),
        "list_inputs": net.list_inputs(),
        "internals": net.get_internals().list_outputs(),
        "attr_dict": net.attr_dict(),
        "debug_str": net.debug_str(),
    }
    fact["list_attr"] = attempt(net.list_attr)
    children = net.get_children()
    fact["children"] = None if children is None else children.list_outputs()
    fact["infer_shape"] = [
        dict({"given": {k: list(v) for k, v in given.items()}}, **attempt(lambda: lists(net.infer_shape(**given))))
        for given in shape_queries
    ]
    fact["infer_shape_partial"] = [
        dict(
            {"given": {k: list(v) for k, v in given.items()}},
            **attempt(lambda: lists(net.infer_shape_partial(**given))),
        )
        for given in shape_queries
    ]
    fact["infer_type"] = [
        dict({"given": given}, **attempt(lambda: types(net.infer_type(**given)))) for given in type_queries
    ]
    again = sym.load_json(net.tojson())
    fact["json_round_trip_equal"] = again.tojson() == net.tojson()
    return fact


def params_arrays():
    rng = np.random.RandomState(17)
    arrays = {}
    for dtype in ("float32", "float64", "float16", "int32", "uint8", "int8", "int64"):
        if np.dtype(dtype).kind == "f":
            arrays[dtype] = (rng.randint(-99, 99, (2, 3)) / 16).astype(dtype)
        else:
            low = 0 if dtype == "uint8" else -99
            arrays[dtype] = rng.randint(low, 99, (3, 2)).astype(dtype)
    return arrays


def params_files():
    """{file name: list of arrays or {name: array}}."""
    arrays = params_arrays()
    one = np.array([2.5], "float32")
    files = {
        "list.params": [arrays["float32"], one, arrays["int32"]],
        "single.params": [np.arange(6, dtype="float32").reshape(1, 2, 3)],
        "model.params": {
            "arg:fc1_weight": arrays["float32"],
            "arg:fc1_bias": one,
            "arg:scale": np.array([0.125], "float64"),
            "aux:bn_moving_mean": np.arange(4, dtype="float32"),
            "aux:bn_moving_var": np.ones((4,), "float32"),
        },
        "types.params": arrays,
        "odd.params": {"odd": np.arange(21, dtype="float32").reshape(3, 1, 7), "": one, "name with spaces/\u00e9": one},
    }
    for dtype, array in arrays.items():
        files["%s.params" % dtype] = {"x": array}
    return files


def write_params(folder):
    names = []
    for name, content in params_files().items():
        if isinstance(content, dict):
            value = {k: mx.nd.array(v, dtype=v.dtype) for k, v in content.items()}
        else:
            value = [mx.nd.array(v, dtype=v.dtype) for v in content]
        mx.nd.save(str(folder / name), value)
        names.append(name)
    mx.nd.save(str(folder / "empty.params"), [])
    return names


def record(out, in_child, encode, write_json):
    nets = []
    for builder, shape_queries, type_queries in NETS:
        how, fact = in_child(describe, builder, shape_queries, type_queries)
        if how != "ok":
            print("    %s: %s %s" % (builder.__name__, how, fact))
            continue
        nets.append(dict({"id": builder.__name__, "source": inspect.getsource(builder)}, **fact))
    bad = []
    for function in BAD:
        how, _ = in_child(function)
        bad.append({"id": function.__name__, "source": inspect.getsource(function), "error": how != "ok"})
    text = json.dumps({"format": "symbind-facts-1", "mxnet": mx.__version__, "nets": nets, "bad": bad}, indent=1)
    (out / "facts.json").write_text(text + "\n")

    folder = out / "params"
    folder.mkdir(exist_ok=True)
    how, names = in_child(write_params, folder)
    assert how == "ok", names
    expected = [{"id": "empty.params", "names": None, "arrays": []}]
    for name, content in params_files().items():
        keyed = isinstance(content, dict)
        expected.append(
            {
                "id": name,
                "names": list(content) if keyed else None,
                "arrays": [encode(v) for v in (content.values() if keyed else content)],
            }
        )
    write_json(folder / "expected.json", {"format": "symbind-params-1", "files": expected})
    print("%-16s %4d networks %3d bad %3d params files" % ("facts", len(nets), len(bad), len(expected)))
