"""Networks in the JSON of every generation of MXNet, each a few nodes, written for this purpose.

What changed over the versions: where a node's attributes are (`param` and `attr`, then `attr`, then `attrs`), how
many numbers refer to an output (two, then three), whether auxiliary states are inputs (since 0.9), how attributes that
steer execution are spelt (`lr_mult`, `weight_lr_mult`, then `__lr_mult__`), and whether the file says who wrote it.
"""

import json


def variable(name, **more):
    return dict({"op": "null", "name": name, "inputs": []}, **more)


def node(op, name, inputs, **more):
    return dict({"op": op, "name": name, "inputs": inputs}, **more)


def network(nodes, heads, version=None, **more):
    graph = {
        "nodes": nodes,
        "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"],
        "heads": heads,
    }
    if version:
        graph["attrs"] = {"mxnet_version": ["int", version]}
    graph.update(more)
    return json.dumps(graph)


def old(n, param=None):
    """A node as files before 0.9 had it."""
    return dict(n, param=param or {}, backward_source_id=-1)


def mlp(key, refs, version=None):
    """data -> fc -> softmax, with attributes under `key` and references of so many numbers."""

    def ref(*numbers):
        return [list(n) + [0] * (refs - 2) for n in numbers]

    nodes = [
        variable("data"),
        variable("fc_weight"),
        variable("fc_bias"),
        node("FullyConnected", "fc", ref((0, 0), (1, 0), (2, 0)), **{key: {"num_hidden": "3", "no_bias": "False"}}),
        variable("softmax_label"),
        node("SoftmaxOutput", "softmax", ref((3, 0), (4, 0)), **{key: {"grad_scale": "1"}}),
    ]
    return network(nodes, ref((5, 0)), version)


def batch_norm(version, with_aux, nodes_after=()):
    nodes = [variable("data"), variable("bn_gamma"), variable("bn_beta")]
    inputs = [[0, 0], [1, 0], [2, 0]]
    if with_aux:
        nodes += [variable("bn_moving_mean"), variable("bn_moving_var")]
        inputs += [[3, 0], [4, 0]]
    nodes.append(node("BatchNorm", "bn", inputs, param={"eps": "0.001", "momentum": "0.9", "fix_gamma": "True"}))
    return network([*nodes, *nodes_after], [[len(nodes) - 1 + len(nodes_after), 0]], version)


def fc_with(attributes, version=None, key="attr", weight_attributes=None):
    weight = variable("w", **({key: weight_attributes} if weight_attributes else {}))
    nodes = [
        variable("data"),
        weight,
        variable("b"),
        node("FullyConnected", "fc", [[0, 0], [1, 0], [2, 0]], **{key: dict({"num_hidden": "3"}, **attributes)}),
    ]
    return network(nodes, [[3, 0]], version)


def one(op, attributes, inputs=1, version=None, key="param"):
    names = ["a", "b", "c", "d", "e"][:inputs]
    nodes = [variable(n) for n in names]
    nodes.append(node(op, "x", [[i, 0] for i in range(inputs)], **{key: attributes}))
    return network(nodes, [[inputs, 0]], version)


def recurrent(mode, key, refs, version=None, head=0, **more):
    """An RNN with all its inputs; `key` names its attributes."""

    def ref(*numbers):
        return [list(n) + [0] * (refs - 2) for n in numbers]

    names = ["data", "lstm_parameters", "lstm_state"] + (["lstm_state_cell"] if mode == "lstm" else [])
    attributes = dict({"mode": mode, "num_layers": "2", "state_size": "4"}, **more)
    inputs = ref(*((i, 0) for i in range(len(names))))
    nodes = [variable(name) for name in names] + [node("RNN", "lstm_rnn", inputs, **{key: attributes})]
    return network(nodes, ref((len(names), head)), version)


CASES = {
    # where attributes are, and how outputs are referred to
    "param_two_numbers": mlp("param", 2),
    "attr_two_numbers": mlp("attr", 2),
    "attr_three_numbers": mlp("attr", 3, 904),
    "attrs_three_numbers": mlp("attrs", 3, 10100),
    "attr_three_numbers_1_0": mlp("attr", 3, 10000),
    "attrs_without_a_version": mlp("attrs", 3),
    "param_and_attr_in_one_node": network(
        [
            old(dict(variable("data"), attr={"ctx_group": "one"})),
            old(variable("fc_weight")),
            old(variable("fc_bias")),
            old(
                dict(
                    node("FullyConnected", "fc", [[0, 0], [1, 0], [2, 0]]),
                    attr={"ctx_group": "one", "lr_mult": "0.5"},
                ),
                {"num_hidden": "3"},
            ),
        ],
        [[3, 0]],
    ),
    "backward_source_id": network(
        [old(variable("a")), old(variable("b")), old(node("_Plus", "sum", [[0, 0], [1, 0]]))], [[2, 0]]
    ),
    "heads_of_three_numbers_inputs_of_two": network([variable("a"), node("tanh", "t", [[0, 0]])], [[1, 0, 0]]),
    "no_arg_nodes": json.dumps({"nodes": [variable("a"), node("tanh", "t", [[0, 0]])], "heads": [[1, 0]]}),
    "node_row_ptr": network(
        [variable("a"), node("tanh", "t", [[0, 0, 0]])], [[1, 0, 0]], 10901, node_row_ptr=[0, 1, 2]
    ),
    "heads_repeat": network([variable("a"), node("tanh", "t", [[0, 0]])], [[1, 0], [0, 0], [1, 0]]),
    "an_unused_node": network([variable("a"), variable("b"), node("tanh", "t", [[0, 0]])], [[2, 0]]),
    "numbers_not_text": network([variable("a"), node("_mul_scalar", "t", [[0, 0]], param={"scalar": 2})], [[1, 0]]),
    # recurrent layers: attributes were all written before 1.0, and got more later
    "rnn_0_9": recurrent(
        "lstm", "param", 2, 903, bidirectional="False", p="0.2", state_outputs="True", pkeep_="0.8", lstm_q_="True"
    ),
    "rnn_0_9_as_written": recurrent("lstm", "param", 2, 903, bidirectional="False", p="0.2", state_outputs="True"),
    "rnn_0_10": recurrent("gru", "attr", 3, 1000, p="0", bidirectional="True", state_outputs="False"),
    "rnn_1_0": recurrent("lstm", "attrs", 3, 10000, 2, p="0.0", bidirectional="False", state_outputs="True"),
    "rnn_1_9": recurrent(
        "lstm",
        "attrs",
        3,
        10901,
        projection_size="None",
        lstm_state_clip_min="None",
        lstm_state_clip_max="None",
        lstm_state_clip_nan="False",
        use_sequence_length="False",
    ),
    # auxiliary states, which were no inputs before 0.9
    "batch_norm_without_aux": batch_norm(None, False),
    "batch_norm_without_aux_0_8": batch_norm(800, False),
    "batch_norm_with_aux": batch_norm(901, True),
    "batch_norm_without_aux_1_0": batch_norm(10000, False),
    "batch_norm_only_data": network([variable("data"), node("BatchNorm", "bn", [[0, 0]])], [[1, 0]]),
    "batch_norm_only_data_0_9": network([variable("data"), node("BatchNorm", "bn", [[0, 0]])], [[1, 0]], 904),
    "batch_norm_with_attributes": network(
        [
            old(variable("data")),
            old(variable("g")),
            old(variable("be")),
            old(
                dict(node("BatchNorm", "bn", [[0, 0], [1, 0], [2, 0]]), attr={"ctx_group": "dev", "lr_mult": "3"}),
                {"eps": "0.01"},
            ),
        ],
        [[3, 0]],
    ),
    "two_batch_norms": network(
        [
            variable("data"),
            variable("g"),
            variable("be"),
            node("BatchNorm", "one", [[0, 0], [1, 0], [2, 0]]),
            node("BatchNorm", "two", [[3, 0], [1, 0], [2, 0]]),
            node("_Plus", "sum", [[3, 0], [4, 0]]),
        ],
        [[5, 0]],
    ),
    "batch_norm_head_output": batch_norm(None, False, [node("tanh", "after", [[3, 0]])]),
    # attributes that steer execution
    "bare_ctx_group": fc_with({"ctx_group": "dev"}),
    "bare_lr_mult": fc_with({"lr_mult": "2"}),
    "bare_wd_mult_on_variable": fc_with({}, weight_attributes={"wd_mult": "0"}),
    "bare_force_mirroring": fc_with({"force_mirroring": "True", "mirror_stage": "1"}),
    "weight_lr_mult": fc_with({"weight_lr_mult": "2", "bias_wd_mult": "0"}),
    "weight_lr_mult_over_own": fc_with({"weight_lr_mult": "2"}, weight_attributes={"__lr_mult__": "5"}),
    "weight_lr_mult_of_no_input": fc_with({"gamma_lr_mult": "2"}),
    "named_weight_lr_mult": fc_with({"fc_weight_lr_mult": "2"}),
    "weight_ctx_group": fc_with({"weight_ctx_group": "dev"}),
    "lr_mult_in_1_0": fc_with({"lr_mult": "2"}, 10000),
    "weight_lr_mult_in_1_0": fc_with({"weight_lr_mult": "2"}, 10000),
    "lr_mult_in_0_9_4": fc_with({"lr_mult": "2"}, 904),
    "lr_mult_in_1_9_1": fc_with({"lr_mult": "2"}, 10901, "attrs"),
    "lr_mult_on_variable_in_1_9_1": fc_with({}, 10901, "attrs", {"lr_mult": "2"}),
    "hidden_lr_mult": fc_with({"__lr_mult__": "2"}, 10000),
    "free_attribute": fc_with({"colour": "red"}),
    "free_hidden_attribute": fc_with({"__colour__": "red"}),
    "free_attribute_on_variable": fc_with({}, weight_attributes={"colour": "red"}),
    "weight_decay_attribute": fc_with({"weight_decay": "0.1"}),
    "profiler_scope": fc_with({"__profiler_scope__": "<unk>:"}, 10901, "attrs"),
    # operators under their older names, and parameters of older versions
    "_Plus": one("_Plus", {}, 2),
    "_Minus": one("_Minus", {}, 2),
    "_Mul": one("_Mul", {}, 2),
    "_Div": one("_Div", {}, 2),
    "_Power": one("_Power", {}, 2),
    "_Maximum": one("_Maximum", {}, 2),
    "_PlusScalar": one("_PlusScalar", {"scalar": "2"}),
    "_MinusScalar": one("_MinusScalar", {"scalar": "2"}),
    "_RMinusScalar": one("_RMinusScalar", {"scalar": "2"}),
    "_MulScalar": one("_MulScalar", {"scalar": "2"}),
    "_DivScalar": one("_DivScalar", {"scalar": "2"}),
    "_RDivScalar": one("_RDivScalar", {"scalar": "2"}),
    "_PowerScalar": one("_PowerScalar", {"scalar": "2"}),
    "scalar_on_left": one("_MinusScalar", {"scalar": "2", "scalar_on_left": "True"}),
    "ElementWiseSum": one("ElementWiseSum", {"num_args": "3"}, 3),
    "Softmax": one("Softmax", {"grad_scale": "1"}, 2),
    "SoftmaxOutput_old": one(
        "SoftmaxOutput", {"grad_scale": "1", "ignore_label": "-1", "multi_output": "False", "use_ignore": "False"}, 2
    ),
    "Convolution_0_7": one(
        "Convolution",
        {
            "cudnn_tune": "off",
            "dilate": "(1,1)",
            "kernel": "(3,3)",
            "no_bias": "False",
            "num_filter": "4",
            "num_group": "1",
            "pad": "(1,1)",
            "stride": "(1,1)",
            "workspace": "512",
        },
        3,
    ),
    "Convolution_missing_bias": one("Convolution", {"kernel": "(3,3)", "num_filter": "4"}, 2),
    "Convolution_missing_bias_1_0": one("Convolution", {"kernel": "(3,3)", "num_filter": "4"}, 2, 10000),
    "Pooling_0_7": one("Pooling", {"kernel": "(2,2)", "pad": "(0,0)", "pool_type": "max", "stride": "(2,2)"}),
    "Pooling_global": one("Pooling", {"global_pool": "True", "kernel": "(1, 1)", "pool_type": "avg"}),
    "Activation": one("Activation", {"act_type": "relu"}),
    "Flatten": one("Flatten", {}),
    "Reshape_target_shape": one("Reshape", {"target_shape": "(0, 6)"}),
    "Concat": one("Concat", {"dim": "1", "num_args": "2"}, 2),
    "Dropout": one("Dropout", {"p": "0.5"}),
    "SwapAxis": one("SwapAxis", {"dim1": "0", "dim2": "1"}),
    "BlockGrad": one("BlockGrad", {}),
    "Cast": one("Cast", {"dtype": "float16"}),
    "argmax_axis_minus_one": one("argmax", {"axis": "-1"}),
    "argmax_axis_minus_one_0_9_3": one("argmax", {"axis": "-1"}, 1, 903),
    "argmax_axis_minus_one_0_9_5": one("argmax", {"axis": "-1"}, 1, 905),
    "argmax_channel": one("argmax_channel", {}),
    "sum_old": one("sum", {"axis": "1", "keepdims": "False"}),
    "sum_empty_axis": one("sum", {"axis": "()"}),
    "long_python_2_tuple": one("Pooling", {"kernel": "(2L, 2L)", "pool_type": "max", "stride": "(2L, 2L)"}),
    "LeakyReLU_prelu": one("LeakyReLU", {"act_type": "prelu", "slope": "0.25"}, 1),
    "LinearRegressionOutput": one("LinearRegressionOutput", {"grad_scale": "1"}, 2),
    # mistakes
    "not_json": "{",
    "no_nodes": json.dumps({"heads": [[0, 0]]}),
    "unknown_operator": one("Frobnicate", {}),
    "unknown_parameter": one("Activation", {"act_type": "relu", "colour": "red"}),
    "forward_reference": network([node("tanh", "t", [[1, 0]]), variable("a")], [[0, 0]]),
    "output_beyond": network([variable("a"), node("tanh", "t", [[0, 3]])], [[1, 0]]),
    "reference_of_one_number": network([variable("a"), node("tanh", "t", [[0]])], [[1, 0]]),
    "too_many_inputs": one("tanh", {}, 2),
    "head_beyond": network([variable("a")], [[4, 0]]),
}
