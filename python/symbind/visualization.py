"""Networks shown to people: a table of layers, and a drawing by graphviz."""

import json as _json
import re as _re

from ._symbind import MXNetTypeError, MXNetValueError, Symbol

__all__ = ["print_summary", "plot_network"]


class _Layer:
    """A node of a network as both views need it."""

    def __init__(self, index, node):
        self.index = index
        self.name = node["name"]
        self.op = node["op"]
        self.attrs = node.get("attrs", {})
        self.inputs = [(entry[0], entry[1]) for entry in node["inputs"]]

    @property
    def is_variable(self):
        return self.op == "null"


def _layers(symbol):
    graph = _json.loads(symbol.tojson())
    return [_Layer(index, node) for index, node in enumerate(graph["nodes"])]


def _output_shapes(symbol, shape):
    """Output name → shape of everything inside the network; empty without shapes."""
    if not shape:
        return {}
    internals = symbol.get_internals()
    _, shapes, _ = internals.infer_shape(**shape)
    if shapes is None:
        raise MXNetValueError("the shapes given are too few to infer those of the network")
    return dict(zip(internals.list_outputs(), shapes))


def _shape_of(layer, output, shapes):
    """The shape of one output of a layer, by the names outputs have; None where it is not known."""
    if layer.is_variable:
        return shapes.get(layer.name)
    single = shapes.get(f"{layer.name}_output")
    if single is not None:
        return single
    named = [shapes[name] for name in shapes if name.startswith(f"{layer.name}_")]
    return named[output] if output < len(named) else None


def _parameters(symbol, layers, shape):
    """Names of variables that are learnt: those without a given shape that are neither labels nor auxiliary states."""
    states = set(symbol.list_auxiliary_states())
    return {
        layer.name
        for layer in layers[1 if not shape else 0 :]
        if layer.is_variable
        and layer.name not in (shape or {})
        and layer.name not in states
        and not layer.name.endswith("label")
    }


def print_summary(symbol, shape=None, line_length=120, positions=(0.44, 0.64, 0.74, 1.0)):
    """Prints a line for each layer: its output, the number of its parameters, and the layers before it. Shapes and
    numbers need the shapes of the inputs; a parameter used by two layers counts in the first."""
    if not isinstance(symbol, Symbol):
        raise MXNetTypeError(f"print_summary takes a Symbol, not {type(symbol).__name__}")
    layers = _layers(symbol)
    shapes = _output_shapes(symbol, shape)
    learnt = _parameters(symbol, layers, shape)
    stops = [int(line_length * position) if position <= 1 else int(position) for position in positions]

    def print_row(fields):
        line = ""
        for field, stop in zip(fields, stops):
            line = (line + str(field))[:stop].ljust(stop)
        print(line)

    counted = set()
    print("_" * line_length)
    print_row(["Layer (type)", "Output Shape", "Param #", "Previous Layer"])
    print("=" * line_length)
    shown = [layer for layer in layers if not layer.is_variable or layer.index == 0 or layer.name in (shape or {})]
    for layer in shown:
        count = 0
        previous = []
        for index, _ in layer.inputs:
            source = layers[index]
            if source.name in learnt:
                if source.name in shapes and source.name not in counted:
                    counted.add(source.name)
                    count += _size(shapes[source.name])
            elif source in shown and source.name not in previous:
                previous.append(source.name)
        out = _shape_of(layer, 0, shapes)
        text = "x".join(str(dim) for dim in out[1:]) if out else ""
        numbers = count if shapes else ""
        print_row([f"{layer.name}({layer.op})", text, numbers, previous[0] if previous else ""])
        for name in previous[1:]:
            print_row(["", "", "", name])
        print(("=" if layer is shown[-1] else "_") * line_length)
    total = sum(_size(shapes[name]) for name in counted)
    print(f"Total params: {total}" if shapes else "Total params: not known without shapes")
    print("_" * line_length)


def _size(shape):
    size = 1
    for dim in shape:
        size *= dim
    return size


# What a box shows below the operator's name, by operator.
_DETAILS = {
    "Convolution": ("kernel", "stride", "num_filter"),
    "Deconvolution": ("kernel", "stride", "num_filter"),
    "FullyConnected": ("num_hidden",),
    "Activation": ("act_type",),
    "LeakyReLU": ("act_type",),
    "Pooling": ("pool_type", "kernel", "stride"),
    "Dropout": ("p",),
}
_COLOURS = {
    "variable": "#8dd3c7",
    "Convolution": "#fb8072",
    "Deconvolution": "#fb8072",
    "FullyConnected": "#fb8072",
    "BatchNorm": "#bebada",
    "Activation": "#ffffb3",
    "LeakyReLU": "#ffffb3",
    "Pooling": "#80b1d3",
    "Concat": "#fdb462",
    "Flatten": "#fdb462",
    "Reshape": "#fdb462",
    "Softmax": "#fccde5",
    "SoftmaxOutput": "#fccde5",
}


def _numbers(text):
    """ "(3, 3)" as "3x3"."""
    return "x".join(_re.findall(r"\d+", text))


def _label(layer):
    if layer.is_variable:
        return layer.name
    lines = [layer.op]
    details = []
    for key in _DETAILS.get(layer.op, ()):
        if key in layer.attrs:
            value = layer.attrs[key]
            details.append(_numbers(value) if value.startswith("(") else value)
    if details:
        lines.append(", ".join(detail for detail in details if detail))
    return "\n".join(lines)


def network_structure(symbol, shape=None, dtype=None, hide_weights=True):
    """What plot_network draws: a list of nodes (name, label, attributes), and a list of edges (from, to, label)."""
    if not isinstance(symbol, Symbol):
        raise MXNetTypeError(f"plot_network takes a Symbol, not {type(symbol).__name__}")
    layers = _layers(symbol)
    shapes = _output_shapes(symbol, shape)
    types = _output_types(symbol, dtype)
    hidden = _weights_of_layers(symbol, layers) if hide_weights else set()
    nodes, edges = [], []
    for layer in layers:
        if layer.name in hidden and layer.is_variable:
            continue
        attributes = {
            "shape": "oval" if layer.is_variable else "box",
            "fillcolor": _COLOURS.get("variable" if layer.is_variable else layer.op, "#b3de69"),
        }
        nodes.append((layer.name, _label(layer), attributes))
        for index, output in layer.inputs:
            source = layers[index]
            if source.is_variable and source.name in hidden:
                continue
            known = _shape_of(source, output, shapes)
            words = ["x".join(str(dim) for dim in known[1:])] if known else []
            if types.get(source.name) is not None:
                words.append(types[source.name])
            edges.append((source.name, layer.name, " ".join(words)))
    return nodes, edges


def _output_types(symbol, dtype):
    """Variable or layer → name of its type, where types were given."""
    if not dtype:
        return {}
    import numpy as np

    internals = symbol.get_internals()
    _, types, _ = internals.infer_type_partial(**dtype)
    names = internals.list_outputs()
    result = {}
    for name, kind in zip(names, types or []):
        if kind is not None:
            result.setdefault(name.removesuffix("_output"), kind if isinstance(kind, str) else np.dtype(kind).name)
    return result


def _weights_of_layers(symbol, layers):
    """Variables that were made for a layer's missing inputs: its name, and a word for the input."""
    states = set(symbol.list_auxiliary_states())
    weights = set(states)
    for layer in layers:
        for index, _ in layer.inputs:
            source = layers[index]
            if source.is_variable and source.name.endswith(
                ("_weight", "_bias", "_gamma", "_beta", "_moving_mean", "_moving_var", "_running_mean", "_running_var")
            ):
                weights.add(source.name)
    return weights


def plot_network(symbol, title="plot", save_format="pdf", shape=None, dtype=None, node_attrs={}, hide_weights=True):  # noqa: B006
    """A graphviz.Digraph of the network: a box for each layer, with shapes on the edges where they are given. Render it
    with .render() or .view(). `node_attrs` are graphviz's attributes for all boxes; colours stay those of
    the kinds of layers, and variables are ovals."""
    nodes, edges = network_structure(symbol, shape, dtype, hide_weights)
    try:
        from graphviz import Digraph
    except ImportError:
        raise ImportError("plot_network draws with the Python package graphviz: pip install graphviz") from None
    common = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled"}
    common.update(node_attrs or {})
    dot = Digraph(name=title, format=save_format)
    for name, label, attributes in nodes:
        own = {key: value for key, value in attributes.items() if (key, value) != ("shape", "box")}
        dot.node(name=name, label=label, **{**common, **own})
    for source, target, label in edges:
        # Data flows up the page, so the edge is drawn from the user of a value to its maker.
        dot.edge(tail_name=target, head_name=source, label=label, dir="back", arrowtail="open")
    return dot
