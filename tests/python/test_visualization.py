"""print_summary and plot_network."""

import sys
import types

import numpy as np
import pytest

import symbind as mx


def network():
    data = mx.sym.Variable("data")
    body = mx.sym.Convolution(data, kernel=(3, 3), num_filter=8, name="conv1")
    body = mx.sym.BatchNorm(body, name="bn1")
    body = mx.sym.Activation(body, act_type="relu", name="relu1")
    body = mx.sym.Pooling(body, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    side = mx.sym.Convolution(body, kernel=(3, 3), num_filter=8, pad=(1, 1), no_bias=True, name="conv2")
    body = mx.sym.Concat(mx.sym.elemwise_add(body, side, name="plus"), side, name="cat")
    body = mx.sym.FullyConnected(mx.sym.Flatten(body, name="flat"), num_hidden=10, name="fc")
    return mx.sym.SoftmaxOutput(body, name="softmax")


def summary(capsys, *args, **kwargs):
    mx.viz.print_summary(*args, **kwargs)
    return capsys.readouterr().out.splitlines()


def test_a_summary_has_shapes_parameters_and_previous_layers(capsys):
    lines = summary(capsys, network(), shape={"data": (1, 3, 10, 10)})
    rows = [line.split() for line in lines if "(" in line]
    assert rows[1:] == [
        ["data(null)", "3x10x10", "0"],
        ["conv1(Convolution)", "8x8x8", "224", "data"],
        ["bn1(BatchNorm)", "8x8x8", "16", "conv1"],
        ["relu1(Activation)", "8x8x8", "0", "bn1"],
        ["pool1(Pooling)", "8x4x4", "0", "relu1"],
        ["conv2(Convolution)", "8x4x4", "576", "pool1"],
        ["plus(elemwise_add)", "8x4x4", "0", "pool1"],
        ["cat(Concat)", "16x4x4", "0", "plus"],
        ["flat(Flatten)", "256", "0", "cat"],
        ["fc(FullyConnected)", "10", "2570", "flat"],
        ["softmax(SoftmaxOutput)", "10", "0", "fc"],
    ]
    assert "Total params: 3386" in lines
    assert sum(line.strip() == "conv2" for line in lines) == 2  # the second lines of plus and cat
    assert all(len(line) == 120 for line in lines if not line.startswith("Total"))
    assert lines[1][:52] == "Layer (type)".ljust(52) and lines[1][52:76] == "Output Shape".ljust(24)


def test_positions_and_line_length_move_the_columns(capsys):
    lines = summary(capsys, network(), {"data": (1, 3, 10, 10)}, 80, [0.3, 0.6, 0.8, 1.0])
    row = next(line for line in lines if line.startswith("conv1"))
    assert row[24:29] == "8x8x8" and row[48:51] == "224" and row[64:68] == "data" and len(row) == 80


def test_without_shapes_nothing_is_made_up(capsys):
    lines = summary(capsys, network())
    assert next(line for line in lines if line.startswith("conv1")).split() == ["conv1(Convolution)", "data"]
    assert "Total params: not known without shapes" in lines


def test_a_shared_weight_counts_once(capsys):
    weight = mx.sym.Variable("shared_weight")
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), weight, num_hidden=4, no_bias=True, name="a")
    net = mx.sym.FullyConnected(net, weight, num_hidden=4, no_bias=True, name="b")
    lines = summary(capsys, net, shape={"data": (2, 4)})
    assert "Total params: 16" in lines
    rows = [line.split() for line in lines if line.startswith(("a(", "b("))]
    assert rows == [["a(FullyConnected)", "4", "16", "data"], ["b(FullyConnected)", "4", "0", "a"]]


def test_anything_but_a_symbol_is_a_type_error():
    for call in (mx.viz.print_summary, mx.viz.plot_network):
        with pytest.raises(TypeError, match="Symbol"):
            call("net")


def test_the_structure_of_a_drawing():
    nodes, edges = mx.viz.network_structure(network(), shape={"data": (1, 3, 10, 10)})
    labels = {name: label for name, label, _ in nodes}
    assert "conv1_weight" not in labels and "bn1_moving_mean" not in labels
    assert labels["conv1"] == "Convolution\n3x3, 8" and labels["pool1"] == "Pooling\nmax, 2x2, 2x2"
    assert labels["data"] == "data" and "softmax_label" in labels
    assert ("data", "conv1", "3x10x10") in edges and ("conv2", "cat", "8x4x4") in edges
    assert all(source in labels and target in labels for source, target, _ in edges)


def test_weights_and_types_are_shown_on_request():
    nodes, edges = mx.viz.network_structure(network(), dtype={"data": np.float64}, hide_weights=False)
    assert "conv1_weight" in {name for name, _, _ in nodes}
    assert ("conv1_weight", "conv1", "float64") in edges


class Digraph:
    """Stands in for graphviz's."""

    def __init__(self, name, format):
        self.name, self.format, self.nodes, self.edges = name, format, {}, []

    def node(self, name, label, **attributes):
        self.nodes[name] = attributes

    def edge(self, tail_name, head_name, label, **attributes):
        self.edges.append((tail_name, head_name, label))


def test_a_drawing_is_made_with_graphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", types.SimpleNamespace(Digraph=Digraph))
    dot = mx.viz.plot_network(
        network(), title="net", save_format="png", node_attrs={"fixedsize": "false", "shape": "rect"}
    )
    assert (dot.name, dot.format) == ("net", "png")
    assert dot.nodes["conv1"]["fixedsize"] == "false" and dot.nodes["data"]["shape"] == "oval"
    assert dot.nodes["conv1"]["shape"] == "rect" and dot.nodes["conv1"]["fillcolor"].startswith("#")
    assert ("conv1", "data", "") in dot.edges


def test_without_graphviz_an_import_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(ImportError, match="pip install graphviz"):
        mx.viz.plot_network(network())
